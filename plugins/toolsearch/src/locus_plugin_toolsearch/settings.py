"""The settings of the plugin: the table ``[plugins.toolsearch]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import deep_iterable, in_, instance_of

__all__ = ["Retriever", "ToolSearchSettings"]

#: How tools are found: by their words, or by their words and their meaning.
Retriever = Literal["bm25", "embed"]


def _whole(least: int) -> Any:
    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{attribute.name} is {value!r}; it is an integer, {least} or more")

    return check


def _names(_: object, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, str):
        raise ValueError(f"{attribute.name} is {value!r}; it is a list of names: [{value!r}]")
    deep_iterable(instance_of(str))(_, attribute, value)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | set | frozenset) else value


@frozen(kw_only=True)
class ToolSearchSettings:
    """When a model is sent only some of the tools, and which.

    Args:
        threshold: up to this many tools all are sent, and the plugin changes nothing.
        top: how many are retrieved for the user's words.
        results: how many a search of the model finds.
        pinned: names of tools that are always sent, or patterns of them (``fs_*``). Those of ``terminal_tools``
            are without being named.
        keep: how many tools a conversation may carry into its next turn; one that carries more begins afresh.
        retriever: ``"bm25"``: by words; ``"embed"``: by words and meaning, with a small model that the extra
            ``embed`` installs.
        weights: the path of a copy of that model's file; None = from the installed package.

    Raises:
        ValueError: a number is out of range, a name is none.
    """

    threshold: int = field(default=30, validator=_whole(0))
    top: int = field(default=10, validator=_whole(1))
    results: int = field(default=5, validator=_whole(1))
    pinned: tuple[str, ...] = field(default=(), converter=_tuple, validator=_names)
    keep: int = field(default=60, validator=_whole(0))
    retriever: Retriever = field(default="bm25", validator=in_(("bm25", "embed")))
    weights: str | None = None
