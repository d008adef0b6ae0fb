"""What a tool's body may ask of its run: models, events, the state and the stash; and whose run code is called in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from tests.loop.hook_kit import Crash, question
from tests.loop.kit import Recorder, collect, of, results

from locus import Agent, AgentState, Event, Hook, ToolCompleteEvent, ToolContext, ToolStartEvent, tool
from locus.core.errors import BudgetExceeded
from locus.core.events import register_event
from locus.core.frozen import frozen
from locus.core.journal import Outcome
from locus.core.labels import Label
from locus.core.termination import MaxIterations, TokenLimit
from locus.journal import MemoryStore
from locus.models import OutputSpec
from locus.models.protocol import ModelRequest
from locus.plugin import RunContext, StashKey, current_run, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@register_event
@frozen(kw_only=True)
class Noticed(Event):
    """A plugin's own event."""

    type = "noticed_in_a_body"
    what: str = ""


@tool
async def judge(ctx: ToolContext[Any], about: str = "fine?") -> str:
    """Ask a model."""
    return (await ctx.call_model(question(about), purpose="judge")).message.text


def two_voices(*think: Any, judge: Any = "yes") -> ScriptedModel:
    """A model that answers a tool's questions one thing, and says its own lines to the loop."""
    lines = iter(think)
    return ScriptedModel(lambda r: next(lines) if r.purpose == "think" else judge, after="repeat")


# -- models -----------------------------------------------------------------------------------------


async def test_a_body_asks_a_model_as_a_step_of_its_own() -> None:
    store = MemoryStore()
    agent = Agent(two_voices(call("judge"), "done"), tools=[judge], checkpointer=store)
    result = await agent.run("x", thread_id="t")

    assert results(result) == ["yes"]
    assert result.usage.total_tokens == 45
    steps = [e.body.step_id for e in await store.read("t") if isinstance(e.body, Outcome)]
    [asked] = [step for step in steps if step.purpose == "judge"]
    assert str(asked.parent) == "0/execute/0"


async def test_the_same_question_of_two_bodies_is_asked_twice() -> None:
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        if request.purpose != "think":
            asked.append(request)
            return f"answer {len(asked)}"
        return "done" if len(request.messages) > 1 else [call("judge"), call("judge")]

    result = await Agent(ScriptedModel(answer, after="repeat"), tools=[judge], max_concurrent_tools=1).run("x")
    assert results(result) == ["answer 1", "answer 2"]
    assert result.usage.total_tokens == 60


async def test_a_body_that_is_entered_again_gets_the_recorded_answers() -> None:
    """Given a body that asks a model twice and then a person; when there is an answer, no model is asked again."""
    said: list[str] = []

    @tool(effect="pure")
    async def careful(ctx: ToolContext[Any]) -> str:
        """Ask two models and a person."""
        for _ in range(2):
            said.append((await ctx.call_model(question("q", purpose="p"), purpose="p")).message.text)
        return f"{''.join(said[-2:])} {ctx.interrupt('ok?')}"

    answers = iter(["a", "b", "c", "d"])
    model = ScriptedModel(
        lambda r: next(answers) if r.purpose == "p" else "done" if len(r.messages) > 1 else call("careful"),
        after="repeat",
    )
    agent = Agent(model, tools=[careful], checkpointer=MemoryStore())
    waits = await agent.run("x", thread_id="t")
    result = await agent.resume(waits, "good")

    assert said == ["a", "b", "a", "b"]
    assert results(result) == ["ab good"]
    assert waits.usage.total_tokens == 45
    assert result.usage.total_tokens == 60


async def test_after_a_crash_a_call_that_was_answered_is_charged_once_and_not_made_again() -> None:
    dies = [True]

    @tool(effect="pure")
    async def fragile(ctx: ToolContext[Any]) -> str:
        """Ask a model and die."""
        answer = await ctx.call_model(question("q", purpose="p"), purpose="p")
        await ctx.step("written", anyio.lowlevel.checkpoint)
        if dies.pop():
            raise Crash
        return answer.message.text

    dies.insert(0, False)
    model = two_voices(call("fragile"), "done")
    agent = Agent(model, tools=[fragile], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    result = await agent.resume("t")

    assert results(result) == ["yes"]
    assert len(model.requests) == 3
    assert result.usage.total_tokens == 45


async def test_a_body_may_not_ask_beyond_the_budget_of_its_run() -> None:
    refused: list[BudgetExceeded] = []

    @tool
    async def greedy(ctx: ToolContext[Any]) -> str:
        """Ask until it is refused."""
        try:
            while len(model.requests) < 10:
                await ctx.call_model(question("more?", purpose="p"), purpose="p")
        except BudgetExceeded as e:
            refused.append(e)
        return "enough"

    model = two_voices(call("greedy"), "done")
    result = await Agent(model, tools=[greedy], termination=TokenLimit(50) | MaxIterations(5)).run("x")

    assert "TokenLimit" in str(refused[0])
    assert len(model.requests) == 4, "one of Think, and three until 60 tokens are more than 50"
    assert result.stop_reason == "TokenLimit"
    assert result.usage.total_tokens == 60


async def test_what_a_quarantined_call_says_makes_the_result_untrusted() -> None:
    @tool(reads="own")
    async def sift(ctx: ToolContext[Any]) -> str:
        """Read what anybody may have written."""
        spec = OutputSpec(name="found", schema={"type": "object"})
        asked = ModelRequest(messages=question("?").messages, output=spec)
        return (await ctx.call_model(asked, purpose="quarantined")).message.text

    result = await Agent(two_voices(call("sift"), "done", judge="{}"), tools=[sift]).run("x")
    [done] = result.state.tool_executions
    assert isinstance(done.label, Label)
    assert done.label.is_tainted


async def test_a_failing_model_is_the_bodys_own_to_handle() -> None:
    def fail(request: ModelRequest) -> Any:
        if request.purpose == "think":
            return "done" if len(request.messages) > 1 else call("judge")
        raise RuntimeError("no power")

    result = await Agent(ScriptedModel(fail, after="repeat"), tools=[judge]).run("x")
    assert "no power" in results(result)[0]
    assert result.stop_reason == "NoToolCalls"


# -- events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_event_of_a_body_is_on_the_stream_with_its_envelope(is_async: bool) -> None:
    @tool
    async def notice(ctx: ToolContext[Any]) -> str:
        """Tell."""
        await ctx.emit(Noticed(what="a"))
        return "told"

    @tool(name="notice")
    def notice_in_a_thread(ctx: ToolContext[Any]) -> str:
        """Tell from a worker thread."""
        anyio.from_thread.run(ctx.emit, Noticed(what="a"))
        return "told"

    heard = Recorder()
    body = notice if is_async else notice_in_a_thread
    agent = Agent(ScriptedModel(call("notice"), "done"), tools=[body], hooks=[heard])
    events = await collect(agent.run("x", thread_id="t"))

    [event] = of(events, Noticed)
    [before], [after] = of(events, ToolStartEvent), of(events, ToolCompleteEvent)
    assert (event.what, event.run_id, event.thread_id) == ("a", before.run_id, "t")
    assert event.iteration == before.iteration == 1
    assert before.seq < event.seq < after.seq
    assert of(heard.events, Noticed) == [event]
    assert [e.seq for e in events] == sorted(e.seq for e in events)


# -- the state and the stash ------------------------------------------------------------------------

KEY: StashKey[list[str]] = StashKey("seen")


async def test_a_body_and_the_hooks_of_its_run_share_the_stash_and_each_run_has_its_own() -> None:
    class Reader(Hook):
        def __init__(self) -> None:
            self.found: list[list[str]] = []

        def on_terminate(self, event: Event, run: RunContext) -> None:
            self.found.append(run.stash.get(KEY, []))

    @tool
    async def put(ctx: ToolContext[Any]) -> str:
        """Keep something."""
        ctx.stash.setdefault(KEY, []).append(ctx.run_id)
        return "kept"

    reader = Reader()
    agent = Agent(ScriptedModel(call("put"), "done", call("put"), "done"), tools=[put], hooks=[reader])
    first, second = await agent.run("x"), await agent.run("y")
    assert reader.found == [[first.run_id], [second.run_id]]


async def test_a_body_sees_the_state_that_execute_got() -> None:
    """Given a hook that wraps Execute around another state; then the body sees that one, and cannot change it."""
    seen: list[AgentState] = []

    class Adds(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> AgentState:
            made: AgentState = await call_next(state.with_metadata("at", str(node)) if node == "execute" else state)
            return made

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        """Look at the state."""
        seen.append(ctx.state)
        with pytest.raises((AttributeError, TypeError)):
            ctx.state.metadata["at"] = "body"
        return "seen"

    result = await Agent(ScriptedModel(call("look"), "done"), tools=[look], hooks=[Adds()]).run("x")
    [state] = seen
    assert [c.name for c in state.unanswered] == ["look"]
    assert state.metadata["at"] == "execute"
    assert results(result) == ["seen"]


# -- the current run --------------------------------------------------------------------------------


def run_id() -> str | None:
    """The id of the run in which this is called."""
    run = current_run()
    return None if run is None else run.run_id


class Everywhere(Hook):
    """Notes the current run at each event, in a session, and around a node."""

    def __init__(self) -> None:
        self.seen: set[tuple[str | None, str]] = set()

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[None]:
        assert current_run() is run
        yield
        assert current_run() is run

    def on_event(self, event: Event, run: RunContext) -> None:
        self.seen.add((run_id(), run.run_id))

    @hookimpl
    async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState, run: RunContext) -> AgentState:
        self.seen.add((run_id(), run.run_id))
        made: AgentState = await call_next(state)
        return made

    @hookimpl
    def locus_filter_input(self, prompt: Any, run: RunContext) -> None:
        assert current_run() is run


async def test_hooks_and_bodies_know_their_run_and_others_have_none() -> None:
    seen: list[tuple[str | None, str]] = []

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        """Look."""
        seen.append((run_id(), ctx.run_id))
        async with anyio.create_task_group() as group:
            group.start_soon(look_in_a_task, ctx.run_id)
        return "seen"

    async def look_in_a_task(expected: str) -> None:
        seen.append((run_id(), expected))
        await anyio.to_thread.run_sync(look_in_a_thread, expected)

    def look_in_a_thread(expected: str) -> None:
        seen.append((run_id(), expected))

    @tool
    def look_from_a_thread(ctx: ToolContext[Any]) -> str:
        """Look."""
        seen.append((run_id(), ctx.run_id))
        return "seen"

    hook = Everywhere()
    calls = [call("look"), call("look_from_a_thread")]
    agent = Agent(ScriptedModel(calls, "done"), tools=[look, look_from_a_thread], hooks=[hook])
    async for _ in agent.run("x"):
        assert current_run() is None, "the consumer is not in the run"
    assert current_run() is None
    assert len(seen) == 4
    assert all(found == expected for found, expected in [*seen, *hook.seen])


async def test_runs_at_the_same_time_each_have_their_own() -> None:
    arrived = [anyio.Event() for _ in range(3)]
    seen: dict[str, set[str | None]] = {}

    @tool
    async def meet(n: int, ctx: ToolContext[Any]) -> str:
        """Wait for the others."""
        found = {run_id()}
        arrived[n].set()
        for event in arrived:
            await event.wait()
        seen[ctx.run_id] = found | {run_id()}
        return "met"

    async with anyio.create_task_group() as group:
        for n in range(3):
            agent = Agent(ScriptedModel(call("meet", n=n), "done"), tools=[meet])
            group.start_soon(_run, agent)
    assert len(seen) == 3
    assert all(found == {run} for run, found in seen.items())


async def _run(agent: Agent[Any, Any]) -> None:
    await agent.run("x")
    assert current_run() is None


async def test_in_a_child_it_is_the_child_and_after_it_the_parent() -> None:
    seen: list[tuple[str | None, str]] = []

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        """Look."""
        seen.append((run_id(), ctx.run_id))
        return "seen"

    @tool
    async def ask(ctx: ToolContext[Any], alone: bool) -> str:
        """Run another agent, as a child or by itself."""
        inner = Agent(ScriptedModel(call("look"), "inner"), tools=[look])
        await (inner.run("y") if alone else ctx.run_child(inner, "y"))
        seen.append((run_id(), ctx.run_id))
        return "asked"

    calls = [call("ask", alone=False), call("ask", alone=True)]
    await Agent(ScriptedModel(calls, "done"), tools=[ask], max_concurrent_tools=1).run("x")
    assert len({found for found, _ in seen}) == 3
    assert all(found == expected for found, expected in seen)


async def test_what_outlives_a_run_has_none() -> None:
    """Given a task, and a thread, that a body starts and that go on after the run; then they have no run."""
    ended, seen = anyio.Event(), list[RunContext | None]()

    async def linger() -> None:
        seen.append(current_run())
        await ended.wait()
        seen.append(current_run())

    async with anyio.create_task_group() as group:

        @tool
        async def start() -> str:
            """Start what goes on."""
            group.start_soon(linger)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            return "started"

        result = await Agent(ScriptedModel(call("start"), "done"), tools=[start]).run("x")
        ended.set()
    assert [None if run is None else run.run_id for run in seen] == [result.run_id, None]


async def test_a_run_that_fails_or_is_dropped_leaves_none() -> None:
    @tool
    async def die() -> str:
        """Die."""
        raise Crash

    agent = Agent(ScriptedModel(call("die"), after="repeat"), tools=[die])
    with pytest.raises(Crash):
        await agent.run("x")
    assert current_run() is None
    with anyio.CancelScope() as scope:
        scope.cancel()
        await agent.run("x")
    assert current_run() is None


async def test_a_run_that_is_closed_in_another_run_leaves_that_one_its_own() -> None:
    """Given a run of another context that is suspended; when a body closes it, the body's own run stays the current."""
    seen: list[str | None] = []

    @tool
    async def close(ctx: ToolContext[Any]) -> str:
        """Close the other run."""
        other, context = Agent(ScriptedModel("never")).run("x").__await__(), copy_context()
        context.run(other.send, None)
        assert context.run(run_id) not in (None, ctx.run_id)
        other.close()
        seen.extend([run_id(), ctx.run_id])
        return "closed"

    await Agent(ScriptedModel(call("close"), "done"), tools=[close]).run("y")
    assert seen[0] == seen[1] is not None
