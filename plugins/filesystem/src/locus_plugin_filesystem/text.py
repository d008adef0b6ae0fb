"""The text of a file: its lines as tools show them, the one place that an edit replaces, the lines that a search finds.

Pure functions over whole files, for every backend.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import re2  # type: ignore[import-untyped]  # it ships no types

from locus.files import MAX_MATCHES, MAX_PAGE_CHARS, BackendError, GrepMatch

__all__ = ["MAX_FILE_BYTES", "MAX_LINE_CHARS", "LineSearch", "decode", "encode", "number_lines", "replace_once"]

#: The largest file that is written or edited, and of a line the most that is shown.
MAX_FILE_BYTES, MAX_LINE_CHARS = 10_000_000, 2_000

#: A file with a NUL byte in its beginning is not searched.
_BINARY = 8_192
#: A longer pattern is refused: it is data, not a pattern.
_LONGEST_PATTERN = 4_000


def encode(contents: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a text to be written.

    Raises:
        BackendError: ``not_text``: it has a lone surrogate; ``too_large``.
    """
    try:
        data = contents.encode()
    except UnicodeEncodeError as e:
        raise BackendError("not_text", f"the contents have a lone surrogate at character {e.start}") from None
    if len(data) > limit:
        raise BackendError("too_large", f"{len(data):,} bytes; a file may have {limit:,}")
    return data


def decode(data: bytes) -> str:
    """The text of a file.

    Raises:
        BackendError: ``not_text``: it is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise BackendError("not_text", f"the file is not UTF-8 at byte {e.start}") from None


def number_lines(text: str, offset: int = 0, limit: int = 100) -> str:
    r"""Lines as ``cat -n`` writes them; a line ends at ``\n`` alone.

    It stops after the line with which the page becomes longer than `locus.files.MAX_PAGE_CHARS`.

    Args:
        text: the whole file.
        offset: how many lines to leave out; less than 0 counts as 0.
        limit: how many to show at most; 0 or less means all.
    """
    offset, numbered, length = max(offset, 0), [], 0
    for number, line in _lines(text, offset, offset + limit if limit > 0 else None):
        if len(line) > MAX_LINE_CHARS:
            line = f"{line[:MAX_LINE_CHARS]} [and {len(line) - MAX_LINE_CHARS:,} characters more]"
        numbered.append(f"{number:>6}\t{line}")
        length += len(numbered[-1]) + 1
        if length > MAX_PAGE_CHARS:
            break
    return "\n".join(numbered)


def _lines(text: str, start: int, end: int | None) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, from the one after ``start`` up to the one with the number ``end``."""
    at, number = 0, 0
    while at < len(text) and (end is None or number < end):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        number += 1
        if number > start:
            yield number, text[at:stop]
        at = stop + 1


def replace_once(text: str, old: str, new: str, path: str) -> str:
    r"""The text with its only occurrence of ``old`` replaced.

    In a file whose lines end with ``\r\n``, the line ends of ``old`` and ``new`` become such ones, since a model sees
    lines without their ends.

    Raises:
        ValueError: it does not occur, or more than once; the message is for the model.
    """
    if not old:
        raise ValueError("old_str is empty; expected text that occurs once in the file")
    found = _occurrences(text, old)
    if not found and "\n" in old and "\r\n" in text:
        old, new = (re.sub(r"\r?\n", "\r\n", each) for each in (old, new))
        found = _occurrences(text, old)
    if not found:
        raise ValueError(f"old_str does not occur in {path}; read the file, and give the text as it is there")
    if found > 1:
        raise ValueError(f"old_str occurs {found:,} times in {path}; give a longer text that occurs once")
    return text.replace(old, new)


def _occurrences(text: str, wanted: str) -> int:
    """How often a text occurs, occurrences that overlap included."""
    found, at = 0, text.find(wanted)
    while at >= 0:
        found, at = found + 1, text.find(wanted, at + 1)
    return found


class LineSearch:
    """A regular expression over the lines of files, in RE2's syntax and in time that grows with the text alone.

    Args:
        pattern: no match goes beyond a line; ``^`` and ``$`` are the line's ends.

    Raises:
        BackendError: ``invalid_pattern``, with what RE2 says of it.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > _LONGEST_PATTERN:
            raise BackendError("invalid_pattern", f"{len(pattern):,} characters; at most {_LONGEST_PATTERN:,}")
        options = re2.Options()
        options.log_errors = False
        options.never_nl = True
        try:
            self._search: Any = re2.compile(f"(?m){pattern}", options=options).search
        except (re2.error, UnicodeEncodeError) as e:
            said = e.args[0].decode(errors="replace") if e.args and isinstance(e.args[0], bytes) else str(e)
            raise BackendError(
                "invalid_pattern", f"{said}; patterns are RE2's, without look-around and back-references"
            ) from None

    def matches(
        self, path: str, data: bytes, limit: int = MAX_MATCHES, keep_on: Callable[[], object] | None = None
    ) -> Iterator[GrepMatch]:
        """The lines of a file that match; none of a binary one.

        Args:
            path: what the matches say.
            data: the whole file.
            limit: how many lines at most.
            keep_on: called before each match is looked for; it raises once the time is up.
        """
        if b"\0" in data[:_BINARY]:
            return
        at, number = 0, 1
        while at < len(data) and limit > 0:
            if keep_on is not None:
                keep_on()
            match = self._search(data, at)
            # An end of the text behind its last line end begins no line.
            if match is None or (match.start() == len(data) and data.endswith(b"\n")):
                return
            start = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", match.start())
            stop = len(data) if stop < 0 else stop
            number += data.count(b"\n", at, start)
            line = data[start:stop].removesuffix(b"\r").decode(errors="replace")
            yield GrepMatch(path, number, line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}...")
            at, number, limit = stop + 1, number + 1, limit - 1
