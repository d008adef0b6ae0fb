"""`LocalServer`: an HTTP server on loopback that sends scripted answers, however malformed.

It runs in a thread with an event loop of its own, so that tests on asyncio and on trio talk to the same one, and it
counts connections, so that a test sees which were left open. It is written on sockets: what a server must never do, no
framework lets it do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal

from attrs import evolve, field, frozen

__all__ = ["Answer", "Ending", "LocalServer", "ReceivedRequest"]

#: Seconds that the server waits for anything; a test that takes longer has failed already.
_PATIENCE = 30.0

Ending = Literal["whole", "cut", "reset", "silent"]


@frozen(kw_only=True)
class ReceivedRequest:
    """A request as it arrived.

    Args:
        method, path: of its first line.
        headers: by lower-case names.
        body: the bytes.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


def _pieces(body: str | bytes | Iterable[bytes]) -> tuple[bytes, ...]:
    if isinstance(body, str):
        return (body.encode(),)
    return (body,) if isinstance(body, bytes) else tuple(body)


@frozen(kw_only=True)
class Answer:
    """What the server says to one request.

    Args:
        status: of the response; 0 = not even a status line.
        media_type: of the body, or None for none.
        headers: further ones.
        body: text, bytes, or pieces that are sent one by one.
        pause: seconds between pieces.
        repeat: how often the pieces are sent.
        chunked: send them as chunks; else with a content length.
        ending: ``"whole"``: as HTTP says; ``"cut"``: the connection is closed in the middle of the body;
            ``"reset"``: it is reset there; ``"silent"``: nothing more comes, until the client goes.
    """

    status: int = 200
    media_type: str | None = "application/json"
    headers: Mapping[str, str] = field(factory=dict)
    body: tuple[bytes, ...] = field(default=(), converter=_pieces)
    pause: float = 0.0
    repeat: int = 1
    chunked: bool = False
    ending: Ending = "whole"

    @classmethod
    def of(cls, data: Any, **fields: Any) -> Answer:
        """An answer in JSON."""
        return cls(body=json.dumps(data).encode(), **fields)

    @classmethod
    def events(cls, *events: Any, done: str = "[DONE]", named: bool = False, **fields: Any) -> Answer:
        """An answer as server-sent events.

        Args:
            events: text, or what is encoded as JSON.
            done: the data of a last event, or ``""`` for none.
            named: whether each event is called by its field ``type``.
            fields: of the answer.
        """
        pieces = []
        for event in (*events, *((done,) if done else ())):
            name = f"event: {event['type']}\n" if named and isinstance(event, Mapping) else ""
            data = event if isinstance(event, str) else json.dumps(event)
            pieces.append(f"{name}data: {data}\n\n".encode())
        return cls(**{"media_type": "text/event-stream", "chunked": True, "body": pieces, **fields})

    def with_fields(self, **fields: Any) -> Answer:
        """The same with other fields."""
        return evolve(self, **fields)


#: Says what is answered; it runs in the thread of the server.
Answering = Callable[[ReceivedRequest], Answer]


class LocalServer:
    """A server on a free port of 127.0.0.1; used in a ``with``.

    Args:
        answering: makes the answer when none is queued; None = an error 500.
    """

    def __init__(self, answering: Answering | None = None) -> None:
        self.answering = answering
        #: What was asked, in order.
        self.received: list[ReceivedRequest] = []
        #: Connections that are open now, the most at a time, and all there ever were.
        self.open = self.most = self.connections = 0
        self._queued: deque[Answer] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="local server", daemon=True)
        self._ready = threading.Event()
        self._changed = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        """``"http://127.0.0.1:PORT"``."""
        return f"http://127.0.0.1:{self.port}"

    def then(self, *answers: Answer) -> None:
        """Queue answers: each is given once, before `answering` is asked."""
        self._queued.extend(answers)

    def wait_until_idle(self, patience: float = 5.0) -> bool:
        """Wait until no connection is open; False when some are after ``patience`` seconds."""
        return self.wait_for(lambda: self.open == 0, patience)

    def wait_for(self, condition: Callable[[], bool], patience: float = 5.0) -> bool:
        """Wait until connections or requests have made a condition true; False when it is not after ``patience`` s."""
        with self._changed:
            return self._changed.wait_for(condition, patience)

    def __enter__(self) -> LocalServer:
        self._thread.start()
        self._ready.wait(_PATIENCE)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE)

    # -- in its thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            # Accept no more, but keep the server until those that were accepted have begun: in the middle of that
            # asyncio loses their sockets when it is closed.
            with contextlib.suppress(NotImplementedError):  # by Windows' loop
                for listening in server.sockets:
                    self._loop.remove_reader(listening)
            await self._end_connections()
            server.close()

    async def _end_connections(self) -> None:
        cancelled: set[asyncio.Task[Any]] = set()
        # A connection that was accepted just now has a task that has not begun, and that would never close it if it
        # were cancelled before: so it is let begin.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._tasks - cancelled:
                task.cancel()
                cancelled.add(task)
            await asyncio.wait(others, timeout=0.01)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._count(1)
        try:
            while (request := await _request(reader)) is not None:
                self._keep(request)
                answer = self._answer(request)
                await _send(answer, writer, reader)
                if answer.ending != "whole":
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)
            self._count(-1)

    def _keep(self, request: ReceivedRequest) -> None:
        with self._changed:
            self.received.append(request)
            self._changed.notify_all()

    def _count(self, change: int) -> None:
        with self._changed:
            self.open += change
            self.connections += change > 0
            self.most = max(self.most, self.open)
            self._changed.notify_all()

    def _answer(self, request: ReceivedRequest) -> Answer:
        if self._queued:
            return self._queued.popleft()
        if self.answering is None:
            return Answer.of({"error": {"message": "the test has no answer to this"}}, status=500)
        try:
            return self.answering(request)
        except Exception as e:  # noqa: BLE001  # an error in this thread would go unseen
            return Answer.of({"error": {"message": f"the test's answering raised {e!r}"}}, status=500)


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method=method, path=path, headers=headers, body=body)


async def _send(answer: Answer, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
    if answer.status:
        size = sum(map(len, answer.body)) * answer.repeat
        headers = {"content-type": answer.media_type, **answer.headers}
        if answer.chunked:
            headers["transfer-encoding"] = "chunked"
        else:
            # A truncated body announces more than it sends.
            headers["content-length"] = str(size + (answer.ending != "whole"))
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{k}: {v}" for k, v in headers.items() if v is not None)]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await writer.drain()
    for _ in range(answer.repeat):
        for piece in answer.body:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked and piece else piece)
            await writer.drain()
            if answer.pause:
                await _wait_until_closed(reader, answer.pause)
    match answer.ending:
        case "whole" if answer.chunked:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        case "reset":
            await asyncio.sleep(0.02)  # what was sent should arrive first
            _reset(writer)
        case "silent":
            await _wait_until_closed(reader, _PATIENCE)


async def _wait_until_closed(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait; a client that goes meanwhile ends everything.

    Raises:
        ConnectionError: it went.
    """
    began = time.monotonic()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while await reader.read(1024):
                pass
    if time.monotonic() - began < seconds:
        raise ConnectionError("the client went away")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close in the way that the other side sees as a failure: with a reset, not with an end."""
    plug = writer.get_extra_info("socket")
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
