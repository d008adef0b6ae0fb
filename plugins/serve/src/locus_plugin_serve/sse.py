"""Server-sent events: how one is written, and the response that sends them until they end or the client leaves."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

import anyio
from starlette.types import Receive, Scope, Send

from locus_kit.entry_json import to_bytes

__all__ = ["EventStream", "PieceWriter", "write_comment", "write_event"]

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy that waits for more would hold events back
    (b"x-content-type-options", b"nosniff"),
]


#: One for all: `json.dumps` would make another one each time.
_escape = json.JSONEncoder(separators=(",", ":"), default=str).encode


def _encode(data: Any) -> bytes:
    """The JSON of a value on one line of ASCII; a part that has no JSON form is its text."""
    try:
        text = to_bytes(data)
    except TypeError:
        return _escape(data).encode()
    # Many clients split lines at U+2028 and U+0085 as well, although EventSource does not.
    return text if text.isascii() else _escape(data).encode()


def write_event(data: Any, *, name: str = "", id: str = "") -> bytes:  # noqa: A002  the field's name
    """One event. The data is JSON on one line, so nothing in it can end the event or begin another one.

    Args:
        data: what has a JSON form, or a text that is sent as it is and has no line break.
        name: its type, or ``""``.
        id: what the client sends as ``Last-Event-ID`` when it comes again, or ``""``.
    """
    text = data.encode() if isinstance(data, str) else _encode(data)
    head = (f"id: {id}\n" if id else "") + (f"event: {name}\n" if name else "")
    return b"%bdata: %b\n\n" % (head.encode(), text)


class PieceWriter:
    """Writes the events that have a piece of text, of which an answer has hundreds: they differ in that text alone.

    Args:
        form: what has a JSON form, with `PieceWriter.HOLE` where the text comes.
        name: the type of the events, or ``""``.
    """

    #: Stands for the text. It is nothing that a model or a user could have put anywhere else in the form.
    HOLE = f"{uuid4()}"

    def __init__(self, form: Any, *, name: str = "") -> None:
        self._head, self._tail = write_event(form, name=name).split(b'"%b"' % self.HOLE.encode())

    def write(self, piece: str) -> bytes:
        """The event of a piece."""
        return b"%b%b%b" % (self._head, _encode(piece), self._tail)


def write_comment(text: str) -> bytes:
    """A line that clients ignore, which keeps a connection in use."""
    return f": {text}\n\n".encode()


class EventStream:
    """A response that is a stream of events.

    Args:
        frames: the bytes of the events.
        on_leave: called if the client leaves before the end.
        on_close: called in the end in any case.
    """

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        *,
        on_leave: Callable[[], object] | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self._frames, self._on_leave, self._on_close = frames, on_leave, on_close
        self._has_left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch, receive, group.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                async for frame in self._frames:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._frames.aclose()
            if self._on_close is not None:
                self._on_close()
            if self._has_left and self._on_leave is not None:
                self._on_leave()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._has_left = True
        scope.cancel()
