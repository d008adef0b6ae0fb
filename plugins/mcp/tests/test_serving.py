"""Locus tools served over MCP, to the SDK's client and to another agent."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import Scope

from locus import Agent, Event, ModelRequest, ToolContext, ToolProgressEvent, tool
from locus.core.errors import ConfigError
from locus.core.messages import MediaBlock
from locus.plugin import StashKey
from locus.tools import Tool
from locus_plugin_mcp import McpEndpoint, http_app, serve
from locus_plugin_mcp.command import source_of
from locus_plugin_mcp.serving import server_of
from locus_testkit import ScriptedModel, call

from .http_server import LEFT_STREAMS, running
from .kit import results

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings(LEFT_STREAMS)]

cancelled = threading.Event()


@tool(effect="pure")
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: one.
        b: the other.
    """
    return a + b


@tool
async def steps(ctx: ToolContext[Any]) -> str:
    """Go step by step."""
    for i in range(3):
        await ctx.emit_progress(message=f"step {i}")
    return f"{ctx.deps}"


@tool
async def slow(ctx: ToolContext[Any]) -> str:
    """Take for ever."""
    await ctx.emit_progress(1)
    try:
        await anyio.sleep(30)
    except BaseException:
        cancelled.set()
        raise
    return ""


@tool(effect="keyed")
async def keyed(ctx: ToolContext[Any]) -> str:
    """Say the key."""
    return ctx.idempotency_key


@tool
async def asks(ctx: ToolContext[Any]) -> str:
    """Ask."""
    return str(ctx.interrupt("Really?"))


@tool
async def judges(ctx: ToolContext[Any], brings: bool) -> str:
    """Ask a model."""
    assert await ctx.emit(Event()) is None
    ctx.stash[StashKey[int]()] = ctx.state.iteration
    model = ScriptedModel("fine") if brings else None
    return (await ctx.call_model(ModelRequest(messages=()), model=model, purpose="judge")).message.text


@tool
def picture() -> MediaBlock:
    """A picture."""
    return MediaBlock("image", "image/png", data=b"png")


@tool(timeout=0.05)
async def late() -> None:
    """Too late."""
    await anyio.sleep(30)


#: What starts a whole interpreter does so on one event loop.
ONCE = pytest.mark.parametrize("anyio_backend", ["asyncio"])

TOOLS: list[Tool[..., Any]] = [add, steps, slow, keyed, asks, judges, picture, late]


async def test_an_agents_tools_are_listed_and_called_by_the_official_client() -> None:
    agent = Agent(ScriptedModel(), tools=TOOLS, name="helper")
    async with Client(server_of(agent, deps="my deps")) as client:
        listed = (await client.list_tools()).tools
        told: list[Any] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        answers = {
            "add": await client.call_tool("add", {"a": 1, "b": "2"}),
            "steps": await client.call_tool("steps", progress_callback=note),
            "picture": await client.call_tool("picture"),
            "asks": await client.call_tool("asks"),
            "judges": await client.call_tool("judges", {"brings": True}),
            "asks a model": await client.call_tool("judges", {"brings": False}),
            "late": await client.call_tool("late"),
            "wrong": await client.call_tool("add", {"x": 1}),
            "unknown": await client.call_tool("adds", {}),
        }

    assert [t.name for t in listed] == [t.name for t in TOOLS]
    described = listed[0]
    assert described.description == "Add two numbers."
    assert described.input_schema["properties"]["a"] == {"type": "integer", "description": "one."}
    assert [t.annotations.read_only_hint if t.annotations else None for t in listed[:2]] == [True, None]
    assert {n: (a.is_error, getattr(a.content[0], "text", "")[:40]) for n, a in answers.items()} == {
        "add": (False, "3"),
        "steps": (False, "my deps"),
        "picture": (False, ""),
        "asks": (True, "ToolError: this tool asks a person, whic"),
        "judges": (False, "fine"),
        "asks a model": (True, "ToolError: this tool asks a model (judge"),
        "late": (True, "TimeoutError: the tool did not finish wi"),
        "wrong": (True, "ArgumentError: the arguments of add are "),
        "unknown": (True, "UnknownTool: 'adds' is not a tool; did y"),
    }
    assert told == [(i + 1.0, None, f"step {i}") for i in range(3)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(http_app(TOOLS, deps=7)) as url:
        yield f"{url}/mcp"


async def test_an_agent_uses_the_tools_of_another_over_http(address: str) -> None:
    cancelled.clear()
    script: list[Any] = [
        [call("other__add", a=2), call("other__steps")],
        call("other__keyed"),
        call("hurried__slow"),
        "done",
    ]
    served = {"url": address, "trust": True}
    # The one call that must not end in time has a timeout of its own: a busy machine may take long over the others.
    servers = {"other": served, "hurried": {**served, "timeout": 2.0}}
    run = Agent(ScriptedModel(*script), mcp={"servers": servers}).run("go")
    told = [e.message async for e in run if isinstance(e, ToolProgressEvent) and e.message]

    added, stepped, key, late = results(run.result)
    assert (added, stepped, told) == ("3", "7", ["step 0", "step 1", "step 2"])
    assert key
    assert late.startswith("Error: TimeoutError")
    # The server runs in a thread of its own.
    assert await anyio.to_thread.run_sync(cancelled.wait, 10)


@ONCE
async def test_a_module_is_served_from_the_command_line_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(
        "from locus import tool\n@tool\ndef shout(words: str) -> str:\n    'Shout.'\n    print('noise')\n"
        "    return words.upper()\n"
    )
    script = "import sys; from locus_plugin_mcp.command import mcp; mcp(sys.argv[1:])"
    server = {
        "command": sys.executable,
        "args": ["-P", "-c", script, "serve", "my_tools:shout"],
        "cwd": str(tmp_path),
        "env": {"PYTHONPATH": ":".join(filter(None, sys.path))},
    }
    model = ScriptedModel(call("mine__shout", words="hello"), "done")
    result = await Agent(model, mcp={"servers": {"mine": {**server, "required": True}}}).run("go")

    assert results(result) == ["HELLO"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.com"])
async def test_tools_are_served_on_this_machine_only(host: str) -> None:
    with pytest.raises(ConfigError, match=r"must be a loopback address such as 127\.0\.0\.1, got"), anyio.fail_after(5):
        await serve([add], port=0, host=host)


@ONCE  # uvicorn knows asyncio only
async def test_http_is_served_until_it_is_cancelled() -> None:
    where: list[str] = []
    started = anyio.Event()

    def note(url: str) -> None:
        where.append(url)
        started.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve([add], port=0, started=note))
        await started.wait()
        async with Client(where[0]) as client:
            answer = await client.call_tool("add", {"a": 1})
        group.cancel_scope.cancel()

    assert json.loads(answer.content[0].text) == 2  # type: ignore[union-attr]


@ONCE
async def test_a_client_may_connect_as_soon_as_it_knows_the_address() -> None:
    connected = anyio.Event()

    def connect(url: str) -> None:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=60):
            connected.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve([add], port=0, started=connect))
        await connected.wait()
        group.cancel_scope.cancel()


def test_what_is_served_is_named_and_what_is_not_there_is_said() -> None:
    assert source_of("json:loads") is json.loads
    for wrong in ("no_such_module:x", "json:nothing", ":x"):
        with pytest.raises(ConfigError, match="cannot be served"):
            source_of(wrong)
    with pytest.raises(ConfigError, match="has no tools of its own"):
        server_of(Agent(ScriptedModel()))


@tool(effect="pure")
async def whoami(ctx: ToolContext[str]) -> dict[str, str]:
    """Say who asks."""
    return {"user": ctx.deps}


def _user_of(scope: Scope) -> str:
    return Headers(scope=scope).get("x-user", "")


@ONCE
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_endpoint_tells_tools_who_asks_and_keeps_sessions_apart(mode: Any) -> None:
    endpoint = McpEndpoint([whoami], _user_of, max_sessions=2)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.run():
            yield

    with running(Starlette(routes=[Route("/here", endpoint)], lifespan=lifespan)) as url:
        for user in ("alice", "bob"):
            async with (
                httpx2.AsyncClient(headers={"X-User": user}, trust_env=False, timeout=60) as http,
                Client(streamable_http_client(f"{url}/here", http_client=http), mode=mode) as client,
            ):
                answer = await client.call_tool("whoami")
                assert answer.structured_content == {"user": user}
                assert json.loads(answer.content[0].text) == {"user": user}  # type: ignore[union-attr]


@ONCE
async def test_a_mapping_that_was_cut_is_text_alone() -> None:
    @tool(max_result_chars=200)
    def long() -> dict[str, str]:
        """Say much."""
        return {"text": "x" * 1_000}

    async with Client(server_of([long])) as client:
        answer = await client.call_tool("long")
    assert (answer.structured_content, len(answer.content[0].text) <= 300) == (None, True)  # type: ignore[union-attr]
