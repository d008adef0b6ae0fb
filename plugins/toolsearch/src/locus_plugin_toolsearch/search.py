"""The tool with which a model finds further tools, and how what it found is written and read again.

What was found is in the call's result, one line a tool; the run reads it from there when it continues. So it is
recorded where everything is, and needs no record of its own.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

from locus import tool
from locus_plugin_toolsearch.index import Match

__all__ = ["SEARCH", "SEARCHING", "names_in", "result", "tool_search"]

SEARCH = "tool_search"
#: How much of a description a result has, in characters.
_SHOWN = 200
_DESCRIPTION = (
    "Find further tools. Your list has only the tools that seem to fit the request; there are many more. Use this when "
    "none in your list does what you need. You get names and descriptions; from your next turn on these tools are in "
    "your list."
)
_LINE = re.compile(r"^- ([A-Za-z0-9_-]{1,64}): ", re.MULTILINE)

#: Set while calls are executed: from the model's words to the answer it gets, for the run whose calls they are.
SEARCHING: ContextVar[Callable[[str], Awaitable[str]] | None] = ContextVar("locus_toolsearch", default=None)


@tool(name=SEARCH, description=_DESCRIPTION, effect="pure", idempotent=True)
async def tool_search(query: str) -> str:
    """Find further tools.

    Args:
        query: What the tool should do, in a few plain words.
    """
    searching = SEARCHING.get()
    if searching is None:
        return "All tools are in your list."
    return await searching(query)


def result(query: str, found: Sequence[Match], total: int) -> str:
    """The text that the model gets."""
    if not found:
        return f"No tool of {total} fits {query[:_SHOWN]!r}. Try other words for what it should do, or go on without."
    lines = (f"- {each.name}: {_cut(each.description)}" for each in found)
    return "\n".join([f"{len(found)} of {total} tools, the best first; call them from your next turn on:", *lines])


def _cut(text: str) -> str:
    line = text or "(no description)"
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def names_in(told: str) -> list[str]:
    """The names in the text that the model got, also where a filter changed the descriptions."""
    return _LINE.findall(told)
