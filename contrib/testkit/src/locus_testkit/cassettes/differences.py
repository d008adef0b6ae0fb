"""The difference between what was recorded and what was asked, line by line, for the reader of a failed test."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

__all__ = ["alike", "difference", "lines"]

_MOST_LINES, _LONGEST = 60, 160


def lines(form: Any, path: str = "") -> Iterator[str]:
    """Plain data as lines that begin with their path; a text of several lines gives several."""
    if isinstance(form, dict) and form:
        for key, each in form.items():
            yield from lines(each, f"{path}.{key}" if path else str(key))
    elif isinstance(form, list) and form:
        for at, each in enumerate(form):
            yield from lines(each, f"{path}[{at}]")
    elif isinstance(form, str) and "\n" in form:
        for number, line in enumerate(form.split("\n"), 1):
            yield f"{path}, line {number}: {line}"
    else:
        yield f"{path}: {form!r}"


def difference(recorded: Any, asked: Any) -> str:
    """What distinguishes two requests: ``-`` was recorded, ``+`` was asked; long ones are cut."""
    found = difflib.unified_diff(list(lines(recorded)), list(lines(asked)), lineterm="", n=1)
    shown = [_cut(line) for line in found if not line.startswith(("---", "+++", "@@"))]
    left = len(shown) - _MOST_LINES
    return "\n".join([*shown[:_MOST_LINES], *([f"... and {left} more lines"] if left > 0 else [])])


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}... ({len(line) - _LONGEST} more characters)"


def alike(recorded: Any, asked: Any) -> float:
    """How much of two requests is the same, 0.0 to 1.0."""
    one, other = set(lines(recorded)), set(lines(asked))
    return len(one & other) / max(1, len(one | other))
