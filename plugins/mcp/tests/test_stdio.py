"""Servers that are processes: their tools in a run, and everything that a server can do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus import Agent, ToolProgressEvent, tool
from locus.core.errors import UnknownName
from locus.plugin import Hook
from locus.plugins import Layer, structure
from locus_plugin_mcp import (
    McpHook,
    McpProtocolError,
    McpServerEvent,
    McpServers,
    McpSettings,
    McpStartError,
    ServerSettings,
)
from locus_plugin_mcp.doctor import examine
from locus_testkit import ScriptedModel, call

from .kit import alive, log_of, python, raw, reported, results

pytestmark = pytest.mark.anyio


def agent(server: dict[str, Any], *script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(*script, "done"), mcp={"servers": {"raw": server}}, **options)


async def test_a_servers_tools_are_called_under_its_name() -> None:
    run = agent(raw(), call("raw__echo", words="hello")).run("go")
    events = [event async for event in run]

    assert results(run.result) == ["hello"]
    [connected] = [e for e in events if isinstance(e, McpServerEvent)]
    assert (connected.server, connected.status, connected.tools[0]) == ("raw", "connected", "raw__echo")
    assert reported(run.result).tools == connected.tools


async def test_the_process_lives_as_long_as_the_run_and_gets_only_the_environment_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRIVATE_KEY", "secret")
    server = raw(env={"GIVEN": "x"}, cwd=str(tmp_path))
    result = await agent(server, call("raw__who")).run("go")

    [said] = map(json.loads, results(result))
    assert (said["env"]["GIVEN"], said["cwd"]) == ("x", str(tmp_path))
    assert "PRIVATE_KEY" not in said["env"]
    assert not alive(said["pid"])


async def test_progress_reaches_events_in_order_bounded_and_visible() -> None:
    run = agent(raw(), [call("raw__steps"), call("raw__flood")]).run("go")
    told = [e async for e in run if isinstance(e, ToolProgressEvent)]

    steps = [e for e in told if e.tool_name == "raw__steps"]
    assert [(e.progress, e.total, e.message) for e in steps] == [(i, 3.0, f"step {i} [31m") for i in range(3)]
    flood = [e.progress or 0.0 for e in told if e.tool_name == "raw__flood"]
    assert flood == sorted(flood)
    assert run.result.text == "done"


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_call_that_is_given_up_is_cancelled_on_the_server(how: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    begun = anyio.Event()

    class Watch(Hook):
        def on_tool_progress(self, event: ToolProgressEvent) -> None:
            begun.set()

    server = raw({"log": str(log)}, **({"timeout": 1.5} if how == "timeout" else {}))
    one = agent(server, call("raw__slow"), hooks=[Watch()])
    if how == "timeout":
        result = await one.run("go")
        assert results(result)[0].startswith("Error: TimeoutError: the tool did not finish within 1.5 s")
    else:
        async with anyio.create_task_group() as group:
            group.start_soon(one.run, "go")
            await begun.wait()
            group.cancel_scope.cancel()

    assert "cancelled" in log_of(log)
    assert not alive(int(log_of(log)[0].split()[1]))


@pytest.mark.parametrize("reads", [False, True])
async def test_the_caller_s_cancel_ends_a_call_and_its_outcome_is_unknown(reads: bool, tmp_path: Path) -> None:
    log, finished = tmp_path / "log", list[str]()
    begun = anyio.Event()

    class Watch(Hook):
        def on_tool_progress(self, event: ToolProgressEvent) -> None:
            begun.set()

    @tool
    async def write() -> str:
        """A body of the program's own finishes."""
        await begun.wait()
        one.cancel("enough")
        await anyio.lowlevel.checkpoint()
        finished.append("write")
        return "written"

    offered = {"name": "slow", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": reads}}
    server = raw({"log": str(log), "tools": [offered]}, trust=True)
    one = agent(server, [call("raw__slow"), call("write")], hooks=[Watch()], tools=[write])
    with anyio.fail_after(20):  # the server would answer after 30 seconds
        result = await one.run("go")
    assert result.stop_reason == "Cancelled: enough"
    assert "cancelled" in log_of(log)
    said, written = results(result)
    assert said.startswith("Error: McpCallCancelled: MCP server 'raw' did not" if reads else "Error: outcome unknown: ")
    assert (written, finished) == ("written", ["write"])
    assert not alive(int(log_of(log)[0].split()[1]))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fail", "Error: ToolError: it does not work"),
        ("refuse", "Error: McpCallRefused: MCP server 'raw' refuses the call: I will not (code -32602)"),
        ("nonsense", "Error: McpResultInvalid: MCP server 'raw' sent an invalid tool result"),
    ],
)
async def test_a_call_that_fails_reaches_the_model_and_the_server_continues(name: str, says: str) -> None:
    result = await agent(raw(), call(f"raw__{name}"), call("raw__echo", words="still here")).run("go")

    assert results(result)[0].startswith(says)
    assert results(result)[1] == "still here"


async def test_a_server_that_dies_in_a_call_is_reported_and_its_other_calls_are_not_made() -> None:
    result = await agent(raw(), call("raw__die"), call("raw__echo", words="x")).run("go")

    died, gone = results(result)
    assert died.startswith("Error: McpConnectionLost: MCP server 'raw' went away while the call was in progress")
    assert "the end of its stderr: I die now" in died
    assert "it is unknown whether it had its effect" in died
    assert "is no longer connected; nothing was called" in gone
    assert (reported(result).status, result.text) == ("lost", "done")
    assert "I die now" in reported(result).detail


@pytest.mark.parametrize(
    ("server", "kind", "says"),
    [
        ({"command": "no-such-program-here"}, McpStartError, "cannot be started: no-such-program-here: No such file"),
        (raw(cwd="/no/such/folder"), McpStartError, "cannot be started"),
        (
            raw({"exits": True}),
            McpStartError,
            "closed the connection before it had answered; the end of its stderr: no lic",
        ),
        (raw({"silent": True}, connect_timeout=0.4), McpStartError, r"did not answer within connect_timeout = 0\.4 s"),
        (
            raw({"silent": True, "says": "Welcome!"}, connect_timeout=3.0),
            McpStartError,
            "its output is not MCP: Welcome!",
        ),
        (raw({"endless": True}), McpProtocolError, "gives the page 'again' of its list of tools again and again"),
        (
            raw({"tools": [{"name": "a", "inputSchema": {"type": "object", "title": t}} for t in "xy"]}),
            McpProtocolError,
            "lists two different tools named 'a'",
        ),
        (raw({"tools": [{"name": 7}]}), McpProtocolError, "sent an invalid list of tools"),
    ],
    ids=["missing", "no folder", "exits", "silent", "garbage", "endless", "twice", "nonsense"],
)
async def test_a_server_that_cannot_be_used_is_fatal_where_it_is_required_and_else_reported(
    server: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        await agent({**server, "required": True}).run("go")

    assert str(caught.value).startswith("MCP server 'raw' ")

    result = await agent(server).run("go")
    assert (result.text, reported(result).status) == ("done", "failed")
    assert reported(result).detail.startswith("MCP server 'raw' ")


#: Writes what a program writes that cannot start: the cause first, then much else.
FAILS = "import os, sys; [print(f'line {n}', os.environ['TOKEN'], file=sys.stderr) for n in range(12)]; sys.exit(1)"


async def test_failure_is_shown_with_all_that_the_server_wrote_and_without_its_secrets() -> None:
    server = python("-S", "-E", "-c", FAILS, env={"TOKEN": "hush-hush"})
    lines = [f"line {n} ***" for n in range(12)]

    result = await agent(server).run("go")
    with pytest.raises(McpStartError) as caught:
        await agent({**server, "required": True}).run("go")

    assert reported(result).detail.splitlines()[1:] == ["what it wrote to its standard error:", *lines]
    assert caught.value.__notes__[0].splitlines()[1:] == lines
    assert caught.value.__cause__ is not None
    assert "hush" not in repr(result.reports) + str(caught.value)


async def test_doctor_starts_the_servers_it_is_asked_about() -> None:
    every = {
        "bad": raw({"exits": True}),
        "off": raw({"names": ["one"]}, disabled=True),
        "good": raw({"names": ["echo"]}),
    }
    settings = structure(McpSettings, [Layer("test", "mcp", {"servers": every})])

    found = {name: (problem, note) for name, problem, note in await examine(settings, "")}

    assert found["good"] == ("", "offers good__echo")
    assert "closed the connection before it had answered" in found["bad"][0]
    assert found["off"] == ("", "disabled; name it to start it")
    assert await examine(settings, "off") == [("off", "", "offers off__one")]
    with pytest.raises(UnknownName, match="did you mean 'good'"):
        await examine(settings, "godo")


async def test_one_server_that_fails_takes_nothing_from_the_others() -> None:
    servers = {"bad": raw({"exits": True}), "off": raw(disabled=True), "good": raw({"names": ["echo"]})}
    model = ScriptedModel(call("good__echo", words="x"), "done")
    result = await Agent(model, mcp={"servers": servers}).run("go")

    assert results(result) == ["x"]
    assert [(s.server, s.status) for s in result.reports["mcp"].servers] == [("bad", "failed"), ("good", "connected")]


async def test_a_banner_on_the_output_is_not_a_hindrance() -> None:
    server = raw({"says": "Welcome to the server!", "noise": True})
    result = await agent(server, call("raw__echo", words="x")).run("go")

    assert results(result) == ["x"]


async def test_a_list_on_several_pages_is_read_to_its_end_and_filtered() -> None:
    server = raw({"names": [f"t{i}" for i in range(25)], "page": 10}, include=["t1*", "t2"], exclude=["*9"])
    result = await agent(server).run("go")

    assert reported(result).tools == tuple(f"raw__t{i}" for i in (1, 2, *range(10, 19)))


async def test_a_list_that_changes_is_reported_and_the_run_keeps_the_one_it_began_with() -> None:
    model = ScriptedModel(call("raw__change"), call("raw__echo", words="x"), "done")
    result = await Agent(model, mcp={"servers": {"raw": raw()}}).run("go")

    assert reported(result).changed
    assert len({tuple(t.name for t in r.tools) for r in model.requests}) == 1


async def test_a_name_of_the_agents_own_tools_stays_the_agents() -> None:
    @tool(name="raw__echo")
    def mine(words: str) -> str:
        """Echo."""
        return f"mine: {words}"

    model = ScriptedModel(call("raw__echo", words="x"), "done")
    result = await Agent(model, tools=[mine], mcp={"servers": {"raw": raw({"names": ["echo"]})}}).run("go")

    assert results(result) == ["mine: x"]
    own, other = (t.name for t in model.requests[0].tools)
    assert (own, other.startswith("raw__echo_")) == ("raw__echo", True)


async def test_connections_that_a_program_holds_are_shared_by_its_runs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with McpServers(McpSettings(mcpServers={"raw": ServerSettings(**raw({"log": str(log)}))})) as servers:
        one = Agent(ScriptedModel(script=lambda _: [call("raw__echo", words="x"), "done"]), hooks=[McpHook(servers)])
        done: list[Any] = []

        async def go() -> None:
            done.append(await one.run("go"))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(go)
        pid = int(log_of(log)[0].split()[1])
        assert alive(pid)

    assert [results(result) for result in done] == [["x"]] * 10
    assert [line for line in log_of(log) if line.startswith("start")] == [f"start {pid}"]
    assert not alive(pid)


async def test_a_server_that_ignores_its_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    log = tmp_path / "log"
    await agent(raw({"log": str(log), "stays": True})).run("go")

    assert log_of(log)[-1] == "end"
    assert not alive(int(log_of(log)[0].split()[1]))


async def test_an_agent_without_servers_has_no_tools_of_them() -> None:
    result = await Agent(ScriptedModel("done"), mcp=True).run("go")

    assert (result.text, "mcp" in result.reports, result.state.metadata) == ("done", False, {})
