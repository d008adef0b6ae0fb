"""Files of instructions: found, read, and made into the block before a system prompt."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from locus.config import search_folders
from locus.core.errors import ConfigError
from locus_kit.textfiles import TextFileError, read_text

__all__ = ["InstructionsFile", "find_agents_md", "load_agents_md", "prepend_instructions", "read_file"]

_RULE = "\n\n---\n\n"


@frozen
class InstructionsFile:
    """A file of instructions.

    Args:
        path: where it is.
        text: what it says, without blanks at its ends and without characters that a reader cannot see.
        own: whether it is the user's own, and not the project's.
    """

    path: str
    text: str
    own: bool


def load_agents_md(paths: Iterable[str | os.PathLike[str]]) -> str:
    """The texts of files, joined by a ``---`` rule.

    Args:
        paths: the files, in order; ``~`` is the home folder. Missing ones are left out.

    Returns:
        The block, ``""`` where no file has text.

    Raises:
        ConfigError: a file has more than 64,000 bytes, is not UTF-8 text, or cannot be read.
    """
    if isinstance(paths, str | os.PathLike):
        raise TypeError(f"paths must be a list of paths, got {paths!r}; write [{paths!r}]")
    texts = (read_file(_expand(path)) for path in paths)
    return _RULE.join(text for text in texts if text)


def prepend_instructions(block: str, system_prompt: str) -> str:
    """A system prompt with a block of instructions before it, and a ``---`` rule between them.

    Args:
        block: as `load_agents_md` gives it; an empty one leaves the prompt as it is.
        system_prompt: the prompt.
    """
    if not block:
        return system_prompt
    return f"{block}{_RULE}{system_prompt}" if system_prompt else block


def find_agents_md(folder: str | os.PathLike[str] = ".", names: Sequence[str] = ("AGENTS.md",)) -> list[Path]:
    """The files of a project, the outermost first: so the nearest one has the last word.

    The search goes upwards from the folder and ends at the root of the repository, at the home folder, or where another
    file system begins. Files in a folder that other users of the machine can write to are left out, and so are links.

    Args:
        folder: where it begins.
        names: of a folder's files the first one of these that exists.
    """
    found = [_find_in(each, names) for each, counts in search_folders(_expand(folder)) if counts]
    return [path for path in reversed(found) if path is not None]


def read_file(path: Path, *, follow: bool = True) -> str | None:
    """What a file says, or None where it does not exist.

    Args:
        path: the file.
        follow: whether it may be a link.

    Raises:
        ConfigError: see `load_agents_md`.
    """
    try:
        return read_text(path, follow=follow)
    except TextFileError as e:
        raise ConfigError(f"instructions: {str(path)!r} is not used: {e}") from e


def _expand(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as e:  # no home is known
        raise ConfigError(f"instructions: {os.fspath(path)!r}: {e}") from e


def _find_in(folder: Path, names: Iterable[str]) -> Path | None:
    return next(_existing(folder, names), None)


def _existing(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = folder / name
        if path.is_file() and not path.is_symlink():
            yield path
