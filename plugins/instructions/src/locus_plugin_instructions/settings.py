"""The settings of the plugin: the table ``[plugins.instructions]``."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from locus_kit.validators import not_blank, optional, to_tuple

__all__ = ["InstructionsSettings"]


def _names(_: object, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    if not all(isinstance(each, str) and each and not set(each) & set("/\\\0") for each in value):
        raise ValueError(f"{attribute.name} must be names of files without a folder, got {value!r}")


@frozen(kw_only=True)
class InstructionsSettings:
    """Which files are read, and what they count as.

    Args:
        files: files of your own, such as ``"~/AGENTS.md"``; missing ones are left out. They are instructions.
        folder: where the search for a project's files begins; it goes up to the root of the repository or to the home
            folder. None = no search.
        names: the names of a project's files; in each folder the first one that exists is read.
        trusted: a project's files are instructions as well. False: the prompt says that they are data of the
            project's authors, not the user's words.
    """

    files: tuple[str, ...] = field(default=(), converter=to_tuple)
    folder: str | None = field(default=".", validator=optional(not_blank))
    names: tuple[str, ...] = field(default=("AGENTS.md",), converter=to_tuple, validator=_names)
    trusted: bool = False
