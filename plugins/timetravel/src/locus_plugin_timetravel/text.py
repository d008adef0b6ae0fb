"""What a person reads of a thread: short lines, aligned, safe on any terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from locus.core.journal import END, FORK, START
from locus.core.messages import Role, text_of
from locus.schema import safe_repr

if TYPE_CHECKING:
    from locus.core.messages import Message, Usage
    from locus.core.state import ToolExecution
    from locus.journal import History, HistoryEntry

__all__ = [
    "call_text",
    "describe_entry",
    "describe_message",
    "describe_usage",
    "format_history",
    "one_line",
    "outcome_text",
    "table",
]


def one_line(text: str, limit: int = 60) -> str:
    """The text on one line, and short; quotes show where it ends."""
    return safe_repr(" ".join(text.split()), limit)


def describe_usage(usage: Usage) -> str:
    """``"15 tokens"``, with dollars where they are known; ``""`` for nothing."""
    tokens = usage.total_tokens
    dollars = "" if usage.cost is None else f"${usage.cost:.4g}"
    counted = f"{tokens:,} token{'' if tokens == 1 else 's'}" if tokens else ""
    return ", ".join(part for part in (counted, dollars) if part)


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """``add(a=1, b=2)``."""
    return f"{name}({', '.join(f'{key}={safe_repr(value, 40)}' for key, value in arguments.items())})"


def outcome_text(execution: ToolExecution) -> str:
    """What a call came to."""
    if execution.error is not None:
        return f"error: {one_line(execution.error)}"
    return f"{one_line(execution.result or '')}{' (from an earlier call)' if execution.cache_hit else ''}"


def describe_message(message: Message) -> str:
    """What a message says or asks for."""
    parts = [call_text(c.name, c.arguments) for c in message.tool_calls]
    parts += [one_line(text_of(r.content)) for r in message.tool_results]
    if message.text:
        parts.insert(0, one_line(message.text))
    return ", ".join(parts) or "nothing"


def describe_entry(entry: HistoryEntry) -> str:
    """What one transition did, in a line."""
    if entry.node == FORK:
        return entry.why
    if entry.calls:
        return "; ".join(f"{call_text(c.tool_name, c.arguments)} = {outcome_text(c)}" for c in entry.calls)
    last = Role.USER if entry.node == START else Role.ASSISTANT
    messages = [m for m in entry.messages if m.role is last] or entry.messages
    if messages:
        return describe_message(messages[-1])
    return entry.error or (entry.why if entry.next_node == END else "")


def format_history(history: History) -> str:
    """A history as a table, one line a transition."""
    rows = [("n", "iteration", "node", "then", "spent", "what")]
    for m in history:
        rows.append((str(m.n), str(m.iteration + 1), m.node, m.next_node, describe_usage(m.usage), describe_entry(m)))
    tail = f"the run goes on at {history.open_node}" if history.open_node else _describe_end(history)
    total = describe_usage(history.usage) or "nothing"
    return "\n".join([f"thread {history.thread_id}", table(rows), f"{tail}; {total} spent"])


def _describe_end(history: History) -> str:
    return f"ended: {history[-1].why}" if len(history) else "nothing was committed yet"


def table(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> str:
    """Rows of cells, aligned; the last cell of a row is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    return "\n".join(_line(row, widths, gap) for row in rows)


def _line(row: Sequence[str], widths: Iterable[int], gap: str) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
    return gap.join([*cells, row[-1]]).rstrip()
