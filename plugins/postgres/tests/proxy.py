"""What stands between a store and its server, and loses things: a relay on loopback in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Literal

__all__ = ["Fate", "Proxy"]

#: What becomes of something that a client sends: it is passed on; the connection is cut before the server gets it; or
#: behind it, so that it is done and the answer is lost.
Fate = Literal["pass", "lose", "lose answer"]

#: Seconds of silence after which a server has said all that it has to say.
_QUIET = 0.15


class Proxy:
    """A relay to a port of this machine.

    Args:
        port: of the server.
        judge: decides what becomes of what a client sends.
    """

    def __init__(self, port: int, judge: Callable[[bytes], Fate]) -> None:
        self._server, self.judge = port, judge
        #: Where it listens.
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> Proxy:
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
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # the connections are closed by the loop

    async def _relay(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            server, to_server = await asyncio.open_connection("127.0.0.1", self._server)
            back = asyncio.create_task(_copy(server, to_client))
            try:
                while data := await client.read(1 << 20):
                    fate = self.judge(data)
                    if fate == "lose":
                        break
                    if fate == "lose answer":
                        back.cancel()
                        to_server.write(data)
                        await _drain(server)
                        break
                    to_server.write(data)
                    await to_server.drain()
            finally:
                back.cancel()
                to_server.close()
                to_client.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 20):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _drain(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(TimeoutError):
        while await asyncio.wait_for(reader.read(1 << 20), _QUIET):
            pass
