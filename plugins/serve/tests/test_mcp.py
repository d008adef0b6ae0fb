"""MCP, asked by the client of its own SDK, over HTTP."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ContentBlock, TextContent

from locus import tool
from locus_plugin_serve import mcp as served_mcp
from locus_testkit import call, never

from .conftest import PATIENCE, Gate, StartServer, make_agent
from .processes import ServerProcess, find_free_port, until

pytestmark = pytest.mark.anyio

ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)

#: The protocol of 2026-07-28, and the one before it, whose clients open a session.
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def anyio_backend() -> str:
    """The tests are about the server, which is asyncio's in any case."""
    return "asyncio"


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


@asynccontextmanager
async def connected(url: str, *, token: str = "", mode: Any = "auto") -> AsyncIterator[Client]:
    """A client of a server."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def _text(block: ContentBlock) -> str:
    assert isinstance(block, TextContent)
    return block.text


def _said(answer: CallToolResult) -> dict[str, Any]:
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content or {}
    assert json.loads(_text(answer.content[0])) == found
    return found


def _refusal(answer: CallToolResult) -> str:
    assert answer.is_error
    return _text(answer.content[0])


@MODES
async def test_a_call_of_the_tool_is_a_turn_and_the_thread_goes_on(start_server: StartServer, mode: str) -> None:
    agent = make_agent(["Let me see.", call("charge", cents=5)], "It is paid.", tools=[charge], name="the.shop")
    server, told = start_server(agent), list[str | None]()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with connected(server.url, mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        assert (listed.name, sorted(listed.input_schema["properties"])) == ("the_shop", ["prompt", "thread"])
        first = _said(await client.call_tool("the_shop", {"prompt": "Pay."}, progress_callback=note))
        again = _said(await client.call_tool("the_shop", {"prompt": "And?", "thread": first["thread"]}))
        wrong = await client.call_tool("the_shop", {"prompt": "And?", "thread": "../x"})
    assert (first["text"], first["stop_reason"], told) == ("Let me see.\n\nIt is paid.", "NoToolCalls", ["charge"])
    assert (again["thread"], again["run_id"] != first["run_id"]) == (first["thread"], True)
    assert "the name of a thread must have" in _refusal(wrong)
    with server.client() as own:
        events = own.read_stream("GET", f"/api/threads/{first['thread']}/events")
        assert [each.name for each in events].count("ended") == 2


async def test_a_call_with_the_key_of_an_earlier_one_is_that_call(start_server: StartServer, gate: Gate) -> None:
    gate.opened.set()
    server = start_server(make_agent(call("gate"), "I went through.", tools=[gate.tool]))
    meta: Any = {"locus/idempotency-key": "order-17"}
    async with connected(server.url) as client:
        first, second = [_said(await client.call_tool("shop", {"prompt": "Go."}, meta=meta)) for _ in range(2)]
        other = _said(await client.call_tool("shop", {"prompt": "Go."}))
        unusable: Any = {"locus/idempotency-key": "x" * 257}
        refused = await client.call_tool("shop", {"prompt": "Go."}, meta=unusable)
    assert (first == second, other["thread"] != first["thread"], gate.times) == (True, True, 2)
    assert "at most 256 printable characters" in _refusal(refused)


@MODES
async def test_a_call_that_the_client_cancels_cancels_the_run(start_server: StartServer, mode: str) -> None:
    server = start_server(make_agent(never))
    with server.client() as own:

        def wait_for(status: str) -> None:
            until(lambda: own.get("/api/threads/order").json().get("status") == status, f"a run that is {status}")

        async with connected(server.url, mode=mode) as client, anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("shop", {"prompt": "Go.", "thread": "order"}))
            await anyio.to_thread.run_sync(wait_for, "running")
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(wait_for, "ended")
        ended = own.read_stream("GET", "/api/threads/order/events")[-1]
        assert "the client cancelled the call" in json.dumps(ended.data)


async def test_a_question_to_a_person_is_not_answered_by_the_model_that_calls(start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "As you wish."))
    async with connected(server.url) as client:
        asked = [_said(await client.call_tool("shop", {"prompt": "Pay.", "thread": each})) for each in ("a", "b")]
        await client.call_tool("shop", {"prompt": "yes", "thread": "b"})
    assert [(each["stop_reason"], each["interrupts"][0]["question"]) for each in asked] == [
        ("Interrupted", "Sure?")
    ] * 2
    with server.client() as own:
        assert own.post_json("/api/threads/a/answers", answer="yes").json()["text"] == "As you wish."
        said = [own.get(f"/api/threads/{each}").text for each in ("a", "b")]
        assert ["the person said yes" in each for each in said] == [True, False]


async def test_failures_and_limits_are_errors_of_the_call(start_server: StartServer, gate: Gate) -> None:
    failing = start_server(make_agent(ValueError("the model is down")))
    async with connected(failing.url) as client:
        assert "the model is down" in _refusal(await client.call_tool("shop", {"prompt": "Pay."}))
        unknown = await client.call_tool("shop", {"prompt": "Pay.", "tread": "x"})
        assert "tread" in _refusal(unknown)

    server = start_server(make_agent(call("gate"), "Done.", tools=[gate.tool]), user_max_runs=1, max_body_bytes=2_000)
    async with connected(server.url) as client, anyio.create_task_group() as group:
        group.start_soon(lambda: client.call_tool("shop", {"prompt": "Go."}))
        assert await anyio.to_thread.run_sync(gate.entered.wait, PATIENCE)
        refused = _refusal(await client.call_tool("shop", {"prompt": "Go."}))
        gate.opened.set()
    assert "1 runs of this user are under way" in refused
    assert refused.endswith("; ask again in 1 s")
    with server.client() as own:

        def pieces() -> Any:  # without a Content-Length
            yield from (b"x" * 1_000 for _ in range(3))

        answer = own.post("/mcp", content=pieces(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_long")


@MODES
async def test_only_a_token_lets_a_client_in(start_server: StartServer, mode: str) -> None:
    server = start_server(make_agent("Hello."), tokens={"alice": ALICE})
    for token in ("", f"{ALICE}x"):
        with pytest.raises(Exception) as raised, anyio.fail_after(PATIENCE):  # noqa: PT011  the SDK's, in groups
            async with connected(server.url, token=token, mode=mode):
                pass
        assert not isinstance(raised.value, TimeoutError)
    async with connected(server.url, token=ALICE, mode=mode) as client:
        assert _said(await client.call_tool("shop", {"prompt": "Hi."}))["text"] == "Hello."
    with server.client() as own:
        assert own.post_json("/mcp").status_code == 401
    with server.client(ALICE) as own:
        assert own.post("/mcp", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
        assert own.post("/mcp", json={}, headers={"Host": "evil.example"}).status_code == 421


async def test_users_do_not_see_each_other(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), tokens={"alice": ALICE, "bob": BOB})
    async with connected(server.url, token=ALICE) as alice, connected(server.url, token=BOB) as bob:
        one = _said(await alice.call_tool("shop", {"prompt": "A secret.", "thread": "plan"}))
        two = _said(await bob.call_tool("shop", {"prompt": "Bob's.", "thread": "plan"}))
        assert one["run_id"] != two["run_id"]
    with server.client(ALICE) as alice_own, server.client(BOB) as bob_own:
        assert "A secret." in alice_own.get("/api/threads/plan").text
        assert "secret" not in bob_own.get("/api/threads/plan").text
        # A session of the older protocol is of its user, too.
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        accepts = {"Accept": "application/json, text/event-stream"}
        opened = alice_own.post("/mcp", json=body, headers=accepts)
        session = {**accepts, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert alice_own.post("/mcp", json=ready, headers=session).status_code == 202
        assert [each.post("/mcp", json=listing, headers=session).status_code for each in (bob_own, alice_own)] == [
            404,
            200,
        ]


async def test_a_killed_server_loses_no_call(tmp_path: Path) -> None:
    port, meta = find_free_port(), {"locus/idempotency-key": "order-17"}

    async def ask(url: str) -> CallToolResult:
        async with connected(url) as client:
            return await client.call_tool("waiting", {"prompt": "Go.", "thread": "order"}, meta=meta)  # type: ignore[arg-type]

    async def ask_in_vain(url: str) -> None:
        with pytest.raises(Exception):  # noqa: B017, PT011  the connection ends, which the SDK says in many ways
            await ask(url)

    process = await anyio.to_thread.run_sync(lambda: ServerProcess(tmp_path, port, agent="waiting"))
    async with anyio.create_task_group() as group:
        group.start_soon(ask_in_vain, process.url)
        await anyio.to_thread.run_sync(until, (tmp_path / "waiting").exists, "a run at the gate")
        await anyio.to_thread.run_sync(process.kill)
    (tmp_path / "gate").touch()
    with await anyio.to_thread.run_sync(lambda: ServerProcess(tmp_path, port, agent="waiting")) as process:
        assert _said(await ask(process.url))["text"] == "I went through."
    assert len((tmp_path / "ledger").read_text(encoding="utf-8").splitlines()) == 1


class _Missing:
    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"cannot import {name!r} from 'locus.mcp': no installed plugin offers it")


async def test_without_the_plugin_a_client_reads_what_to_install(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_mcp, "mcp", _Missing())
    server = start_server(make_agent("Hello."))
    with server.client() as own:
        for _ in range(2):
            answer = own.post_json("/mcp")
            assert (answer.status_code, answer.json()["error"]["code"]) == (501, "plugin_missing")
            assert "pip install locus-plugin-mcp" in answer.json()["error"]["message"]
        assert own.get("/api/threads").status_code == 200
