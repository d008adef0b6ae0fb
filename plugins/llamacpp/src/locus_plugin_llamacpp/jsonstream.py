"""Reading a JSON value while it is still being written, so that an answer inside JSON can stream."""

from __future__ import annotations

import re

__all__ = ["AnswerStream", "StringReader", "ValueReader"]

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE = 6  # characters of \uXXXX
_LONE = "\ufffd"  # half a surrogate pair is not a character, and nothing downstream could encode it


class StringReader:
    """Decodes the inside of a JSON string from pieces cut anywhere, escapes and surrogate pairs included."""

    def __init__(self) -> None:
        self._rest = ""
        #: Whether the closing quote has been read; what follows it is ignored.
        self.done = False

    def feed(self, piece: str) -> str:
        """The characters that this piece completes, with what an earlier one left over."""
        text, out, at = self._rest + piece, "", 0
        while at < len(text) and not self.done:
            if text[at] == '"':
                self.done = True
            elif text[at] == "\\":
                char, width = _escape(text, at)
                if not width:
                    break
                out, at = out + char, at + width
            else:
                end = min((i for i in (text.find('"', at), text.find("\\", at)) if i >= 0), default=len(text))
                out, at = out + text[at:end], end
        self._rest = "" if self.done else text[at:]
        return out


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character of the escape at ``at`` and its width; width 0 while it is not all there."""
    if len(text) < at + 2:
        return "", 0
    if text[at + 1] != "u":
        return _ESCAPES[text[at + 1]], 2
    if len(text) < at + _UNICODE:
        return "", 0
    code = int(text[at + 2 : at + _UNICODE], 16)
    if 0xD800 <= code < 0xDC00:
        second = text[at + _UNICODE : at + 2 * _UNICODE]
        if second.startswith("\\u") or "\\u".startswith(second):
            if len(second) < _UNICODE:
                return "", 0
            low = int(second[2:], 16)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), 2 * _UNICODE
    return (_LONE if 0xD800 <= code < 0xE000 else chr(code)), _UNICODE


class ValueReader:
    """Passes one JSON value through as it is written, to its end and no further."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = False
        #: Whether the value is complete; what follows it is ignored.
        self.done = False

    def feed(self, piece: str) -> str:
        """The part of this piece that belongs to the value."""
        for at, char in enumerate(piece):
            if self.done:
                return piece[:at]
            if not self._depth and not self._quoted and char in ",}] \n\t\r":
                self.done = True  # a number or a word ends where something else begins
                return piece[:at]
            self._step(char)
        return piece

    def _step(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._quoted and char == "\\":
            self._escaped = True
        elif char == '"':
            self._quoted = not self._quoted
            self.done = not self._quoted and not self._depth
        elif not self._quoted and char in "{[":
            self._depth += 1
        elif not self._quoted and char in "}]":
            self._depth -= 1
            self.done = not self._depth


class AnswerStream:
    """Picks the answer out of a turn as it streams; a tool call yields nothing.

    Args:
        final: the name that ends a conversation, as in ``{"tool": final, "args": {"answer": ...}}``.
        raw: the answer is any JSON value, shown as it is written, instead of a string.
    """

    def __init__(self, final: str, *, raw: bool = False) -> None:
        opening = rf'\s*\{{\s*"tool"\s*:\s*"{re.escape(final)}"\s*,\s*"args"\s*:\s*\{{\s*"answer"\s*:\s*'
        # A bare value may still be preceded by white space: it begins where the first other character is.
        self._opening = re.compile(opening + (r"(?=\S)" if raw else '"'))
        self._head: str | None = ""
        self._reader: StringReader | ValueReader = ValueReader() if raw else StringReader()

    @property
    def is_final(self) -> bool:
        """Whether the turn is known to be the final one."""
        return self._head is None

    def feed(self, piece: str) -> str:
        """The part of the answer in this piece."""
        if self._head is not None:
            self._head += piece
            found = self._opening.match(self._head)
            if not found:
                return ""
            piece, self._head = self._head[found.end() :], None
        return "" if self._reader.done else self._reader.feed(piece)
