"""An agent behind a real server on a free port of this machine, and clients that ask it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import anyio
import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from attrs import frozen

from locus import Agent, ToolContext, tool
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus_plugin_serve import ServeSettings, serve
from locus_testkit import ScriptedModel

#: Seconds after which what should have happened has not, however busy the machine.
PATIENCE = 60.0


@frozen
class ServerEvent:
    """One server-sent event."""

    id: str
    name: str
    data: Any


def parse_events(lines: Iterator[str]) -> Iterator[ServerEvent]:
    """The events of a stream, as the specification of EventSource has them."""
    found: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in found:
                yield ServerEvent(found.get("id", ""), found.get("event", "message"), json.loads(found["data"]))
            found = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(":")
            found[key] = value.removeprefix(" ")


class Client(httpx.Client):
    """Asks a server."""

    def post_json(self, path: str, **body: Any) -> httpx.Response:
        """One request with a JSON body."""
        return self.post(path, json=body)

    def read_stream(self, method: str, path: str, *, last: str = "", **body: Any) -> list[ServerEvent]:
        """All events of a stream."""
        headers = {"Last-Event-ID": last} if last else {}
        options: dict[str, Any] = {"json": body} if method == "POST" else {}
        with self.stream(method, path, headers=headers, **options) as answer:
            if answer.status_code == 204:
                return []
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            return list(parse_events(answer.iter_lines()))


@frozen
class Served:
    """A server that runs."""

    url: str
    stop: Callable[[], None]

    def client(self, token: str = "") -> Client:
        """A client of it."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)


StartServer = Callable[..., Served]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts servers, each on an event loop in a thread; they leave in the end."""
    with ExitStack() as stack:

        def start(agent: Agent[Any, Any], **settings: Any) -> Served:
            portal = stack.enter_context(start_blocking_portal("asyncio"))
            leave, at, has_started = portal.call(anyio.Event), [], threading.Event()

            def started(url: str) -> None:
                at.append(url)
                has_started.set()

            given = ServeSettings(**{"port": 0, "drain": 0, **settings})

            async def run() -> None:
                try:
                    await serve(agent, given, started=started, leave=leave)
                finally:
                    has_started.set()

            future = portal.start_task_soon(run)

            def stop() -> None:
                if not future.done():
                    portal.call(leave.set)
                future.result(PATIENCE)

            stack.callback(stop)
            assert has_started.wait(PATIENCE)
            if not at:
                future.result(0)
            return Served(at[0], stop)

        yield start


@tool
def ask(ctx: ToolContext[None], question: str) -> str:
    """Ask a person."""
    return f"the person said {ctx.interrupt(question, options=['yes', 'no'])}"


def make_agent(*turns: Any, chunks: bool | int = True, **options: Any) -> Agent[Any, Any]:
    """An agent that follows a script, from the beginning in each turn."""

    def script(request: ModelRequest) -> list[Any]:
        return list(turns)

    model = ScriptedModel(script=script, chunks=chunks, after="cycle")
    return Agent(model, **{"name": "shop", "checkpointer": MemoryStore(), "tools": [ask], **options})


class Gate:
    """A tool that does not return until the test says so, and counts how often it was entered."""

    def __init__(self) -> None:
        self.entered, self.opened, self.times = threading.Event(), threading.Event(), 0

        @tool(effect="once", name="gate")
        async def pass_gate() -> str:
            """Wait at the gate."""
            self.times += 1
            self.entered.set()
            while not self.opened.is_set():  # noqa: ASYNC110  another thread sets it
                await anyio.sleep(0.01)
            return "the gate is open"

        self.tool = pass_gate


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate; it opens in the end in any case."""
    made = Gate()
    yield made
    made.opened.set()
