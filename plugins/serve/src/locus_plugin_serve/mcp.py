"""MCP: the agent as a tool of another program's model. A call is a turn, and the mcp plugin speaks the protocol."""

from __future__ import annotations

import re
from typing import Any, Protocol

import anyio
import anyio.to_thread
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from locus import ToolContext, tool
from locus.core.errors import LocusError, ToolError
from locus.core.events import ToolStartEvent
from locus.plugin import Lazy
from locus_plugin_serve.answer_text import whole_text
from locus_plugin_serve.answering import check_request_id
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.native import name_new_thread
from locus_plugin_serve.openai_outcome import check_ended, describe_run
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.turns import Turn, Turns
from locus_plugin_serve.users import ThreadName

__all__ = ["McpApi"]

# Another distribution, which may be missing; clients then read its name.
mcp: Any = Lazy("locus.mcp")

_CANCELLED = "the client cancelled the call"

#: Characters of an answer that a client gets.
_LONGEST = 10_000_000

#: Seconds between two looks whether a run has ended; its feed says so at once, and this is for a feed that was overrun.
_LOOK = 15.0


class _Endpoint(Protocol):
    """What this module uses of the mcp plugin's endpoint."""

    def run(self) -> Any: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class McpApi:
    """``/mcp``.

    The SDK of MCP takes a while to import, so that is done at the first request.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_wanted, self._is_known = anyio.Event(), anyio.Event()
        self._endpoint: _Endpoint | None = None
        self._missing = ""

    @property
    def routes(self) -> list[Route]:
        """Where it is."""
        return [Route("/mcp", self, methods=["DELETE", "GET", "POST"])]

    async def live(self, left: anyio.Event) -> None:
        """Keep what clients have open until the server has drained.

        Args:
            left: set when it has.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve)
            await left.wait()
            group.cancel_scope.cancel()

    async def _serve(self) -> None:
        await self._is_wanted.wait()
        try:
            endpoint: _Endpoint = await anyio.to_thread.run_sync(self._make)
            async with endpoint.run():
                self._endpoint = endpoint
                self._is_known.set()
                await anyio.sleep_forever()
        except ImportError as e:
            self._missing = f"MCP needs a plugin here: pip install locus-plugin-mcp ({e})"
        finally:
            self._endpoint = None
            self._is_known.set()

    def _make(self) -> _Endpoint:
        name = self._turns.agent.name or ""
        made: _Endpoint = mcp.McpEndpoint(
            _make_tool(self._turns, name),
            lambda scope: scope["locus.user"],
            name=name,
            max_sessions=self._turns.settings.max_requests,
        )
        return made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        # All of the body is read before the SDK sees any of it, so that one that is too long is refused as elsewhere.
        body = await _read_body(receive)
        self._is_wanted.set()
        await self._is_known.wait()
        if self._endpoint is None:
            if self._missing:
                raise Problem(501, self._missing, kind="server_error", code="plugin_missing")
            raise Problem.of_load("the server is leaving; ask the next one", seconds=2)
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._endpoint(scope, replay, send)


async def _read_body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _make_tool(turns: Turns, name: str) -> Any:
    """The agent as a tool of MCP, whose dependencies are the name of the user."""

    @tool(
        name=re.sub(r"[^A-Za-z0-9_-]", "_", name),
        description=f"Ask the agent {name}. It works on the prompt with its own tools, and says what came of it.",
        max_result_chars=_LONGEST,
    )
    async def ask_agent(prompt: str, ctx: ToolContext[str], thread: str = "") -> dict[str, Any]:
        """Ask the agent.

        Args:
            prompt: what the agent is to do, with everything that it has to know.
            ctx: of the call.
            thread: the thread of an earlier result, to go on with that conversation; without it a new one begins.
        """
        try:
            key = check_request_id(ctx.idempotency_key)  # the client's, or one that is new
            named = ThreadName.of(ctx.deps, thread or name_new_thread("mcp", key))
            with turns.listen(named) as feed:
                turn = await turns.begin(named, prompt, request_id=key)
                await _watch(turn, feed, ctx)
            result = await turn.wait()
            check_ended(result)
        except (LocusError, Problem) as e:
            raise ToolError(_describe(as_problem(e))) from None
        return {"text": whole_text(result.state), **describe_run(named, result)}

    return ask_agent


async def _watch(turn: Turn, feed: Feed, ctx: ToolContext[str]) -> None:
    """Wait for the end of a turn, and tell the client which tools are called."""
    turn.readers += 1
    try:
        is_over = False
        while not is_over:
            await feed.wait(_LOOK)
            is_over = turn.finished.is_set() or feed.is_closed
            for event in feed.take():
                if isinstance(event, ToolStartEvent) and event.parent_run_id is None and not event.replayed:
                    await ctx.emit_progress(message=event.tool_name)
        await turn.finished.wait()
    except anyio.get_cancelled_exc_class():
        if turn.readers == 1:  # else another request for the same turn still waits
            turn.cancel(_CANCELLED)
        raise
    finally:
        turn.readers -= 1


def _describe(problem: Problem) -> str:
    wait = problem.headers.get("Retry-After")
    return f"{problem.text}; ask again in {wait} s" if wait else problem.text
