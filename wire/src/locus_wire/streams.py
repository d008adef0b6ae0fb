"""Server-sent events and JSON lines, from bytes in whatever pieces they arrive.

Nothing waits here: bytes go in, events come out. What a server sends is bounded, so that no answer fills the memory.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from attrs import frozen

__all__ = ["Event", "EventParser", "LineParser", "Malformed", "Parser", "Told", "TooLarge", "json_of", "shaped"]


class Malformed(Exception):
    """Raised by who reads an answer: it is none. Its text says what came instead."""


class Told(Exception):
    """Raised by who reads an answer: it is an error that the provider tells.

    Args:
        body: the error object, or what holds one.
    """

    def __init__(self, body: Mapping[str, Any] | str) -> None:
        self.body = body
        super().__init__("the provider tells an error")


class TooLarge(ValueError):
    """A line or an event is larger than any answer."""


@frozen
class Event:
    """One server-sent event, or one line.

    Args:
        data: its text; of an event, its ``data`` lines joined by line breaks.
        event: its kind, ``"message"`` where it has none.
    """

    data: str
    event: str = "message"


def json_of(text: str) -> dict[str, Any]:
    """The JSON object that an event holds.

    Raises:
        Malformed: it holds something else.
        Told: it holds nothing but an error.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Malformed(f"a piece of the answer is no whole JSON ({e})"[:200]) from e
    if not isinstance(value, dict):
        raise Malformed(f"a piece of the answer is {type(value).__name__}, and should be an object")
    if value.get("error") and not value.get("choices"):
        raise Told(value)
    return value


@contextmanager
def shaped() -> Iterator[None]:
    """Reads what a server sent: a field of another kind than the protocol says becomes `Malformed`."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as e:
        raise Malformed(f"the answer has another shape than the protocol says ({type(e).__name__}: {e})"[:200]) from e


class Parser(Protocol):
    """Turns bytes into events."""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        ...

    def flush(self) -> list[Event]:
        """What the end of the stream completes."""
        ...


class LineParser:
    """JSON lines: each line that is not blank is one event.

    Args:
        limit: the most characters of one line.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Event]:
        """The lines that these bytes complete.

        Raises:
            TooLarge: a line is longer than the limit.
        """
        return [Event(line) for line in self.lines(self._decode(data)) if line.strip()]

    def flush(self) -> list[Event]:
        """The last line, where it does not end with a line break."""
        line = "".join(self._rest) + self._decode(b"", final=True)
        self._rest.clear()
        return [Event(line)] if line.strip() else []

    def lines(self, text: str) -> list[str]:
        """The lines that a text completes, without their ends."""
        head, *others = text.split("\n")
        if not others:
            self._keep(head)
            return []
        lines = ["".join((*self._rest, head)), *others[:-1]]
        self._rest.clear()
        self._size = 0
        self._keep(others[-1])
        return [line.removesuffix("\r") for line in lines]

    def _keep(self, text: str) -> None:
        if text:
            self._size += len(text)
            if self._size > self._limit:
                raise TooLarge(f"a line has more than {self._limit:,} characters")
            self._rest.append(text)


class EventParser:
    """Server-sent events (WHATWG HTML, 9.2.6), but for lines that end with a carriage return alone: nobody sends them.

    Args:
        limit: the most characters of one event.
    """

    def __init__(self, limit: int) -> None:
        self._lines = LineParser(limit)
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._data: list[str] = []
        self._size = 0
        self._event = ""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete.

        Raises:
            TooLarge: an event is larger than the limit.
        """
        return [event for line in self._lines.lines(self._decode(data)) if (event := self._take(line)) is not None]

    def flush(self) -> list[Event]:
        """The last event, where no blank line ends it; servers forget that one."""
        found = [self._take(event.data.removesuffix("\r")) for event in self._lines.flush()]
        return [event for event in (*found, self._take("")) if event is not None]

    def _take(self, line: str) -> Event | None:
        if not line:
            done = Event("\n".join(self._data), self._event or "message") if self._data else None
            self._data, self._event, self._size = [], "", 0
            return done
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._size += len(value)
            if self._size > self._limit:
                raise TooLarge(f"an event has more than {self._limit:,} characters")
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None
