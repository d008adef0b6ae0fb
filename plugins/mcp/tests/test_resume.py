"""Runs that go on elsewhere, and replays: the same tools under the same names with the same effects."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent
from locus.core.errors import StoreError
from locus.journal import MemoryStore
from locus_plugin_mcp import McpStartError
from locus_testkit import ScriptedModel, call

from .kit import broken, log_of, raw, results

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"words": {"type": "string"}}}


def tool_form(name: str, **hints: bool) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": SCHEMA, "annotations": hints}


def calls(log: Path) -> list[str]:
    return [line.split()[1] for line in log_of(log) if line.startswith("call ")]


@pytest.mark.parametrize(
    ("hints", "trust", "again"),
    [
        ({"readOnlyHint": True}, True, True),
        ({"idempotentHint": True}, True, True),
        ({}, True, False),
        ({"readOnlyHint": True}, False, False),
        ({"idempotentHint": True}, False, False),
    ],
)
@pytest.mark.parametrize("store", [MemoryStore, partial(MemoryStore, history=False)])
async def test_a_call_that_a_crash_interrupted_is_repeated_only_if_a_trusted_server_says_that_it_may_be(
    hints: dict[str, bool], trust: bool, again: bool, store: Any, tmp_path: Path
) -> None:
    kept, log = broken(store(), "0/execute/0"), tmp_path / "log"
    server = raw({"log": str(log), "tools": [tool_form("note", **hints)]}, trust=trust)
    options: Any = {"mcp": {"servers": {"raw": server}}, "checkpointer": kept}
    with pytest.raises(StoreError):
        await Agent(ScriptedModel(call("raw__note", words="x")), **options).run("go", thread_id="t")

    result = await Agent(ScriptedModel("done"), **options).resume("t")

    assert (result.text, len(calls(log))) == ("done", 1 + again)
    [told] = results(result)
    assert told == "x" if again else "outcome unknown" in told
    keys = {json.dumps(json.loads(line[line.index("{") :])) for line in log_of(log) if line.startswith("call ")}
    assert len(keys) == 1
    assert ("locus/idempotency-key" in keys.pop()) == (hints == {"idempotentHint": True} and trust)


async def test_a_resumed_run_tells_the_model_of_the_same_tools_whatever_the_server_lists_by_now(tmp_path: Path) -> None:
    kept, log = broken(MemoryStore(), "0/think/0"), tmp_path / "log"
    first = raw({"tools": [tool_form("b.c", readOnlyHint=True), tool_form("old")]}, trust=True)
    model = ScriptedModel("lost")
    with pytest.raises(StoreError):
        await Agent(model, mcp={"servers": {"raw": first}}, checkpointer=kept).run("go", thread_id="t")

    # Under the name that `b.c` had, a tool of that very name would now be found.
    tools = [tool_form("b_c"), {**tool_form("b.c"), "description": "Otherwise."}, tool_form("new")]
    second = raw({"log": str(log), "tools": tools}, trust=False)
    later = ScriptedModel(call("raw__b_c", words="x"), call("raw__old"), call("raw__new"), "done")
    agent = Agent(later, mcp={"servers": {"raw": second}}, checkpointer=kept)
    result = await agent.resume("t")

    assert {r.tools for r in later.requests} == {model.requests[0].tools}
    assert calls(log) == ["b.c"]
    first_told, gone, unknown = results(result)
    assert first_told == "x"
    assert gone.startswith("Error: ToolError: the tool raw__old is gone (tool 'old' of the MCP server 'raw')")
    assert unknown.startswith("Error: UnknownTool")
    assert (await timetravel.replay(agent, "t")).raise_for_difference().ok


async def test_a_run_continues_without_a_server_that_is_gone_and_not_without_one_that_it_requires(
    tmp_path: Path,
) -> None:
    kept = broken(MemoryStore(), "0/think/0")
    servers = {"raw": raw()}
    with pytest.raises(StoreError):
        await Agent(ScriptedModel("lost"), mcp={"servers": servers}, checkpointer=kept).run("go", thread_id="t")
    gone = {"command": "no-such-program-here"}

    with pytest.raises(McpStartError):
        await Agent(ScriptedModel(), mcp={"servers": {"raw": {**gone, "required": True}}}, checkpointer=kept).resume(
            "t"
        )

    model = ScriptedModel(call("raw__echo", words="x"), "done")
    result = await Agent(model, mcp={"servers": {"raw": gone}}, checkpointer=kept).resume("t")
    assert "the tool raw__echo is gone" in results(result)[0]
    assert result.text == "done"


async def test_a_replay_starts_no_server(tmp_path: Path) -> None:
    store, log = MemoryStore(), tmp_path / "log"
    script: list[Any] = [[call("raw__echo", words="a"), call("raw__fail")], call("raw__echo", wrong=1), "done"]
    agent = Agent(ScriptedModel(*script), mcp={"servers": {"raw": raw({"log": str(log)})}}, checkpointer=store)
    await agent.run("go", thread_id="t")
    started = len(log_of(log))

    assert (await timetravel.replay(agent, "t")).raise_for_difference().ok
    assert len(log_of(log)) == started
