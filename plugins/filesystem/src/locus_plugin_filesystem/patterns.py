"""Patterns of names, matched in time that grows with the path, whatever the pattern: RE2 does it.

Libraries make patterns for Python's `re` of them. There, four times ``**/a/`` takes seconds for one path of a hundred
directories, and six times hours: one call, which nothing can interrupt. RE2 has no such patterns, and it takes
alternatives as they are, where others write all of their combinations down.
"""

from __future__ import annotations

from collections.abc import Callable

import re2  # type: ignore[import-untyped]  # it ships no types

from locus.files import BackendError

__all__ = ["glob_match"]

#: One character of a name, the first one of a name that is not hidden, and no character at all.
_ANY, _FIRST, _NONE = "[^/]", "[^/.]", r"[^\x00-\x{10FFFF}]"


def glob_match(pattern: str, *, hidden: bool = False) -> Callable[[str], object]:
    """A function that is true for the paths that a POSIX pattern means; they have no slash at their beginning.

    ``*`` and ``?`` end at a slash; ``**`` as a whole part of a path is any number of directories; ``[a-z]``, ``[!a-z]``
    and ``[[:alpha:]]`` are characters; ``{a,b}`` are alternatives; a backslash takes the special meaning from the next
    character. A name that begins with a dot is matched where the pattern has that dot.

    Args:
        pattern: seen from a directory.
        hidden: wildcards match a dot at the beginning of a name, too.

    Raises:
        BackendError: ``invalid_pattern``.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        found: Callable[[str], object] = re2.compile(
            _Translation(pattern, hidden=hidden).translate(), options
        ).fullmatch
    except (re2.error, UnicodeEncodeError) as e:  # RE2 takes UTF-8, which a lone surrogate has no form in
        raise BackendError("invalid_pattern", f"{pattern[:100]!r}: {_message(e)}") from e
    return found


def _escape(text: str) -> str:
    escaped: str = re2.escape(text)
    return escaped


def _message(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it has a lone surrogate"
    text = error.args[0] if error.args else ""
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


class _Translation:
    """A pattern of names as one of RE2."""

    def __init__(self, pattern: str, *, hidden: bool) -> None:
        self._pattern, self._at, self._hidden = pattern, 0, hidden
        self._first = _ANY if hidden else _FIRST
        self._name = f"{self._first}{_ANY}*"
        #: Whether a part of the path begins here; of the open braces, whether one began
        #: where they did, and None for those that are characters.
        self._begins = True
        self._braces: list[bool | None] = []

    def translate(self) -> str:
        """All of it."""
        parts: list[str] = []
        while self._at < len(self._pattern):
            character = self._pattern[self._at]
            begins, self._begins = self._begins, False
            self._at += 1
            match character:
                case "*":
                    parts.append(self._stars(begins=begins))
                case "?":
                    parts.append(self._first if begins else _ANY)
                case "[":
                    parts.append(self._set(begins=begins))
                case "{" if self._has_alternatives():
                    self._braces.append(begins)
                    self._begins = begins
                    parts.append("(?:")
                case "{":
                    self._braces.append(None)
                    parts.append(r"\{")
                case "," if self._braces and self._braces[-1] is not None:
                    self._begins = self._braces[-1]
                    parts.append("|")
                case "}" if self._braces and self._braces.pop() is not None:
                    parts.append(")")
                case "/":
                    self._begins = True
                    parts.append("/")
                case "\\" if self._at < len(self._pattern):
                    parts.append(_escape(self._pattern[self._at]))
                    self._at += 1
                case _:
                    parts.append(_escape(character))
        return "".join(parts)

    def _stars(self, *, begins: bool) -> str:
        start = self._at - 1
        while self._pattern.startswith("*", self._at):
            self._at += 1
        if not begins:
            return f"{_ANY}*"
        if self._at - start == 1:
            # Nothing before a dot would leave a name that begins with it.
            shows = self._pattern.startswith(".", self._at) and not self._hidden
            return self._name if shows else f"(?:{self._name})?"
        if self._pattern.startswith("/", self._at):
            # More of the same say nothing more.
            while self._pattern.startswith("**/", self._at + 1):
                self._at += 3
            self._at += 1
            self._begins = True
            return f"(?:{self._name}/)*"
        ends = self._at == len(self._pattern) or (self._braces and self._pattern[self._at] in ",}")
        return f"(?:{self._name}(?:/{self._name})*)?" if ends else f"(?:{self._name})?"

    def _has_alternatives(self) -> bool:
        """Whether the brace before this place is closed, and has a comma of its own: else it is a character."""
        depth, at, commas = 1, self._at, 0
        while at < len(self._pattern) and depth:
            character = self._pattern[at]
            depth += {"{": 1, "}": -1}.get(character, 0)
            commas += character == "," and depth == 1
            at += 2 if character == "\\" else 1
        return depth == 0 and commas > 0

    def _set(self, *, begins: bool) -> str:
        """One character of a set; never a slash."""
        at, pattern = self._at, self._pattern
        negated = pattern.startswith(("!", "^"), at)
        at += negated
        items: list[str] = []
        first = at
        while at < len(pattern) and (pattern[at] != "]" or at == first):
            if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
                items.append(pattern[at : end + 2])
                at = end + 2
                continue
            low, at = self._character(at)
            high = low
            if pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] != "]":
                high, at = self._character(at + 1)
            items += _range(low, high)
        if at >= len(pattern):
            return _escape("[")  # it is not closed: a character like others
        self._at = at + 1
        if negated:
            return f"[^{'/.' if begins and not self._hidden else '/'}{''.join(items)}]"
        return f"[{''.join(items)}]" if items else _NONE

    def _character(self, at: int) -> tuple[str, int]:
        if self._pattern[at] == "\\" and at + 1 < len(self._pattern):
            at += 1
        return self._pattern[at], at + 1


def _range(low: str, high: str) -> list[str]:
    if low <= "/" <= high and low <= high:
        return [*(_range(low, ".") if low < "/" else ()), *(_range("0", high) if high > "/" else ())]
    return [_code(low) if low == high else f"{_code(low)}-{_code(high)}"]


def _code(character: str) -> str:
    return rf"\x{{{ord(character):X}}}"
