"""`make_app`: an agent as an ASGI application."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from attrs import frozen
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from locus import Agent
from locus.core.errors import ConfigError
from locus_plugin_serve.a2a import A2aApi
from locus_plugin_serve.agui import AgUiApi
from locus_plugin_serve.gate import Gate
from locus_plugin_serve.mcp import McpApi
from locus_plugin_serve.metrics import Metrics
from locus_plugin_serve.native import NativeApi
from locus_plugin_serve.openai_chat import ChatApi
from locus_plugin_serve.openai_responses import ResponsesApi
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.settings import ServeSettings
from locus_plugin_serve.turns import Turns
from locus_plugin_serve.users import Users

__all__ = ["ServedAgent", "make_app"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@frozen
class ServedAgent:
    """An ASGI application, and what a server needs to make it leave in good order.

    Args:
        turns: its runs.
        leave: set it, and the application takes no more turns, and drains.
        left: set when it has drained.
    """

    turns: Turns
    leave: anyio.Event
    left: anyio.Event
    _gate: Gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        await self._gate(scope, receive, send)


def make_app(agent: Agent[Any, Any], settings: ServeSettings | None = None, *, deps: Any = None) -> ServedAgent:
    """An agent as an ASGI application; its lifespan must be entered (``lifespan="on"``).

    Args:
        agent: an agent with a name, and with a checkpointer that keeps history.
        settings: limits and tokens; None = the defaults.
        deps: what tools get as ``ctx.deps``.

    Raises:
        ConfigError: the agent cannot be served.
    """
    settings = settings or ServeSettings()
    if not agent.name or not _NAME.fullmatch(agent.name):
        raise ConfigError(
            f"a served agent needs a name of 1 to 64 letters, digits, '.', '_' or '-', by which clients ask for it, "
            f"got {agent.name!r}; write Agent(..., name='assistant')"
        )
    if not agent.threads.store.keeps_history:
        raise ConfigError(
            f"{type(agent.threads.store).__name__} keeps no history, which events are read from; use a store that "
            "does, such as sqlite:runs.db"
        )
    metrics = Metrics(lambda: turns.running)
    turns = Turns(agent, settings, metrics, deps=deps)
    leave, left = anyio.Event(), anyio.Event()
    mcp, users = McpApi(turns), Users(settings.tokens, agent.name)

    async def health(request: Request) -> Response:
        draining = turns.draining.is_set() or leave.is_set()
        return PlainTextResponse("draining\n" if draining else "ok\n", 503 if draining else 200)

    async def expose(request: Request) -> Response:
        return Response(metrics.expose(), media_type="text/plain; version=1.0.0")

    @asynccontextmanager
    async def lifespan(app: Router) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            started = anyio.Event()

            async def live() -> None:
                try:
                    await turns.live(started=started, leave=leave)
                finally:
                    left.set()

            group.start_soon(live)
            group.start_soon(mcp.live, left)
            await started.wait()
            yield
            leave.set()
            await left.wait()

    routes = [
        Route("/healthz", health, methods=["GET"]),
        Route("/metrics", expose, methods=["GET"]),
        *NativeApi(turns, users).routes,
        *ChatApi(turns).routes,
        *ResponsesApi(turns).routes,
        *AgUiApi(turns).routes,
        *A2aApi(turns).routes,
        *mcp.routes,
    ]
    router = Router(routes, redirect_slashes=False, default=_not_found, lifespan=lifespan)
    return ServedAgent(turns, leave, left, Gate(router, settings, users, metrics))


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise Problem(404, f"nothing is at {scope['path']!r:.200}", code="unknown_path")
