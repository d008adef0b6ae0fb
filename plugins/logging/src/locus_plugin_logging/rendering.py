"""One line of text from named values, whatever they contain.

What a tool or a model says may hold line breaks, terminal sequences, invisible characters and halves of surrogate
pairs: none of them reaches a line, so that lines cannot be forged, or hide something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["json_line", "text_line"]

_PLAIN = re.compile(r"[\w.:/@+\-]+", re.ASCII)


def _escape_invisible(text: str) -> str:
    """JSON text in which everything can be seen: what has no glyph, and every space but the usual one, is escaped."""
    if text.isprintable():
        return text
    # Beyond the first plane JSON writes a pair.
    return "".join([c if c.isprintable() else json.dumps(c)[1:-1] for c in text])


def json_line(values: Mapping[str, Any]) -> str:
    """An object of JSON on one line."""
    return _escape_invisible(json.dumps(values, ensure_ascii=False, default=str))


def text_line(values: Mapping[str, Any]) -> str:
    """``key=value`` for each value that is not None, texts in quotes where they are more than a word."""
    return " ".join(f"{key}={_show(value)}" for key, value in values.items() if value is not None)


def _show(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return _escape_invisible(json.dumps(value, ensure_ascii=False, default=str))
