"""Regular expressions that take linear time, even when users write them.

Python's own engine backtracks: one careless pattern, a user's or ours, and a hostile text of a few kilobytes stops the
program. RE2 has no backtracking, so there is nothing that could be catastrophic; what it cannot do in linear time
(look-around, back-references) it refuses when the pattern is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]  # it ships no types

__all__ = ["Pattern", "compile_pattern"]

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class Pattern:
    """A compiled pattern.

    Args:
        expression: in RE2's syntax.

    Raises:
        ValueError: it is not a valid expression.
    """

    __slots__ = ("_found", "expression")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        try:
            self._found: Any = re2.compile(expression, options=_OPTIONS)
        except re2.error as e:
            said = e.args[0].decode(errors="replace") if e.args and isinstance(e.args[0], bytes) else str(e)
            raise ValueError(
                f"the pattern {expression!r} is refused: {said}; patterns are RE2's, without look-around and "
                "back-references"
            ) from None

    def spans(self, text: str, group: int = 0) -> Iterator[tuple[int, int]]:
        """Where it matches: ``(start, end)``, left to right, not overlapping, never empty."""
        for match in self._found.finditer(text):
            start, end = match.span(group)
            if start < end:
                yield start, end

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere."""
        return self._found.search(text) is not None


def compile_pattern(expression: str) -> Pattern:
    """The compiled form of a pattern of this package."""
    return Pattern(expression)
