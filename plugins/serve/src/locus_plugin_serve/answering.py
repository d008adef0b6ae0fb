"""How a request that begins a turn is answered, whatever the protocol: at its end, or event by event.

What has gone wrong before the turn is accepted is an HTTP error. A client that leaves before the end takes the run with
it or does not, as it was asked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, get_args

import anyio
from starlette.requests import Request

from locus import AgentResult
from locus.journal import JournalHost
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.settings import OnDisconnect
from locus_plugin_serve.sse import EventStream
from locus_plugin_serve.turns import Turn, Turns
from locus_plugin_serve.users import ThreadName

__all__ = [
    "ClientLeft",
    "await_result",
    "check_request_id",
    "read_request_id",
    "stream_turn",
    "take_on_disconnect",
    "user_of",
]

_LEFT = "the client left"

#: Characters of a request id.
_LONGEST = 256


class ClientLeft(Exception):
    """The client has left before its answer."""


def user_of(request: Request) -> str:
    """The user that the gate has found."""
    user: str = request.scope["locus.user"]
    return user


def read_request_id(request: Request, body: Body) -> str:
    """The client's name for a turn: ``request_id`` of the body, or the header ``Idempotency-Key``; ``""`` without.

    Raises:
        Problem: it cannot be one.
    """
    return check_request_id(body.take("request_id", str, "") or request.headers.get("idempotency-key", ""))


def check_request_id(text: str) -> str:
    """The same text, if it can be a client's name for a turn.

    Raises:
        Problem: it cannot.
    """
    if len(text) > _LONGEST or not text.isprintable():
        raise Problem.of_input(
            f"a request id must have at most {_LONGEST} printable characters, got {text!r:.80}", param="request_id"
        )
    return text


def take_on_disconnect(body: Body, default: OnDisconnect) -> bool:
    """Whether the run is cancelled if its client leaves."""
    return body.take_choice("on_disconnect", get_args(OnDisconnect), default) == "cancel"


async def await_result(request: Request, turn: Turn, *, cancels: bool) -> AgentResult[Any]:
    """The result of a turn.

    Args:
        request: whose body has been read.
        turn: the turn.
        cancels: cancel it if the client leaves.

    Raises:
        ClientLeft: the client has left.
        LocusError: what the run raised.
    """
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        turn.readers += 1
        try:
            await turn.finished.wait()
        finally:
            turn.readers -= 1
        group.cancel_scope.cancel()
    if not turn.finished.is_set():
        if cancels:
            _cancel_unread(turn)
        raise ClientLeft
    return await turn.wait()


async def stream_turn(
    turns: Turns,
    thread: ThreadName,
    begin: Callable[[], Awaitable[Turn]],
    write: Callable[[Turn, Feed], AsyncGenerator[bytes, None]],
    *,
    cancels: bool,
    tells_text: bool = True,
) -> EventStream:
    """Begin a turn, and answer with its events.

    Args:
        turns: where it runs.
        thread: of the turn.
        begin: begins it.
        write: its events, in the words of a protocol.
        cancels: cancel it if the client leaves.
        tells_text: the feed is to know what it has missed of the turn's text.

    Raises:
        Problem, LocusError: it cannot begin.
    """
    with ExitStack() as stack:
        feed = stack.enter_context(turns.listen(thread))
        if tells_text:
            runs = turns.find(thread) is not None
            feed.missed = await JournalHost.peek(turns.store, thread.thread_id)
            feed.is_late = runs or turns.find(thread) is not None
        turn = await begin()
        kept = stack.pop_all()
    turn.readers += 1

    def close() -> None:
        turn.readers -= 1
        kept.close()

    on_leave = partial(_cancel_unread, turn) if cancels else None
    return EventStream(write(turn, feed), on_leave=on_leave, on_close=close)


def _cancel_unread(turn: Turn) -> None:
    """Cancel a turn whose client has left, unless that has come again, on another connection, in the meantime."""
    if not turn.readers:
        turn.cancel(_LEFT)
