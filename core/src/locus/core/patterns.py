"""Regular expressions that take time in proportion to the text, even when users write them.

Python's own engine backtracks: ``(a+)+$`` on 41 letters runs for years, and nothing can interrupt it. A
pattern that meets the text of a model, a tool or a user is therefore RE2's, which cannot backtrack, and refuses what
would need it when the pattern is made. RE2 is loaded for the first pattern, not by ``import locus``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from locus.core.lazy import Lazy

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]  # it ships no types
else:
    re2 = Lazy("re2")

#: RE2's edge of a word knows ASCII's letters only: beside another letter it is never where a reader expects it.
_EDGE = re.compile(r"\\[bB][^\x00-\x7f]|[^\x00-\x7f]\\[bB]")


class Pattern:
    r"""A compiled pattern, in RE2's syntax: https://github.com/google/re2/wiki/Syntax.

    Args:
        expression: the pattern. ``(?i)`` at its beginning ignores case; ``\w``, ``\d`` and ``\b`` are about ASCII,
            ``\pL`` is any letter.

    Raises:
        ValueError: it is not a pattern of RE2, which has no look-around and no back-references.
    """

    __slots__ = ("_found", "expression")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        options = re2.Options()
        options.log_errors = False
        try:
            self._found: Any = re2.compile(expression, options=options)
        except (re2.error, UnicodeEncodeError) as e:
            said = e.args[0].decode(errors="replace") if e.args and isinstance(e.args[0], bytes) else str(e)
            raise ValueError(
                f"the pattern {expression!r} is refused: {said}; patterns are RE2's, without look-around and "
                "back-references: match what is around it as well, or use a function"
            ) from None
        if _EDGE.search(expression):
            raise ValueError(
                rf"the pattern {expression!r} is refused: \b beside a letter that is not ASCII finds no edge of a "
                r"word; leave it out, or write (?:^|\PL) and (?:\PL|$)"
            )

    def spans(self, text: str, group: int = 0) -> Iterator[tuple[int, int]]:
        """Where it matches: ``(start, end)``, left to right, not overlapping, never empty."""
        for match in self._found.finditer(_encodable(text)):
            start, end = match.span(group)
            if start < end:
                yield start, end

    def search(self, text: str) -> str | None:
        """The first text that matches, which may be empty; None where nothing does."""
        match = self._found.search(_encodable(text))
        return None if match is None else text[slice(*match.span())]

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere."""
        return self._found.search(_encodable(text)) is not None

    def __reduce__(self) -> tuple[type[Pattern], tuple[str]]:
        return Pattern, (self.expression,)

    def __repr__(self) -> str:
        return f"Pattern({self.expression!r})"


def _encodable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which has no place in UTF-8; of the same length."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text
