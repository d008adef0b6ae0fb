"""`Skill`: what the front matter of a SKILL.md says, read strictly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from attrs import frozen

from locus_kit.invisible import remove_invisible

__all__ = ["BadSkill", "Skill", "parse_skill"]

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_024

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)(.*)", re.DOTALL)


class BadSkill(ValueError):
    """A skill that is not used. Its text says why."""


@frozen
class Skill:
    """A skill.

    Args:
        name: also the name of its folder.
        description: when to use it; one line.
        folder: where it is.
    """

    name: str
    description: str
    folder: Path


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # without stubs it has no type
    """Plain data, in which nothing refers to another part: a few lines of aliases make gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node, which is not an alias."""
        if self.check_event(yaml.events.AliasEvent):
            raise BadSkill("its front matter has an alias (*name), which is not allowed")
        return super().compose_node(parent, index)

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
        """The value of a node; one that is not what its tag says is an error with its place.

        PyYAML's own constructors raise whatever comes of it: a KeyError for ``!!bool maybe``.
        """
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
            kind = str(node.tag).rpartition(":")[2]
            said = f"expected a value of the kind {kind}, got {node.value!r:.60} ({type(e).__name__}: {e})"
            raise yaml.constructor.ConstructorError(None, None, said, node.start_mark) from None


def parse_skill(text: str, folder: Path) -> tuple[Skill, str]:
    """A skill and its instructions, of the text of a SKILL.md.

    Args:
        text: the file.
        folder: its folder, whose name is that of the skill.

    Raises:
        BadSkill: the text has no front matter, or its name or description is missing or invalid.
    """
    parts = _FRONT_MATTER.fullmatch(text)
    if parts is None:
        raise BadSkill("SKILL.md must begin with front matter: lines of YAML between two lines '---'")
    try:
        data = yaml.load(parts[1], Loader=_Loader)  # noqa: S506 - a SafeLoader
    except BadSkill:
        raise
    except Exception as e:  # noqa: BLE001  # whatever a file makes a parser raise, it costs that skill alone
        raise BadSkill(f"its front matter is not YAML: {' '.join(str(e).split())[:200]}") from None
    if not isinstance(data, dict):
        raise BadSkill("its front matter must be a mapping with name and description")
    name, description = data.get("name"), data.get("description")
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise BadSkill(f"name must be at most {_LONGEST_NAME} of a-z, 0-9 and single hyphens, got {name!r:.80}")
    if name != folder.name:
        raise BadSkill(f"name must be that of its folder, {folder.name!r}, got {name!r}")
    if not isinstance(description, str) or not description.strip():
        raise BadSkill(f"description must be a text, got {description!r:.80}")
    shown = " ".join(remove_invisible(description).split())
    if len(shown) > _LONGEST_DESCRIPTION:
        raise BadSkill(f"description must have at most {_LONGEST_DESCRIPTION:,} characters, got {len(shown):,}")
    return Skill(name, shown, folder), parts[2].strip()
