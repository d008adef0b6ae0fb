"""Where a request's prompt may be read from a cache: at most four breakpoints.

The order of a prompt is tools, system prompt, messages. A breakpoint behind the tools and one behind the system prompt
serve whatever differs after them; the last one, behind the newest block, is what the next request of the run finds.
It looks back over some twenty blocks only, and a turn with many calls is longer: so the place where the request before
ended keeps a breakpoint too. Breakpoints are copies of blocks with one more key; no other byte changes when they move.
"""

from __future__ import annotations

from typing import Any

from locus_plugin_anthropic.blocks import Wire

__all__ = ["mark"]

#: What a breakpoint may follow. Thinking is cached with what follows it, and is refused as its end.
_MARKED = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def mark(body: Wire, ttl: str, *, growing: bool) -> None:
    """Place the breakpoints of a request.

    Args:
        body: the request; its lists are replaced, their items are not touched.
        ttl: how long the caches live, ``"5m"`` or ``"1h"``.
        growing: whether a request with this prefix will follow; writing a cache that is never read costs money, too.
    """
    control = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    if tools := body.get("tools"):
        body["tools"] = [*tools[:-1], {**tools[-1], "cache_control": control}]
    if system := body.get("system"):
        body["system"] = [*system[:-1], {**system[-1], "cache_control": control}]
    if growing:
        body["messages"] = _mark_last_user(body["messages"], control)


def _mark_last_user(messages: list[Wire], control: Wire) -> list[Wire]:
    marked = list(messages)
    if not marked:
        return marked
    last = len(marked) - 1
    answered = next((at for at in range(last, 0, -1) if marked[at]["role"] == "assistant"), 0)
    for at in {last, answered - 1} - {-1}:
        marked[at] = {**marked[at], "content": _mark_last_block(marked[at]["content"], control)}
    return marked


def _mark_last_block(content: list[Wire], control: Any) -> list[Wire]:
    for at in range(len(content) - 1, -1, -1):
        if content[at].get("type") in _MARKED:
            return [*content[:at], {**content[at], "cache_control": control}, *content[at + 1 :]]
    return content
