"""Servers at an address: one made with the official SDK, and addresses where there is none."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest

from locus import Agent, ToolProgressEvent
from locus.core.errors import SettingsError
from locus.core.messages import MediaBlock
from locus.plugin import Hook
from locus.plugins import Secret
from locus_plugin_mcp.errors import McpStartError
from locus_testkit import ScriptedModel, call
from locus_testkit.localserver import Answer, LocalServer
from locus_testkit.tokens import ExpiringToken

from .http_server import LEFT_STREAMS, PNG, Served, running, serve
from .kit import reported, results

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings(LEFT_STREAMS)]


@pytest.fixture(scope="module")
def sdk() -> Iterator[Served]:
    with serve() as seen:
        yield seen


def agent(url: str, *script: Any, hooks: Any = (), **server: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(*script, "done"), hooks=hooks, mcp={"servers": {"raw": {"url": url, **server}}})


async def test_the_tools_of_an_sdk_server_are_called_over_http(sdk: Served) -> None:
    script = [
        call("raw__add", a=1, b="2"),
        call("raw__about", city="Oslo"),
        call("raw__broken"),
        call("raw__add", a=1),
    ]
    result = await agent(sdk.url, script).run("go")

    added, about, failed, refused = results(result)
    assert (added, '"Oslo"' in about) == ("3", True)
    assert about.count("Oslo") == 1
    assert failed.startswith("Error: ToolError: Error executing tool broken: it broke")
    assert refused.startswith("Error: ArgumentError: the arguments of raw__add are wrong: $.b: missing")
    assert reported(result).protocol == "2026-07-28"


async def test_a_picture_is_a_picture(sdk: Served) -> None:
    result = await agent(sdk.url, call("raw__picture")).run("go")

    [shown] = [r.content for m in result.state.messages for r in m.tool_results]
    assert isinstance(shown, tuple)
    assert [b.data for b in shown if isinstance(b, MediaBlock)] == [PNG]


async def test_a_header_with_a_secret_is_sent_and_shown_nowhere(sdk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_KEY", "hush-hush")
    run = agent(sdk.url, call("raw__broken"), headers={"X-Key": {"env": "MCP_KEY"}}).run("go")
    events = [event async for event in run]

    assert sdk.headers[-1]["x-key"] == "hush-hush"
    assert "hush-hush" not in repr((events, run.result))


@pytest.mark.parametrize("later", [False, True])
async def test_a_token_that_expires_is_asked_for_with_each_request_and_shown_nowhere(
    sdk: Served, later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    token = ExpiringToken()
    caplog.set_level("DEBUG")
    sdk.headers.clear()
    run = agent(sdk.url, call("raw__broken"), headers={"X-Key": Secret(token.aget if later else token.get)}).run("go")
    events = [event async for event in run]

    sent = [headers["x-key"] for headers in sdk.headers]
    assert len(sent) > 2
    assert sorted(sent) == sorted(set(sent) & set(token.given))
    assert "hush-hush" not in repr((events, run.result)) + caplog.text


@pytest.mark.parametrize(("token", "why"), [("hush\n", "must be printable ASCII"), (None, "failed: TypeError")])
async def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(sdk: Served, token: Any, why: str) -> None:
    with pytest.raises(McpStartError, match=why) as caught:
        await agent(sdk.url, headers={"X-Key": Secret(lambda: token)}, required=True).run("go")
    assert "hush" not in str(caught.value)


async def test_a_call_that_is_cancelled_is_cancelled_on_the_server(sdk: Served) -> None:
    begun = anyio.Event()

    class Watch(Hook):
        def on_tool_progress(self, event: ToolProgressEvent) -> None:
            assert (event.progress, event.total, event.message) == (1.0, 2.0, "begun")
            begun.set()

    sdk.cancelled.clear()
    async with anyio.create_task_group() as group:
        group.start_soon(agent(sdk.url, call("raw__slow"), hooks=[Watch()]).run, "go")
        await begun.wait()
        group.cancel_scope.cancel()

    # The server runs in a thread of its own.
    assert await anyio.to_thread.run_sync(sdk.cancelled.wait, 10)


async def test_the_caller_s_cancel_ends_a_call_on_the_server(sdk: Served) -> None:
    class Stop(Hook):
        def on_tool_progress(self, event: ToolProgressEvent) -> None:
            one.cancel("enough")

    sdk.cancelled.clear()
    one = agent(sdk.url, call("raw__slow"), hooks=[Stop()])
    with anyio.fail_after(20):
        result = await one.run("go")
    assert result.stop_reason == "Cancelled: enough"
    assert results(result)[0].startswith("Error: outcome unknown: ")
    assert await anyio.to_thread.run_sync(sdk.cancelled.wait, 10)


async def test_many_runs_at_once_have_connections_of_their_own(sdk: Served) -> None:
    done: list[Any] = []

    async def one(n: int) -> None:
        done.append((n, results(await agent(sdk.url, call("raw__add", a=n, b=n)).run("go"))))

    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(one, n)

    assert sorted(done) == [(n, [str(2 * n)]) for n in range(10)]


#: What is no server of MCP, by its path: status, content type, content.
STRANGERS = {
    "no-key": (401, "application/json", b'{"error": "no key"}'),
    "nothing": (404, "text/html", b"<html>nothing here</html>"),
    "broken": (500, "text/plain", b""),
    "busy": (503, "application/json", b"{}"),
    "page": (200, "text/html", b"<html>welcome</html>"),
    "cut": (200, "application/json", b'{"jsonrpc": "2.0"'),
    "cut-stream": (200, "text/event-stream", b"event: message\ndata: {\n\n"),
    "moved": (307, "text/plain", b""),
}


async def stranger(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})
        return
    status, kind, content = STRANGERS[scope["path"].strip("/")]
    await receive()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    await send({"type": "http.response.body", "body": content})


@pytest.fixture(scope="module")
def strangers() -> Iterator[str]:
    with running(stranger) as url:
        yield url


@pytest.mark.parametrize("path", STRANGERS)
async def test_an_address_that_is_not_a_server_is_reported_and_the_run_continues(strangers: str, path: str) -> None:
    result = await agent(f"{strangers}/{path}", connect_timeout=10).run("go")

    assert (result.text, reported(result).status, reported(result).tools) == ("done", "failed", ())
    assert "MCP server 'raw' " in reported(result).detail


async def test_an_address_where_nobody_is_says_so() -> None:
    result = await agent("http://127.0.0.1:9/mcp").run("go")

    assert "cannot be reached at http://127.0.0.1:9/mcp: ConnectError" in reported(result).detail


@pytest.mark.parametrize(
    ("path", "says"),
    [("no-key", "the HTTP status 401: give it a key in headers"), ("nothing", "the HTTP status 404: compare the url")],
)
async def test_a_status_is_reported_with_what_to_do_about_it(strangers: str, path: str, says: str) -> None:
    result = await agent(f"{strangers}/{path}", connect_timeout=10).run("go")

    assert says in reported(result).detail


async def test_a_redirect_to_another_host_is_not_shown_the_headers() -> None:
    with LocalServer() as elsewhere, LocalServer(lambda _: moved) as server:
        moved = Answer(status=307, headers={"location": f"{elsewhere.url}/mcp"})
        result = await agent(f"{server.url}/mcp", headers={"X-Key": "hush-hush"}).run("go")

        assert (reported(result).status, elsewhere.connections) == ("failed", 0)


async def test_a_plain_address_is_asked_directly_whatever_proxy_there_is(
    sdk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would read the headers."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    result = await agent(sdk.url, call("raw__add", a=1, b=2)).run("go")

    assert results(result) == ["3"]


@pytest.mark.parametrize("odd", ["Bearer hush\nhush", "h\u00fcsh"])
def test_a_header_that_cannot_be_sent_is_refused_and_not_shown(odd: str) -> None:
    with pytest.raises(SettingsError, match="the value of the header 'X-Key' must be printable") as caught:
        agent("http://127.0.0.1:9/mcp", headers={"X-Key": odd})

    assert "hush" not in str(caught.value)
    assert "h\u00fcsh" not in str(caught.value)


@pytest.mark.parametrize("name", ["X-Key\r\nX-More", "X Key", "X-Key:", ""])
def test_a_name_that_no_header_may_have_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="the name of a header must have letters, digits and '-' alone"):
        agent("http://127.0.0.1:9/mcp", headers={name: "x"})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/m\r\nHost: evil.example", "http://127.0.0.1:9/a b", "http://a\x00/"]
)
def test_an_address_with_a_line_break_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="url must not have blanks, line breaks or control characters"):
        agent(url)


async def test_an_answer_in_several_layers_of_encoding_is_refused_before_it_is_unpacked() -> None:
    # What follows the end of the last layer yields nothing, so no limit on a message's size sees it.
    packed = gzip.compress(gzip.compress(b"{}") + b"\0" * 5_000_000)
    with LocalServer(lambda _: Answer(body=packed, headers={"content-encoding": "gzip, gzip"})) as server:
        result = await agent(f"{server.url}/mcp", "hello").run("go")
        assert "encoded 2 times" in repr(reported(result))
        assert server.received[0].headers["accept-encoding"] == "gzip, deflate"
