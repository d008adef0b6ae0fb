"""A pooler in transaction mode, as PgBouncer is: a connection of the server is lent for one transaction.

A client is let in by a connection of its own, which joins the others then. Every transaction has the one that was not
used for longest, so whatever a client leaves behind in a session is not there in its next transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from types import TracebackType

__all__ = ["Pooler"]


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _answer(server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    """Pass on what a server says until no transaction is open."""
    while (said := await _message(server))[:1] != b"Z" or said[5:6] != b"I":
        to_client.write(said)
    to_client.write(said)


class Pooler:
    """Listens on loopback, in a thread of its own.

    Args:
        port: of the server.
    """

    def __init__(self, port: int) -> None:
        self._server, self.port = port, 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._lent: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> Pooler:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self) -> None:
        self._end, self._some = asyncio.Event(), asyncio.Condition()
        server = await asyncio.start_server(self._let_in, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for _, writer in self._lent:
            writer.transport.abort()
        await asyncio.sleep(0.01)  # they are closed by the loop

    async def _let_in(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            await self._talk(client, to_client)
        finally:
            to_client.transport.abort()

    async def _talk(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            size = await client.readexactly(4)
            start = size + await client.readexactly(int.from_bytes(size, "big") - 4)
            while start[4:8] == (80877103).to_bytes(4, "big"):  # no TLS here
                to_client.write(b"N")
                size = await client.readexactly(4)
                start = size + await client.readexactly(int.from_bytes(size, "big") - 4)
            server, to_server = await asyncio.open_connection("127.0.0.1", self._server)
            to_server.write(start)
            while True:
                said = await _message(server)
                to_client.write(said)
                if said[:1] == b"Z":
                    break
                if said[:1] == b"R" and int.from_bytes(said[5:9], "big") in (3, 5, 10, 11):
                    to_server.write(await _message(client))
                if said[:1] == b"E":
                    return
            await self._give_back(server, to_server)
            asked = await _message(client)
            while True:
                asked = await self._lend(asked, client, to_client)

    async def _lend(self, asked: bytes, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> bytes:
        """One transaction, on a connection of the server; gives what begins the next one."""
        async with self._some:
            await self._some.wait_for(lambda: self._lent)
            server, to_server = self._lent.popleft()
        answers = asyncio.create_task(_answer(server, to_client))
        try:
            while True:
                to_server.write(asked)
                more = asyncio.create_task(_message(client))
                await asyncio.wait({more, answers}, return_when=asyncio.FIRST_COMPLETED)
                if answers.done():
                    break
                asked = more.result()
        except BaseException:
            answers.cancel()
            to_server.transport.abort()
            raise
        await self._give_back(server, to_server)
        return await more

    async def _give_back(self, server: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        async with self._some:
            self._lent.append((server, to_server))
            self._some.notify()
