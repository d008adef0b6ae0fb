"""Text for people: what a model or a tool says must not drive the terminal, nor fill it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.core.messages import Usage
from locus_kit.invisible import escape_invisible

__all__ = [
    "escape_controls",
    "format_age",
    "format_bytes",
    "format_call",
    "format_cost",
    "format_ms",
    "format_time",
    "format_tokens",
    "one_line",
    "shorten",
]

_VALUE_CHARS = 80
_CALL_CHARS = 240
_RESULT_CHARS = 300
_RESULT_LINES = 4


def escape_controls(text: str) -> str:
    """The text with control and invisible characters as escapes; line ends and tabs stay."""
    return escape_invisible(text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The text on one line: every run of blanks and line ends is one blank."""
    return escape_controls(" ".join(text.split()))


def shorten(text: str) -> str:
    """The beginning of a result, at most a few lines, with how much is left out."""
    text = text.strip()
    lines = text[:_RESULT_CHARS].splitlines()[:_RESULT_LINES]
    shown = "\n".join(lines)
    left = len(text) - len(shown)
    return escape_controls(shown) + (f" ... ({left:,} more characters)" if left > 0 else "")


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as one would write it: ``add(a=1, b="two")``, cut where it is long."""
    inside = ", ".join(f"{one_line(str(key))}={_value(value)}" for key, value in arguments.items())
    return one_line(_cut(f"{name}({inside})", _CALL_CHARS))


def _value(value: Any) -> str:
    try:
        return _cut(json.dumps(encode_data(value), ensure_ascii=False), _VALUE_CHARS)
    except (NotSerialisable, ValueError):
        return _cut(repr(value), _VALUE_CHARS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."


def format_ms(milliseconds: float) -> str:
    """A duration in the unit that suits it."""
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, rest = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {rest} s"


def format_age(at: datetime) -> str:
    """How long ago something was, roughly."""
    passed = max(0.0, (datetime.now(UTC) - at).total_seconds())
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= unit:
            return f"{passed // unit:.0f} {name} ago"
    return f"{passed:.0f} s ago"


def format_time(at: datetime) -> str:
    """A time as the clocks here show it, with its date where that is another day."""
    here = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return f"{here:%H:%M:%S}" if here.date() == today else f"{here:%Y-%m-%d %H:%M:%S}"


def format_tokens(usage: Usage) -> str:
    """All tokens of some calls, the cached ones, and the dollars where they are known."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    cost = format_cost(usage)
    return f"{usage.total_tokens:,} tokens{cached}{f', {cost}' if cost else ''}"


def format_cost(usage: Usage) -> str:
    """``"$0.0012"``, or ``""`` if it is free or the price is unknown."""
    if usage.cost is None:
        return ""
    return f"${usage.cost:.4f}" if usage.cost else ""


def format_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    if count < 1000:
        return f"{count} bytes"
    unit, name = next(each for each in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= each[0])
    return f"{count / unit:.1f} {name}"
