"""A viewer on a free port of this machine, served by the real server in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from attrs import frozen

from locus.journal import JournalStore
from locus_plugin_viewer.app import make_app
from locus_plugin_viewer.serving import bind
from locus_plugin_viewer.viewer import Viewer

TOKEN = "a-token-for-tests"


@frozen
class Served:
    """A viewer that answers.

    Args:
        address: ``http://127.0.0.1:PORT``.
        run: runs a function on the event loop of the server, where its store lives.
    """

    address: str
    viewer: Viewer
    _loop: asyncio.AbstractEventLoop

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """What the function gives."""

        async def main() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(main(), self._loop).result(60)

    @contextmanager
    def client(self, token: str = TOKEN) -> Iterator[httpx.Client]:
        """A browser that was given the token."""
        with httpx.Client(base_url=self.address, timeout=60, headers={"origin": self.address}) as made:
            answer = made.get("/", params={"token": token})
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            yield made


@contextmanager
def serving(make_store: Callable[[], JournalStore], **options: Any) -> Iterator[Served]:
    """Serve the threads of a store, which is made on the event loop of the server."""
    ready = threading.Event()
    made: list[Served] = []
    servers: list[uvicorn.Server] = []

    async def main() -> None:
        store = make_store()
        viewer = Viewer(store, name="shop.db", **options)
        with bind("127.0.0.1", 0) as listening:
            app = make_app(viewer, token=TOKEN)
            config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
            server = uvicorn.Server(config)
            servers.append(server)
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            made.append(Served(address, viewer, asyncio.get_running_loop()))
            ready.set()
            await server.serve([listening])
        close = getattr(store, "aclose", None)
        if close is not None:
            await close()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="viewer under test")
    thread.start()
    try:
        assert ready.wait(60)
        yield made[0]
    finally:
        made[0].viewer.is_closing = servers[0].should_exit = True
        thread.join(60)
        assert not thread.is_alive()
