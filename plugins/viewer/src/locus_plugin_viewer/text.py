"""Text for a page: secrets hidden as in logs, invisible characters shown as escapes, long texts cut.

Escaping for HTML is not done here: the templates do it for whatever they print.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs

from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.core.messages import Usage
from locus.plugins import scrub
from locus.schema import clean_text, safe_repr
from locus_kit.invisible import escape_invisible

__all__ = [
    "LONG",
    "clean",
    "cut",
    "format_age",
    "format_ms",
    "format_time",
    "format_usage",
    "hide_secrets",
    "pretty",
    "to_plain",
]

#: Characters of one text on a page; the entry itself has all of it.
LONG = 6_000

#: Characters of JSON that is not indented.
_LINE = 88

_HIDDEN = "***"


def clean(text: str) -> str:
    """The text without secrets, with invisible characters as escapes: what a model says must not fool its reader."""
    return escape_invisible(scrub(clean_text(text)).replace("\r\n", "\n"))


def cut(text: str, limit: int = LONG) -> str:
    """The beginning of a text, with how much is left out."""
    return text if len(text) <= limit else f"{text[:limit]}\n... {len(text) - limit:,} more characters"


def hide_secrets(value: Any) -> Any:
    """Plain data in which the values of entries that are named like secrets are hidden."""
    if isinstance(value, Mapping):
        return {str(key): _HIDDEN if _is_secret(str(key), each) else hide_secrets(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [hide_secrets(each) for each in value]
    return value


def _is_secret(name: str, value: Any) -> bool:
    # What hides secrets in logs knows their names.
    return isinstance(value, str) and value != "" and scrub(f"{name}=x") != f"{name}=x"


def to_plain(value: Any) -> Any:
    """Any value as plain data: its JSON form, or what its `repr` says."""
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    try:
        return encode_data(value)
    except (NotSerialisable, ValueError):
        pass
    if attrs.has(type(value)):
        named = {each.name: getattr(value, each.name) for each in attrs.fields(type(value)) if each.repr}
        return {name: to_plain(each) for name, each in named.items() if not name.startswith("_")}
    return safe_repr(value, 1_000)


def pretty(value: Any) -> str:
    """Any value as JSON, indented where it does not fit a line; a text as it is."""
    if isinstance(value, str):
        return value
    plain = hide_secrets(to_plain(value))
    line = json.dumps(plain, ensure_ascii=False)
    return line if len(line) <= _LINE else json.dumps(plain, indent=2, ensure_ascii=False)


def format_usage(usage: Usage | None) -> str:
    """``"1,234 tokens (200 cached), $0.0012"``; ``""`` for nothing."""
    if usage is None or not (usage.total_tokens or usage.cost):
        return ""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    return f"{usage.total_tokens:,} token{'' if usage.total_tokens == 1 else 's'}{cached}{cost}"


def format_ms(milliseconds: float) -> str:
    """A duration in the unit that suits it."""
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1_000), 60)
    return f"{minutes} min {seconds} s"


def format_age(at: datetime | None) -> str:
    """How long ago something was, roughly; ``""`` where that is not known."""
    if at is None:
        return ""
    passed = max(0.0, (datetime.now(UTC) - at).total_seconds())
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= unit:
            return f"{passed // unit:.0f} {name} ago"
    return "just now" if passed < 1 else f"{passed:.0f} s ago"


def format_time(at: datetime | None) -> str:
    """A time as the clocks here show it."""
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
