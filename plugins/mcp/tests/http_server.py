"""A server made with the official SDK, over streamable HTTP on a free port of this machine, in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from attrs import define, field
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

__all__ = ["LEFT_STREAMS", "Served", "running", "serve"]

#: What trio says of the streams of the HTTP client that the SDK leaves before their end.
LEFT_STREAMS = "ignore:Exception ignored in. <async_generator object (PoolByteStream|Response|EventSource)"

PNG = b"\x89PNG\r\n\x1a\n"


@define
class Served:
    """A server that answers.

    Args:
        url: where.
        headers: of each request it got, newest last.
        cancelled: whether a call of ``slow`` was cancelled.
    """

    url: str = ""
    headers: list[dict[str, str]] = field(factory=list)
    cancelled: threading.Event = field(factory=threading.Event)


def _server(seen: Served) -> MCPServer:
    server = MCPServer("sdk", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def about(city: str) -> dict[str, Any]:
        """Facts."""
        return {"city": city, "facts": [1, 2]}

    @server.tool(structured_output=False)
    def picture() -> list[Any]:
        """A picture with words."""
        return ["see:", Image(data=PNG, format="png")]

    @server.tool()
    def broken() -> str:
        """Fail."""
        raise ToolError("it broke")

    @server.tool()
    async def slow(ctx: Context[Any, Any]) -> str:
        """Take for ever."""
        await ctx.report_progress(1, 2, "begun")
        try:
            await anyio.sleep(30)
        except BaseException:
            seen.cancelled.set()
            raise
        return "done"

    return server


class _Noting:
    """Notes the headers of requests on their way to the application."""

    def __init__(self, app: Any, seen: Served) -> None:
        self.app, self.seen = app, seen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.seen.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        await self.app(scope, receive, send)


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Serve an ASGI application; gives ``http://127.0.0.1:port``."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


@contextmanager
def serve() -> Iterator[Served]:
    """The server, while the block lasts."""
    seen = Served()
    with running(_Noting(_server(seen).streamable_http_app(), seen)) as url:
        seen.url = f"{url}/mcp"
        yield seen
