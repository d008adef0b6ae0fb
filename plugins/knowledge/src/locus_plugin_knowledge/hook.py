"""`KnowledgeHook`: the tool ``search_knowledge`` for the agents that have the plugin."""

from __future__ import annotations

import json
from typing import Any

from attrs import fields

from locus.core import encode_data, freeze
from locus.core.labels import Reads
from locus.plugin import Hook, hookimpl
from locus.tools import Tool, tool
from locus_kit.invisible import remove_invisible
from locus_kit.judging import clip, quote
from locus_plugin_knowledge.catalog import SqliteCatalog
from locus_plugin_knowledge.protocol import KnowledgeRow
from locus_plugin_knowledge.query import Found
from locus_plugin_knowledge.settings import MOST, KnowledgeSettings

__all__ = ["KnowledgeHook", "make_search_tool"]

_BASE = frozenset(each.name for each in fields(KnowledgeRow))


class KnowledgeHook(Hook):
    """Lets the model search a catalog.

    Args:
        settings: which one; None = the defaults.
    """

    name = "knowledge"

    def __init__(self, settings: KnowledgeSettings | None = None) -> None:
        self.settings = KnowledgeSettings() if settings is None else settings
        given = self.settings.catalog
        catalog = given if isinstance(given, SqliteCatalog) else SqliteCatalog(str(given))
        self._tool = make_search_tool(
            catalog, limit=self.settings.limit, max_chars=self.settings.max_chars, reads=self.settings.reads
        )

    @hookimpl
    def locus_register_tools(self) -> list[object]:
        """The tool that searches."""
        return [self._tool]


def make_search_tool(
    catalog: SqliteCatalog, *, limit: int = 5, max_chars: int = 1_000, reads: Reads = "untrusted"
) -> Tool[..., Any]:
    """The tool ``search_knowledge(query, limit)`` over a catalog.

    Args:
        catalog: what it searches.
        limit: how many rows it gives where the model does not say how many.
        max_chars: how much of each row's texts the model is shown.
        reads: whose words the rows hold, see ``tool(reads=)``.
    """
    usual = limit

    @tool(effect="pure", reads=reads, targets=(), egress=False)
    async def search_knowledge(query: str, limit: int = usual) -> str:
        """Search the catalog of what is known by words; the rows that fit best come first.

        Args:
            query: words that the rows may have, such as names and terms. Any of them suffices.
            limit: how many rows, from 1 to 20.
        """
        found = await catalog.search(query, min(max(limit, 1), MOST))
        if not found:
            have = await catalog.count()
            known = f"{have:,} rows, and none of them has any of these words" if have else "no rows yet"
            return f"Nothing found: the catalog has {known}."
        shown = "\n\n".join(_describe(each, at, max_chars) for at, each in enumerate(found, 1))
        return quote([("Rows of the catalog", remove_invisible(shown))], salt=query)

    return search_knowledge


def _describe(found: Found, at: int, most: int) -> str:
    """A row as the model reads it: what it is, its texts, and the values of its own."""
    row = found.row
    sure = "" if row.confidence is None else f", confidence {row.confidence:.2g}"
    lines = [f"{at}. {row.name} ({row.key}{sure})"]
    if row.tags or row.domains:
        lines.append(clip(f"about: {', '.join([*row.domains, *row.tags])}", most))
    if row.descriptions:
        lines.append(clip(" ".join(row.descriptions), most))
    own = {each.name: getattr(row, each.name) for each in fields(type(row)) if each.name not in _BASE}
    if own:
        lines.append(clip("; ".join(f"{name} = {_plain(value)}" for name, value in own.items()), most))
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(encode_data(freeze(value)), ensure_ascii=False)
