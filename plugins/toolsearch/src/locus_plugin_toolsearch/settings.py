"""The settings of the plugin: the table ``[plugins.toolsearch]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, frozen
from attrs.validators import in_

from locus_kit.validators import integer, strings

__all__ = ["Retriever", "ToolSearchSettings"]

#: How tools are found: by their words, or by their words and their meaning, where that needs no download or anyway.
Retriever = Literal["auto", "bm25", "embed"]


def _to_tuple(value: Any) -> Any:
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
        retriever: ``"bm25"``: by words; ``"embed"``: by words and meaning, with a small model, whose
            libraries the extra ``embed`` installs and whose file is fetched when it is first used; ``"auto"``:
            by meaning, too, where both are there, else by words.
        weights: the path of a copy of that model's file; None = in the cache, where it is fetched to.

    Raises:
        ValueError: a number is out of range, or the names are not a list of strings.
    """

    threshold: int = field(default=30, validator=integer(0))
    top: int = field(default=10, validator=integer(1))
    results: int = field(default=5, validator=integer(1))
    pinned: tuple[str, ...] = field(default=(), converter=_to_tuple, validator=strings)
    keep: int = field(default=60, validator=integer(0))
    retriever: Retriever = field(default="auto", validator=in_(("auto", "bm25", "embed")))
    weights: str | None = None
