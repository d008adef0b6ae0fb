"""A proxy between a store and its server that loses one message at a point, and lets everything else through."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Literal

__all__ = ["Proxy"]

#: What is lost: the next publish on its way to the server, or the server's answer to it.
Loss = Literal["publish", "answer"]

_PUBLISH = re.compile(rb"^H?PUB (\S+) (\S+) ")


class Proxy:
    """Listens on a free port in a thread of its own.

    Args:
        port: of the server.
        matters: which publishes count, by their subject.
    """

    def __init__(self, port: int, matters: Callable[[str], bool]) -> None:
        self._server, self._matters = port, matters
        self.port = 0
        #: What to lose, in this order; each time the connection breaks as well.
        self.losses: list[Loss] = []
        #: What was lost.
        self.lost: list[Loss] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._end: asyncio.Event
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)
        self._loop.close()

    async def _run(self) -> None:
        self._end = asyncio.Event()
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        listening.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted close in the next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", self._server)
        awaited: list[bytes] = []
        ways = [
            asyncio.ensure_future(self._to_server(reader, here, awaited)),
            asyncio.ensure_future(self._to_client(there, writer, awaited)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, here):
                end.transport.abort()

    async def _to_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: list[bytes]
    ) -> None:
        while data := await self._frame(reader):
            found = _PUBLISH.match(data)
            if found and self.losses and self._matters(found[1].decode()):
                if self.losses[0] == "publish":
                    self.lost.append(self.losses.pop(0))
                    return
                awaited.append(found[2])
            writer.write(data)
            await writer.drain()

    async def _to_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: list[bytes]
    ) -> None:
        while data := await self._frame(reader):
            if awaited and self.losses and data.split(b" ", 2)[1:2] == [awaited[0]]:
                self.lost.append(self.losses.pop(0))
                return
            writer.write(data)
            await writer.drain()

    async def _frame(self, reader: asyncio.StreamReader) -> bytes:
        """One message of the protocol, with its body."""
        try:
            line = await reader.readline()
            if line.split(b" ", 1)[0] in (b"PUB", b"HPUB", b"MSG", b"HMSG"):
                line += await reader.readexactly(int(line.rsplit(None, 1)[1]) + 2)
        except (OSError, asyncio.IncompleteReadError):
            return b""
        return line
