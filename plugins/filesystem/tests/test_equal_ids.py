"""Calls of one turn that have one id, as local models give it: what they write and give is kept apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from locus import Agent, AgentResult, tool
from locus.core.messages import Message, TextBlock, ToolCall, ToolResult
from locus.core.state import ToolExecution, not_run
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.plugins.discovery import Catalogue
from locus.tools import ToolContext, ToolRegistry
from locus_plugin_filesystem.calls import TurnCalls, number_of_call
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_filesystem.offloading import path_of
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)


def agent(*script: Any, ids: Any = "same", **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(*script, ids=ids), **{"filesystem": True, "catalogue": INSTALLED, **options})


def results(result: AgentResult[Any]) -> list[str]:
    """What the tools said, errors included, in order."""
    return [each.result if each.result is not None else str(each.error) for each in result.state.tool_executions]


def files(result: AgentResult[Any]) -> dict[str, str]:
    """The files in the state of a run."""
    metadata = result.state.metadata
    return {key.removeprefix("files"): value["text"] for key, value in metadata.items() if key.startswith("files/")}


def pointers(result: AgentResult[Any]) -> list[str]:
    """The files that the results of a run are in."""
    return [re.findall("all of it is in (/large_results/[0-9a-f]{16}), ", said)[0] for said in results(result)]


@tool(effect="pure")
def fetch(letter: str, times: int = 100_000) -> str:
    """Fetch much."""
    return letter * times


# -- large results ---------------------------------------------------------------------------------

TWO = [call("fetch", letter="a"), call("fetch", letter="b"), call("fetch", letter="a", times=90_000)]


async def test_two_results_under_one_call_id_are_kept_apart() -> None:
    result = await agent(TWO, "done", tools=[fetch]).run("go")

    kept = [files(result)[path].replace("\n", "") for path in pointers(result)]
    assert kept == ["a" * 100_000, "b" * 100_000, "a" * 90_000]
    assert len(files(result)) == 3


async def test_two_results_under_one_call_id_are_kept_apart_on_a_disk(tmp_path: Path) -> None:
    result = await agent(TWO, "done", tools=[fetch], filesystem={"root": tmp_path}).run("go")

    kept = [(tmp_path / path[1:]).read_text().replace("\n", "") for path in pointers(result)]
    assert kept == ["a" * 100_000, "b" * 100_000, "a" * 90_000]


async def test_equal_results_under_one_call_id_are_one_file() -> None:
    result = await agent([TWO[0], TWO[0]], "done", tools=[fetch]).run("go")

    first, second = pointers(result)
    assert first == second
    assert list(files(result)) == [first]


async def test_a_result_of_a_call_with_an_id_of_its_own_keeps_its_name() -> None:
    result = await agent(TWO, "done", tools=[fetch], ids="per_turn").run("go")

    run_id, done = result.state.run_id, result.state.tool_executions
    assert pointers(result) == [path_of(run_id, each.iteration, each.call_id) for each in done]


async def test_results_under_one_call_id_have_their_names_after_a_resume_as_well() -> None:
    @tool
    def ask(ctx: ToolContext) -> str:
        """Ask."""
        return str(ctx.interrupt("Well?"))

    store = MemoryStore()
    options: dict[str, Any] = {"checkpointer": store, "tools": [fetch, ask]}
    asked = await agent([*TWO, call("ask")], **options).run("go", thread_id="t")
    assert asked.interrupts
    result = await agent("done", **options).resume("t", "yes")

    *paths, said = [re.findall("/large_results/[0-9a-f]{16}", each)[:1] for each in results(result)]
    assert said == []
    kept = [files(result)[path].replace("\n", "") for (path,) in paths]
    assert kept == ["a" * 100_000, "b" * 100_000, "a" * 90_000]


async def test_two_blocks_of_one_result_are_kept_apart_on_a_disk(tmp_path: Path) -> None:
    @tool(effect="pure")
    def fetch_two() -> Any:
        """Fetch two texts."""
        return TextBlock("a" * 100_000), TextBlock("b" * 100_000)

    result = await agent(call("fetch_two"), "done", tools=[fetch_two], filesystem={"root": tmp_path}).run("go")

    paths = re.findall("all of it is in (/large_results/[0-9a-f]{16}), ", results(result)[0])
    kept = [(tmp_path / path[1:]).read_text().replace("\n", "") for path in paths]
    assert kept == ["a" * 100_000, "b" * 100_000]
    assert paths[0] == path_of(result.state.run_id, 0, result.state.tool_executions[0].call_id)


@pytest.mark.parametrize("ids", ["unique", "same"])
async def test_a_result_that_looks_like_a_kept_one_adds_no_file(ids: Any) -> None:
    @tool(effect="pure")
    def mimic(number: int) -> str:
        """Say what is said of a large result."""
        return f"all of it is in /large_results/0123456789abcde{number}, in 3 lines"

    result = await agent([call("mimic", number=1), call("mimic", number=2)], "done", tools=[mimic], ids=ids).run("go")
    assert files(result) == {}


# -- changes ---------------------------------------------------------------------------------------


def write(path: str, contents: str) -> ToolCall:
    return call("write_file", path=path, contents=contents)


async def test_a_second_change_of_a_path_under_one_call_id_is_a_conflict() -> None:
    store = MemoryStore()
    batch = [write("/a", "1"), write("/b", "2"), write("/a", "3"), write("/b/c", "4")]
    read = [call("read_file", path="/a"), call("read_file", path="/b")]
    result = await agent(batch, read, "done", checkpointer=store).run("go", thread_id="t")

    conflict = "conflict: the turn already changes {}; change {} in the next one"
    said = ["/a", "/b", conflict.format("/a", "/a"), conflict.format("/b", "/b/c"), "     1\t1", "     1\t2"]
    assert results(result) == said
    assert files(result) == {"/a": "1", "/b": "2"}


async def test_equal_writes_under_one_call_id_are_a_change_and_a_conflict() -> None:
    result = await agent([write("/a", "1"), write("/a", "1")], "done").run("go")

    assert results(result) == ["/a", "conflict: the turn already changes /a; change /a in the next one"]
    assert files(result) == {"/a": "1"}


async def test_calls_under_one_id_are_within_the_quota_together() -> None:
    batch = [write("/a", "x" * 4), write("/b", "x" * 4), write("/c", "x" * 4)]
    result = await agent(batch, "done", filesystem={"max_bytes": 10}).run("go")

    assert results(result) == ["/a", "/b", "permission_denied: quota: at most 10 bytes in all files"]


# -- children --------------------------------------------------------------------------------------


def make_child(ids: Any = "same") -> Agent[Any, str]:
    """An agent that writes the file that its prompt names."""

    def answer(request: ModelRequest) -> list[Any]:
        path = next(m.text for m in request.messages if m.role.value == "user")
        return [write(path, path), "child done"]

    return Agent(ScriptedModel(script=answer, ids=ids), filesystem=True, catalogue=INSTALLED)


@pytest.mark.parametrize("ids", ["unique", "per_turn", "same"])
async def test_children_of_calls_under_one_id_all_bring_back_their_files(ids: Any) -> None:
    @tool(effect="pure")
    async def ask_child(name: str, ctx: ToolContext, again: str = "") -> str:
        """Ask a child, or two."""
        for path in filter(None, (name, again)):
            await ctx.run_child(make_child(ids), path)
        return "asked"

    turn = [call("ask_child", name="/k1"), call("ask_child", name="/k2", again="/k3"), call("ask_child", name="/k4")]
    result = await agent(turn, "done", tools=[ask_child], ids=ids).run("go")

    assert files(result) == {path: path for path in ("/k1", "/k2", "/k3", "/k4")}


async def test_children_that_were_over_before_a_question_bring_back_their_files() -> None:
    @tool(effect="pure")
    async def ask_child(name: str, ctx: ToolContext, asks: bool = False) -> str:
        """Ask a child, and then a person."""
        await ctx.run_child(make_child(), name)
        return str(ctx.interrupt("Well?")) if asks else "asked"

    store = MemoryStore()
    turn = [call("ask_child", name="/k1"), call("ask_child", name="/k2", asks=True), call("ask_child", name="/k3")]
    options: dict[str, Any] = {"checkpointer": store, "tools": [ask_child]}
    asked = await agent(turn, **options).run("go", thread_id="t")
    assert asked.interrupts
    result = await agent("done", **options).resume("t", "yes")

    assert results(result) == ["asked", "yes", "asked"]
    assert files(result) == {path: path for path in ("/k1", "/k2", "/k3")}


async def test_a_child_cannot_change_what_a_call_under_the_same_id_changes() -> None:
    @tool(effect="pure")
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        return results(await ctx.run_child(make_child(), "/a"))[0]

    result = await agent([write("/a", "1"), call("ask_child")], "done", tools=[ask_child]).run("go")

    assert results(result)[1].startswith("conflict: the turn already changes /a")
    assert files(result) == {"/a": "1"}


# -- names -----------------------------------------------------------------------------------------


def test_names_of_calls_are_their_ids_as_far_as_these_differ() -> None:
    def named(*ids: str) -> list[str]:
        return [*TurnCalls(ToolCall(each, "x") for each in ids).names]

    assert named("a", "b") == ["a", "b"]
    assert named("a", "a", "b", "a") == ["a", "a#1", "b", "a#3"]
    assert named("a", "a", "a#1") == ["a", "a#1#", "a#1"]
    assert len(set(named("a", "a", "a#1", "a#1", "a#1#"))) == 5


def execution(name: str, error: str | None = None, **options: Any) -> ToolExecution:
    return ToolExecution(
        tool_name=name, arguments={}, result=None if error else "x", error=error, call_id="same", **options
    )


def test_executions_belong_to_their_calls_where_others_were_not_started() -> None:
    calls = [ToolCall("same", "x", {"n": n}) for n in range(4)]
    refused = execution("x", "not run: it may not", started=False)
    done = [refused, execution("x")]
    said = [not_run(calls[0], "Cancelled"), not_run(calls[1], "it may not"), not_run(calls[2], "Cancelled")]
    messages = [*said, with_text(not_run(calls[3], ""), "x")]

    assert TurnCalls(calls).name_executions(done, messages) == ["same#1", "same#3"]
    assert TurnCalls(calls[:2]).name_executions(done, []) == ["same", "same#1"]
    assert TurnCalls([ToolCall("one", "x")]).name_executions(done[:1], []) == ["same"]


def with_text(message: Message, text: str) -> Message:
    (result,) = message.tool_results
    return Message(message.role, ToolResult(result.call_id, text, name=result.name))


def test_a_call_is_found_by_what_the_model_wrote_of_it() -> None:
    registry = ToolRegistry([fetch])
    asked = [ToolCall("same", "fetch", {"letter": letter}) for letter in "abb"]
    calls = TurnCalls([*asked, ToolCall("same", "other")])
    filled = [ToolCall("same", "fetch", {"letter": "b", "times": 100_000}) for _ in range(2)]

    assert [calls.find(each, registry) for each in (*filled, asked[0])] == ["same#1", "same#2", "same"]
    assert calls.find(filled[1], registry) == "same#2"
    assert calls.find(ToolCall("same", "other", {"changed": 1}), registry) == "same#3"
    assert calls.find(ToolCall("mine", "fetch"), registry) == "mine"


def test_the_name_of_a_childs_thread_says_which_call_has_started_it() -> None:
    assert number_of_call("t/0/x/12ab34cd/7/execute/2/child/0", "t/0/x") == 2
    assert number_of_call("t/12ab34cd/7/execute/2#1/child/0/12ab34cd/0/execute/5/child/1", "t") == 2
    assert number_of_call("t/mine", "t") is None
