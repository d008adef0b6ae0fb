"""`SkillCatalog`: the skills of some folders, and their files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from locus.core.errors import ConfigError, closest
from locus_kit.textfiles import TextFileError, read_below
from locus_plugin_skills.skill import BadSkill, Skill, parse_skill

__all__ = ["SKILL_FILE", "SkillCatalog"]

#: The file that makes a folder a skill.
SKILL_FILE = "SKILL.md"

#: How many of a skill's other files are listed, and how deep they may be.
_MOST_FILES, _DEEPEST = 100, 5


@frozen
class SkillCatalog:
    """The skills that were found.

    Args:
        skills: by name, sorted.
        problems: what is not used, as ``"name: why"``, sorted.
    """

    skills: Mapping[str, Skill]
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, folders: Iterable[str], most: int) -> SkillCatalog:
        """Look into folders.

        Args:
            folders: missing ones are left out; of two skills with one name that of the later folder counts.
            most: how many skills are used; of more, the first by name.

        Raises:
            ConfigError: a folder cannot be read.
        """
        found: dict[str, Skill] = {}
        problems: list[str] = []
        for text in folders:
            for folder in _subfolders(text):
                try:
                    skill, _ = _read_skill(folder)
                except (BadSkill, TextFileError) as e:
                    problems.append(f"{folder.name}: {e}")
                else:
                    if skill is not None:
                        found[skill.name] = skill
        names = sorted(found)
        problems += [f"{name}: only {most:,} skills are used" for name in names[most:]]
        return cls({name: found[name] for name in names[:most]}, tuple(sorted(problems)))

    def read(self, name: str, file: str | None = None) -> str:
        """The instructions of a skill with a list of its other files, or one of these.

        Args:
            name: the skill.
            file: the path of another file below the folder of the skill.

        Raises:
            ValueError: the skill or the file is unknown, or the file cannot be read as text. The text says why.
        """
        skill = self.skills.get(name)
        if skill is None:
            near = closest(name, self.skills)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ValueError(f"unknown skill {name!r:.80}{hint}; known: {', '.join(self.skills) or '(none)'}")
        try:
            if file is not None:
                return self._read_file(skill, file)
            again, text = _read_skill(skill.folder)
        except (BadSkill, TextFileError) as e:
            raise ValueError(f"skill {name!r}: {file or SKILL_FILE!r}: {e}") from None
        if again is None:
            raise ValueError(f"skill {name!r}: its {SKILL_FILE} is gone")
        files = list(_files(skill.folder))
        if not files:
            return text
        more = f"\n(only the first {_MOST_FILES} are listed)" if len(files) > _MOST_FILES else ""
        listed = "\n".join(f"- {each}" for each in files[:_MOST_FILES])
        return f"{text}\n\nOther files of this skill, for read_skill(name, file):\n{listed}{more}"

    @staticmethod
    def _read_file(skill: Skill, file: str) -> str:
        text = read_below(skill.folder.parent, [skill.name, *file.split("/")])
        if text is None:
            files = list(_files(skill.folder))[:_MOST_FILES]
            near = closest(file, files)
            hint = f"; did you mean {near!r}?" if near else ""
            raise TextFileError(f"it does not exist{hint}; known: {', '.join(files) or '(none)'}")
        return text


def _subfolders(text: str) -> Iterator[Path]:
    try:
        folder = Path(text).expanduser()
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, RuntimeError, ValueError) as e:
        raise ConfigError(f"skills: the folder {text!r} cannot be read: {e}") from e
    for name in names:
        path = folder / name
        if not name.startswith(".") and (path.is_dir() or path.is_symlink()):
            yield path


def _read_skill(folder: Path) -> tuple[Skill | None, str]:
    """A skill and its instructions; None for a folder that is not one."""
    text = read_below(folder.parent, [folder.name, SKILL_FILE])
    return (None, "") if text is None else parse_skill(text, folder)


def _files(folder: Path) -> Iterator[str]:
    """The other files of a skill, sorted folder by folder; links and hidden files are left out."""
    for here, folders, files in os.walk(folder):
        below = Path(here).relative_to(folder)
        folders[:] = sorted(each for each in folders if not each.startswith(".") and len(below.parts) < _DEEPEST)
        for name in sorted(files):
            path = below / name
            if not name.startswith(".") and not (folder / path).is_symlink() and str(path) != SKILL_FILE:
                yield path.as_posix()
