"""Server-sent events and JSON lines, in whatever pieces they arrive, and what one of them holds.

What a server sends is bounded, so that no answer fills the memory.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

import httpx2
from attrs import frozen

from locus_wire.bodies import json_value
from locus_wire.replies import Body

__all__ = [
    "ErrorInAnswer",
    "Event",
    "JsonLines",
    "LineParser",
    "Malformed",
    "ServerSentEvents",
    "Stream",
    "TooLarge",
    "check_shape",
    "json_of",
]


class Malformed(Exception):
    """An answer is invalid; raised by its reader. The text says what came instead."""


class ErrorInAnswer(Exception):
    """An answer contains an error of the provider; raised by its reader.

    Args:
        body: the error object, or what holds one.
    """

    def __init__(self, body: Mapping[str, Any] | str) -> None:
        self.body = body
        super().__init__("the provider reports an error")


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
        value = json_value(text)
    except ValueError as e:
        raise Malformed(f"a piece of the answer is not complete JSON ({e})"[:200]) from e
    if not isinstance(value, dict):
        raise Malformed(f"a piece of the answer must be an object, got {type(value).__name__}")
    if value.get("error") and not value.get("choices"):
        raise ErrorInAnswer(value)
    return value


@contextmanager
def check_shape() -> Iterator[None]:
    """Reads what a server sent: a field of another kind than the protocol says becomes `Malformed`."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as e:
        raise Malformed(f"the answer does not have the shape of the protocol ({type(e).__name__}: {e})"[:200]) from e


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


class Stream(Protocol):
    """What a server sends piece by piece."""

    async def next(self) -> Event | None:
        """The next event, or None at the end.

        Raises:
            TooLarge: it is larger than any answer.
        """
        ...


class _Text:
    """What `httpx2.EventSource` reads of a response: events in UTF-8, whatever the response says that it is.

    It ends with the line that servers forget.

    Args:
        body: of the response.
    """

    headers = httpx2.Headers({"content-type": "text/event-stream"})

    def __init__(self, body: Body) -> None:
        self.request, self._body = body.response.request, body

    async def aiter_text(self) -> AsyncIterator[str]:
        # A byte order mark is not part of the first line.
        decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        async for data in self._body.data:
            yield decode(data)
        yield f"{decode(b'', final=True)}\n\n"


class ServerSentEvents:
    """Server-sent events, by httpx2. What holds no data is left out: it only keeps a connection alive.

    Args:
        body: of the response.
        limit: the most bytes of one event.
    """

    def __init__(self, body: Body, limit: int) -> None:
        text = cast("httpx2.Response", _Text(body))
        body.read_as(aiter(httpx2.EventSource(text, max_event_size=limit)))
        self._body, self._limit = body, limit

    async def next(self) -> Event | None:
        """See `Stream`."""
        try:
            while (found := await self._body.next()) is not None:
                if found.data:
                    return Event(found.data, found.event)
        except httpx2.SSEError as e:
            raise TooLarge(f"an event has more than {self._limit:,} bytes") from e
        return None


class JsonLines:
    """JSON lines: each line that is not blank is one event.

    Args:
        body: of the response.
        limit: the most characters of one line.
    """

    def __init__(self, body: Body, limit: int) -> None:
        self._body, self._parser = body, LineParser(limit)
        self._found: deque[Event] = deque()

    async def next(self) -> Event | None:
        """See `Stream`."""
        while not self._found:
            data = await self._body.next()
            self._found.extend(self._parser.flush() if data is None else self._parser.feed(data))
            if data is None and not self._found:
                return None
        return self._found.popleft()
