"""Which headers can be sent: a line break in one would begin another header, or another request."""

from __future__ import annotations

import re

__all__ = ["find_header_fault"]

#: The name of a header: RFC 9110, 5.6.2.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def find_header_fault(name: str, value: str) -> str:
    """What is wrong with a header, in words that do not show its value; ``""`` where it can be sent."""
    if not _NAME.fullmatch(name):
        return f"the name of a header must have letters, digits and '-' alone, got {name!r:.80}"
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        return f"the value of the header {name!r} must be printable ASCII, without line breaks or accented letters"
    return ""
