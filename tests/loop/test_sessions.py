"""What plugins hold open while a run is under way, and the tools that come of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import frozen
from tests.loop.hook_kit import failures
from tests.loop.kit import Recorder, add, collect, interrupting, kinds, results

import locus_plugin_timetravel as timetravel
from locus import Agent, CheckpointEvent, Event, Hook, RunStartEvent, TerminateEvent, ToolError, tool
from locus.core.errors import CheckpointError, HookSpecError, PluginError, StoreError, ToolDefinitionError, UnknownName
from locus.core.frozen import freeze
from locus.core.journal import Body, Outcome
from locus.journal import MemoryStore
from locus.journal.store import Appended, Claim
from locus.plugin import Cancel, RunContext, hookimpl, register_event
from locus.tools import Tool, ToolContext
from locus.tools.definition import SESSION_TOOLS
from locus.tools.session_tools import restore
from locus_kit.schematool import SchemaTool, schema_tool
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@register_event
@frozen(kw_only=True)
class OpenedEvent(Event):
    who: str = ""


def brought(name: str, *, origin: str = "", effect: Any = "once", description: str = "Far away.") -> SchemaTool:
    async def body(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
        return f"{name} got {arguments['n']}"

    return schema_tool(
        body, name=name, description=description, parameters=SCHEMA, origin=origin or name, effect=effect
    )


class Bringer:
    """Brings tools to each run, and keeps account of when it was open."""

    def __init__(self, *tools: Tool[..., Any], name: str = "bringer") -> None:
        self.tools, self.name, self.log = tools, name, list[str]()

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[Iterable[Tool[..., Any]]]:
        self.log.append("open")
        await run.emit(OpenedEvent(who=self.name))
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            try:
                yield self.tools
            finally:
                self.log.append("close")
                group.cancel_scope.cancel()


def broken(store: Any, step: str) -> Any:
    """The store, which cannot save the outcome of one step the first time."""
    append, failed = store.append, list[bool]()

    async def fail(claim: Claim, bodies: Sequence[Body]) -> Appended:
        if not failed and any(isinstance(body, Outcome) and str(body.step_id) == step for body in bodies):
            failed.append(True)
            raise OSError(28, "no space left on device")
        done: Appended = await append(claim, bodies)
        return done

    store.append = fail
    return store


async def test_the_tools_of_a_session_are_the_runs_beside_the_agents_own() -> None:
    bringer = Bringer(brought("far"))
    model = ScriptedModel(call("far", n="3"), call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[bringer]).run("go")

    assert results(result) == ["far got 3", "2"]
    assert [[t.name for t in r.tools] for r in model.requests] == [["add", "far"]] * 3
    assert model.requests[0].tools[1].parameters == freeze(SCHEMA)
    assert bringer.log == ["open", "close"]


async def test_a_terminal_tool_may_be_one_that_a_session_brings() -> None:
    model = ScriptedModel(call("far", n=1), "not asked")
    agent = Agent(model, tools=[add], terminal_tools=["far"], hooks=[Bringer(brought("far"))])
    result = await agent.run("go")
    assert (result.stop_reason, results(result)) == ("ToolCalled", ["far got 1"])


async def test_a_terminal_tool_that_no_session_brings_is_refused_before_anything_is_saved() -> None:
    store, bringer = MemoryStore(), Bringer(brought("far"))
    agent = Agent(ScriptedModel(), tools=[add], terminal_tools=["fra"], hooks=[bringer], checkpointer=store)
    with pytest.raises(UnknownName, match="unknown terminal tool 'fra'; did you mean 'far'"):
        await agent.run("go", thread_id="t")
    assert (await store.threads(), bringer.log) == ((), ["open", "close"])


async def test_a_session_is_open_from_before_the_first_event_to_after_the_last() -> None:
    bringer, recorder = Bringer(brought("far")), Recorder()

    seen: list[tuple[str, list[str]]] = []

    class Watch(Hook):
        def on_run_start(self, event: RunStartEvent) -> None:
            seen.append(("start", list(bringer.log)))

        def on_terminate(self, event: TerminateEvent) -> None:
            seen.append(("end", list(bringer.log)))

    await collect(Agent(ScriptedModel("done"), hooks=[bringer, recorder, Watch()]).run("go"))

    assert seen == [("start", ["open"]), ("end", ["open"])]
    assert bringer.log == ["open", "close"]
    assert kinds(recorder.events)[:3] == ["run_start", "opened", "checkpoint"]


async def test_each_of_many_runs_has_a_session_of_its_own() -> None:
    bringer = Bringer(brought("far"))
    agent = Agent(ScriptedModel(script=lambda _: [call("far", n=1), "done"]), hooks=[bringer])
    done: list[Any] = []

    async def one() -> None:
        done.append(await agent.run("go"))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)

    assert [results(result) for result in done] == [["far got 1"]] * 5
    assert sorted(bringer.log) == ["close"] * 5 + ["open"] * 5


async def test_an_agent_without_sessions_has_nothing_of_them_in_its_state() -> None:
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add]).run("go")

    assert result.state.metadata == {}


# -- failures -----------------------------------------------------------------------------------------


class Broken:
    """Opens in whatever way it is told."""

    def __init__(self, enter: Callable[[], Any], leave: Callable[[], Any] = lambda: None) -> None:
        self.enter, self.leave = enter, leave

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self) -> AsyncIterator[Any]:
        given = self.enter()
        if hasattr(given, "__await__"):
            given = await given
        yield given
        left = self.leave()
        if hasattr(left, "__await__"):
            await left


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("enter", "kind", "says"),
    [
        (raising(LookupError("my mistake")), PluginError, "locus_run_session raised LookupError: my mistake"),
        (raising(ExceptionGroup("g", [ToolError("no server")])), ToolError, "no server"),
        (raising(ToolError("no server")), ToolError, "no server"),
        (lambda: [print], PluginError, "expected a list of tools, each a locus.tools.Tool"),
        (lambda: [brought("a", origin="1"), brought("a", origin="2")], ToolDefinitionError, "two tools are named 'a'"),
        (lambda: [brought("add")], ToolDefinitionError, "two tools are named 'add'"),
    ],
    ids=["raises", "raises a group", "raises its own", "no tool", "one name twice", "the agent's name"],
)
async def test_a_session_that_cannot_be_opened_is_raised_before_anything_is_saved(
    enter: Callable[[], Any], kind: type[Exception], says: str
) -> None:
    store, recorder = MemoryStore(), Recorder()
    agent = Agent(ScriptedModel(), tools=[add], hooks=[Broken(enter), recorder], checkpointer=store)

    with pytest.raises(kind, match=says):
        await agent.run("go", thread_id="t")

    assert (await store.read("t"), recorder.events) == ((), [])
    retried = Agent(ScriptedModel("done"), tools=[add], checkpointer=store)
    assert (await retried.run("go", thread_id="t")).text == "done"


async def test_a_run_that_cannot_open_its_session_again_stays_open() -> None:
    store = broken(MemoryStore(), "0/think/0")
    with pytest.raises(StoreError):
        await Agent(ScriptedModel("done"), hooks=[Bringer(brought("far"))], checkpointer=store).run("?", thread_id="t")
    entries = await store.read("t")

    offline = Agent(ScriptedModel(), hooks=[Broken(raising(ToolError("no server")))], checkpointer=store)
    with pytest.raises(ToolError, match="no server"):
        await offline.resume("t")

    assert await store.read("t") == entries
    whole = Agent(ScriptedModel("done"), hooks=[Bringer(brought("far"))], checkpointer=store)
    assert (await whole.resume("t")).text == "done"


async def test_a_session_that_hangs_while_it_opens_has_its_hook_timeout() -> None:
    class Slow(Broken):
        hook_timeout = 0.01

    with pytest.raises(PluginError, match=r"did not open within its hook_timeout of 0\.01 s"):
        await Agent(ScriptedModel(), hooks=[Slow(anyio.sleep_forever)]).run("go")


async def test_what_fails_while_a_session_closes_is_reported_and_the_result_is_kept() -> None:
    leave = raising(LookupError("cannot leave"))
    result = await Agent(ScriptedModel("done"), hooks=[Broken(lambda: None, leave)]).run("go")

    [failure] = failures(result, "Broken")
    assert (result.text, failure.hook, failure.error) == ("done", "locus_run_session", "LookupError: cannot leave")


async def test_a_session_that_does_not_close_is_cancelled_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus.hooks.sessions.CLOSING", 0.01)
    result = await Agent(ScriptedModel("done"), hooks=[Broken(lambda: None, anyio.sleep_forever)]).run("go")

    [failure] = failures(result, "Broken")
    assert (result.text, failure.error) == ("done", "TimeoutError: did not close within 0.01 s and was cancelled")


async def test_a_session_that_breaks_in_the_middle_does_not_touch_the_run() -> None:
    broke = anyio.Event()

    class Fragile:
        @hookimpl
        @asynccontextmanager
        async def locus_run_session(self) -> AsyncIterator[Any]:
            async def fail() -> None:
                await broke.wait()
                raise LookupError("in the middle")

            async with anyio.create_task_group() as group:
                group.start_soon(fail)
                yield [brought("far")]

    class Breaks(Hook):
        async def on_checkpoint(self, event: CheckpointEvent) -> None:
            broke.set()
            await anyio.wait_all_tasks_blocked()

    model = ScriptedModel(call("far", n=1), "done")
    result = await Agent(model, hooks=[Fragile(), Breaks()]).run("go")

    [failure] = failures(result, "Fragile")
    assert (results(result), result.text) == (["far got 1"], "done")
    assert "in the middle" in failure.trace


async def test_a_session_is_left_when_the_run_is_cancelled_while_it_opens_or_later() -> None:
    for opens in (True, False):
        with anyio.CancelScope() as scope:

            async def opening(scope: anyio.CancelScope = scope) -> None:
                scope.cancel()
                await anyio.sleep_forever()

            hook = Bringer() if opens else Broken(opening)
            await Agent(ScriptedModel(interrupting(scope)), hooks=[hook]).run("go")
        assert scope.cancelled_caught
        assert getattr(hook, "log", ["open", "close"]) == ["open", "close"]


async def test_no_session_is_opened_for_a_prompt_that_was_refused() -> None:
    class Refuse(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Any) -> Any:
            return Cancel("no")

    bringer = Bringer(brought("far"))
    result = await Agent(ScriptedModel(), hooks=[bringer, Refuse()]).run("go")

    assert (result.stop_reason, bringer.log) == ("Cancelled: no", [])


@pytest.mark.parametrize("how", ["generator", "async"])
def test_a_session_hook_that_is_not_a_context_manager_is_refused_when_the_agent_is_built(how: str) -> None:
    async def generator(run: Any) -> Any:
        yield []

    async def coroutine(run: Any) -> Any:
        return None

    hook = type("H", (), {"locus_run_session": hookimpl(staticmethod(generator if how == "generator" else coroutine))})
    with pytest.raises(HookSpecError, match=r"contextlib\.asynccontextmanager"):
        Agent(ScriptedModel(), hooks=[hook()])


# -- resumes, replays -----------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [MemoryStore, partial(MemoryStore, history=False)])
async def test_a_resumed_run_has_the_tools_that_it_began_with(store: Any) -> None:
    kept = broken(store(), "0/execute/0")
    first = Bringer(brought("one"), brought("two", origin="b"), brought("gone"))
    begun = Agent(ScriptedModel(call("one", n=1)), tools=[add], hooks=[first], checkpointer=kept)
    with pytest.raises(StoreError):
        await begun.run("go", thread_id="t")

    # The server has since renamed one, changed what it says of another, dropped one and added one.
    second = Bringer(
        brought("new"), brought("other", origin="b"), brought("one", effect="pure", description="Now told otherwise.")
    )
    model = ScriptedModel(call("one", n=1), call("two", n=2), call("gone", n=3), call("new", n=4), "done")
    result = await Agent(model, tools=[add], hooks=[second], checkpointer=kept).resume("t")

    said = [(t.name, t.description) for t in model.requests[-1].tools if t.name != "add"]
    assert said == [("one", "Far away."), ("two", "Far away."), ("gone", "Far away.")]
    interrupted, *told = results(result)
    assert interrupted.startswith("Error: outcome unknown")
    assert told[:2] == ["one got 1", "other got 2"]
    assert told[2].startswith("Error: ToolError: the tool gone is gone (gone)")
    assert told[3].startswith("Error: UnknownTool: 'new' is not a tool")


async def test_a_plain_tool_can_be_brought_and_is_found_again() -> None:
    @tool
    def far(n: int) -> str:
        """Go there."""
        return f"went {n}"

    kept = broken(MemoryStore(), "0/think/0")
    with pytest.raises(StoreError):
        await Agent(ScriptedModel("?"), hooks=[Bringer(far)], checkpointer=kept).run("go", thread_id="t")
    model = ScriptedModel(call("far", n=1), "done")
    result = await Agent(model, hooks=[Bringer(far)], checkpointer=kept).resume("t")

    assert (results(result), model.requests[0].tools) == (["went 1"], (far.spec,))


async def test_a_replay_needs_no_session_and_not_even_the_plugin() -> None:
    store = MemoryStore()
    script: list[Any] = [call("far", n=1), call("far", m="x"), "done", call("far", n=2), "done"]
    bringer = Bringer(brought("far"))
    agent = Agent(ScriptedModel(*script), tools=[add], hooks=[bringer], checkpointer=store)
    await agent.run("go", thread_id="t")
    await agent.run("again", thread_id="t")
    opened = len(bringer.log)

    assert (await timetravel.replay(agent, "t")).raise_for_difference().ok
    assert (await timetravel.replay(Agent(ScriptedModel(), tools=[add], checkpointer=store), "t")).ok
    assert len(bringer.log) == opened


async def test_the_next_turn_has_the_tools_of_that_time() -> None:
    store, bringer = MemoryStore(), Bringer(brought("old"))
    model = ScriptedModel("a", "b", "c", "d")
    agent = Agent(model, hooks=[bringer], checkpointer=store)
    first = await agent.run("1", thread_id="t")
    same = await agent.run("2", thread_id="t")
    bringer.tools = (brought("new"),)
    other = await agent.run("3", thread_id="t")
    without = await Agent(model, checkpointer=store).run("4", thread_id="t")

    assert (
        first.state.metadata[SESSION_TOOLS] == same.state.metadata[SESSION_TOOLS] != other.state.metadata[SESSION_TOOLS]
    )
    assert [[t.name for t in r.tools] for r in model.requests] == [["old"], ["old"], ["new"], []]
    assert SESSION_TOOLS not in without.state.metadata
    assert (await timetravel.replay(agent, "t")).ok


async def test_damage_to_the_list_on_record_is_an_error_that_names_it() -> None:
    result = await Agent(ScriptedModel("a"), hooks=[Bringer(brought("far"))]).run("1")
    record = result.state.metadata[SESSION_TOOLS]

    assert [each["name"] for each in json.loads(record)] == ["far"]
    for damaged in (record[:-1], record.replace("origin", "origan"), "{}{}", 3):
        with pytest.raises(CheckpointError, match=r"locus\.tools"):
            restore(result.state.with_metadata(SESSION_TOOLS, damaged))


async def test_a_run_that_is_cancelled_leaves_its_session_in_the_sessions_own_time() -> None:
    turns: list[str] = []

    async def leave() -> None:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        turns.append("left")

    with anyio.CancelScope() as scope:
        await Agent(ScriptedModel(interrupting(scope)), hooks=[Broken(lambda: None, leave)]).run("go")

    assert turns == ["left"]
