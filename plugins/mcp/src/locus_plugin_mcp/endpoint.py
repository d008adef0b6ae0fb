"""`McpEndpoint`: tools served over MCP at an address of a server that is there already, and knows who asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from locus_plugin_mcp.serving import make_server

__all__ = ["McpEndpoint"]


class McpEndpoint:
    """An ASGI application that answers requests of MCP's streamable HTTP, whatever their path.

    The server around it has checked the token, ``Host`` and ``Origin`` of a request and the length of its body. A call
    enters the tool's body as in `serve`. When the client cancels it (`notifications/cancelled`; in the protocol of
    2026-07-28 by closing the connection) the body is cancelled. A session can be used by the user who opened it alone.

    Args:
        source: an agent, whose own tools are served, or what ``Agent(tools=...)`` takes.
        user_of: the name of the user that a request comes from, by its ASGI scope; tools get it as ``ctx.deps``.
        name: what the server is called; the agent's name, or ``"locus"``.
        max_sessions: how many sessions of clients of the older protocols may be open; a further one gets 503.

    Raises:
        ToolDefinitionError: an item is not a tool.
        ConfigError: no tools are given.
    """

    def __init__(
        self, source: object, user_of: Callable[[Scope], str], *, name: str = "", max_sessions: int = 1000
    ) -> None:
        def deps_of(ctx: ServerRequestContext[Any]) -> str:
            assert ctx.request is not None, "a request over HTTP has one"
            return user_of(ctx.request.scope)

        self._user_of = user_of
        self._manager = StreamableHTTPSessionManager(make_server(source, deps_of, name=name), max_sessions=max_sessions)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Requests are answered inside of it, and calls that are under way at its end are cancelled. Enter it once."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        # How the SDK knows whose session it is. The token itself was checked before, and is not passed on.
        owner = AccessToken(token="", client_id=self._user_of(scope), scopes=[])
        await self._manager.handle_request({**scope, "user": AuthenticatedUser(owner)}, receive, send)
