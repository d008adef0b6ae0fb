"""Text that is safe to hand on: no lone surrogates, no flood, and a `repr` that cannot fail.

What a tool returns is outside our control; what reaches a model or a journal must encode as UTF-8 and have a
bounded size.
"""

from __future__ import annotations

from collections.abc import Iterable


def clean_text(text: str) -> str:
    """The text without lone surrogates: pairs become the character they mean, single ones U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def truncate(text: str, limit: int) -> str:
    """The text within ``limit`` characters: head and tail, and between them a note of how much is missing."""
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text):,} characters in all, cut to {limit:,} ...]\n"
    room = limit - len(note)
    if room < len(note):  # no room for a note worth having
        return text[:limit]
    tail = room // 3
    return f"{text[: room - tail]}{note}{text[-tail:]}"


def safe_repr(value: object, limit: int = 80) -> str:
    """A `repr` for messages: short, on one line, encodable, and never an exception."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  a repr is foreign code
        return f"<{type(value).__name__} whose repr fails>"
    text = clean_text(text if len(text) <= limit else f"{text[: limit - 3]}...")
    return " ".join(text.split()) if "\n" in text else text


def join_names(names: Iterable[str], limit: int = 40) -> str:
    """The names, comma-separated; beyond ``limit`` of them only how many more there are."""
    known = list(names)
    more = len(known) - limit
    return ", ".join(known[:limit]) + (f" and {more} more" if more > 0 else "")
