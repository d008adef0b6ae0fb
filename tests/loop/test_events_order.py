"""The stream of events: how it begins, how it is numbered, and that it ends exactly once, whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from tests.loop.hook_kit import Crash, question, wrong
from tests.loop.kit import Recorder, add, collect, confirm, kinds, of

from locus import (
    Agent,
    AgentState,
    Cancel,
    CheckpointEvent,
    Event,
    Hook,
    HookFailedEvent,
    InterruptEvent,
    IterationEvent,
    Message,
    ModelCompleteEvent,
    ModelError,
    ReflectEvent,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.errors import StoreError, ThreadBusy
from locus.core.events import event_from_json, event_to_json
from locus.core.journal import END, Paused, Transition
from locus.core.messages import ToolCall
from locus.core.termination import CustomCondition, TokenLimit
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import FullStore, ScriptedModel, call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


@tool
async def fail() -> str:
    """Fails."""
    raise LookupError("broken")


class Stops(Hook):
    """Cancels at an event."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def on_event(self, event: Event) -> Cancel | None:
        return Cancel("enough") if event.type == self.kind else None


class Refuses(Hook):
    """Refuses the prompt."""

    @hookimpl
    def locus_filter_input(self, prompt: Message) -> Cancel:
        return Cancel("off topic")


class Reflects(Hook):
    """Reflects after every iteration."""

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)]

    @hookimpl
    def locus_reflect(self, state: AgentState) -> AgentState:
        return state.with_confidence(0.5)


def broken_condition(state: AgentState) -> bool:
    raise LookupError("my mistake")


Make = Callable[..., Agent[Any, Any]]


def agent(*turns: Any, hooks: tuple[Any, ...] = (), **options: Any) -> Make:
    """A recipe for an agent, so that each use starts afresh."""

    def make(more: list[Any], **more_options: Any) -> Agent[Any, Any]:
        model = ScriptedModel(*turns, chunks=True)
        return Agent(model, tools=[add, confirm, fail], hooks=[*hooks, *more], **options, **more_options)

    return make


ENDS: dict[str, tuple[str, Make]] = {
    "an answer": ("NoToolCalls", agent("hi")),
    "tools": (
        "NoToolCalls",
        agent([call("add", a=1), call("fail"), call("nothing")], "done", tool_execution="sequential"),
    ),
    "one after another": (
        "NoToolCalls",
        agent([call("add", a=1), call("add", a=2)], "done", tool_execution="sequential"),
    ),
    "a reflection": ("NoToolCalls", agent(call("add", a=1), "done", hooks=(Reflects(),))),
    "a limit": ("MaxIterations", agent(call("add", a=1), call("add", a=1), max_iterations=2)),
    "a limit in the middle": (
        "TokenLimit",
        agent(call("add", a=1), termination=TokenLimit(10), max_iterations=9),
    ),
    "a failing model": ("ModelError", agent(call("add", a=1), ModelError("down"))),
    "a failing node": ("NodeError", agent("hi", hooks=(wrong("raises", "locus_think"),))),
    "a failing end": ("NodeError", agent("hi", hooks=(wrong("raises", "locus_terminate"),))),
    "a failing condition": (
        "ConditionError",
        agent("hi", termination=CustomCondition(broken_condition), max_iterations=9),
    ),
    "a question": ("Interrupted", agent([call("confirm", what="pay")])),
    "a refused prompt": ("Cancelled: off topic", agent(hooks=(Refuses(),))),
    "a cancel at the start": ("Cancelled: enough", agent(hooks=(Stops("run_start"),))),
    "a cancel at an iteration": ("Cancelled: enough", agent(hooks=(Stops("iteration"),))),
    "a cancel at an answer": ("Cancelled: enough", agent("hi", hooks=(Stops("think"),))),
    "a cancel at a chunk": ("Cancelled: enough", agent("hi you", hooks=(Stops("model_chunk"),))),
    "a cancel at a tool": ("Cancelled: enough", agent(call("add", a=1), hooks=(Stops("tool_start"),))),
    "a cancel at the end": ("NoToolCalls", agent("hi", hooks=(Stops("terminate"),))),
    "a failing observer": ("NoToolCalls", agent("hi", hooks=(wrong("raises", "locus_on_event"),))),
    "a failing guard": (
        "Cancelled: guard bad failed",
        agent("hi", hooks=(wrong("raises", "locus_on_think", guard=True),)),
    ),
}


def assert_one_segment(events: list[Event], segment: int = 0, resumed: bool = False) -> None:
    """What holds of the events of every segment."""
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert {e.segment for e in events} == {segment}
    assert len({(e.run_id, e.thread_id) for e in events}) == 1
    start, end = events[0], events[-1]
    assert isinstance(start, RunStartEvent)
    assert start.resumed is resumed
    assert isinstance(end, TerminateEvent)
    assert len(of(events, RunStartEvent)) == len(of(events, TerminateEvent)) == 1
    assert all(a.timestamp <= b.timestamp for a, b in pairwise(events))
    assert all(a.iteration <= b.iteration for a, b in pairwise(events))
    assert events[0].iteration >= 1


@pytest.mark.parametrize("name", ENDS)
async def test_a_stream_begins_with_its_start_and_ends_with_its_only_end(name: str) -> None:
    reason, make = ENDS[name]
    run = make([]).run("x")
    events = await collect(run)
    assert_one_segment(events)
    assert of(events, TerminateEvent)[0].reason == run.result.stop_reason == reason


@pytest.mark.parametrize("name", ENDS)
async def test_hooks_hear_what_the_consumer_sees(name: str) -> None:
    recorder = Recorder()
    _, make = ENDS[name]
    seen = await collect(make([recorder]).run("x"))
    assert recorder.events == seen
    awaited = Recorder()
    await make([awaited]).run("x")
    assert kinds(awaited.events) == kinds(recorder.events)


@pytest.mark.parametrize("name", ENDS)
async def test_every_event_of_a_stream_has_a_json_form_that_reads_back(name: str) -> None:
    _, make = ENDS[name]
    for event in await collect(make([]).run("x")):
        assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


@pytest.mark.parametrize("name", ENDS)
async def test_the_state_is_saved_before_anybody_hears_of_the_end(name: str) -> None:
    store = MemoryStore()
    saved: list[Any] = []

    class Look(Hook):
        async def on_terminate(self, event: TerminateEvent) -> None:
            saved.append((await store.read("t"))[-1].body)

    reason, make = ENDS[name]
    events = await collect(make([Look()], checkpointer=store).run("x", thread_id="t"))
    [last] = saved
    if reason == "Interrupted":
        assert isinstance(last, Paused)
    else:
        assert isinstance(last, Transition)
        assert (last.next_node, last.why) == (END, reason)
    assert isinstance(events[-1], TerminateEvent)


async def test_each_segment_counts_from_one_and_the_run_keeps_its_id() -> None:
    recorder = Recorder()
    model = ScriptedModel([call("confirm", what="pay"), call("confirm", what="ship")], "done", chunks=True)
    agent = Agent(model, tools=[confirm], hooks=[recorder], checkpointer=MemoryStore())
    asked = await agent.run("x", thread_id="t")
    first, second = asked.interrupts
    half = await agent.resume("t", {first.interrupt_id: "yes"})
    result = await agent.resume("t", {second.interrupt_id: "yes"})
    for segment in range(3):
        events = [e for e in recorder.events if e.segment == segment]
        assert_one_segment(events, segment, resumed=segment > 0)
    assert {e.run_id for e in recorder.events} == {asked.run_id} == {half.run_id} == {result.run_id}
    assert len({e.event_id for e in recorder.events}) == len(recorder.events)
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Interrupted", "Interrupted", "NoToolCalls"]


async def test_the_next_turn_of_a_thread_is_a_run_of_its_own() -> None:
    recorder = Recorder()
    agent = Agent(ScriptedModel("one", "two"), hooks=[recorder], checkpointer=MemoryStore())
    first = await agent.run("x", thread_id="t")
    second = await agent.run("y", thread_id="t")
    assert first.run_id != second.run_id
    for run_id in (first.run_id, second.run_id):
        assert_one_segment([e for e in recorder.events if e.run_id == run_id])
    assert [e.prompt for e in of(recorder.events, RunStartEvent)] == ["x", "y"]


async def test_an_iteration_is_reported_in_the_order_in_which_it_happens() -> None:
    model = ScriptedModel([call("add", a=1), call("fail")], "done")
    events = await collect(Agent(model, tools=[add, fail], hooks=[Reflects()], tool_execution="sequential").run("x"))
    assert kinds(events) == [
        *("run_start", "checkpoint"),
        *("iteration", "model_complete", "think", "checkpoint"),
        *("tool_start", "tool_complete", "tool_start", "tool_complete", "checkpoint"),
        "checkpoint",  # the reflection
        *("iteration", "model_complete", "think", "checkpoint"),
        *("checkpoint", "terminate"),
    ]
    assert [(e.node, e.next_node) for e in of(events, CheckpointEvent)] == [
        ("start", "think"),
        ("think", "execute"),
        ("execute", "reflect"),
        ("reflect", "think"),
        ("think", "terminate"),
        ("terminate", "end"),
    ]
    assert [e.head for e in of(events, CheckpointEvent)] == sorted({e.head for e in of(events, CheckpointEvent)})
    assert [e.iteration for e in of(events, IterationEvent)] == [1, 2]


async def test_every_start_of_a_tool_has_its_end() -> None:
    turn = [call("add", a=n) for n in range(5)] + [call("fail"), call("nothing"), call("add", a="x")]
    events = await collect(Agent(ScriptedModel(turn, "done"), tools=[add, fail]).run("x"))
    started = [e.call_id for e in of(events, ToolStartEvent)]
    completed = [e.call_id for e in of(events, ToolCompleteEvent)]
    assert len(started) == len(set(started)) == 6
    assert len(completed) == len(set(completed)) == 8
    for call_id in started:
        order = [e.type for e in events if getattr(e, "call_id", "") == call_id]
        assert order == ["tool_start", "tool_complete"]


async def test_questions_come_right_before_the_end_of_their_segment() -> None:
    model = ScriptedModel([call("confirm", what="pay"), call("add", a=1), call("confirm", what="ship")])
    events = await collect(Agent(model, tools=[add, confirm]).run("x"))
    assert kinds(events)[-3:] == ["interrupt", "interrupt", "terminate"]
    assert len({e.interrupt_id for e in of(events, InterruptEvent)}) == 2


async def test_the_end_says_what_the_result_says() -> None:
    model = ScriptedModel(call("add", a=1), "done")
    run = Agent(model, tools=[add], hooks=[Reflects()]).run("x")
    [end] = of(await collect(run), TerminateEvent)
    result = run.result
    assert (end.reason, end.satisfied, end.detail) == (result.stop_reason, result.satisfied, result.detail)
    assert (end.final_message, end.usage) == (result.message, result.usage)
    assert (end.iterations_used, end.total_tool_calls, end.final_confidence) == (2, 1, 0.5)
    assert end.error is None


async def test_timestamps_are_the_runs_own_clock() -> None:
    clock = FakeClock()

    class Tick(Hook):
        def on_think(self, event: ThinkEvent) -> None:
            clock.advance(60)

    events = await collect(Agent(ScriptedModel("hi"), hooks=[Tick()], clock=clock).run("x"))
    begun = events[0].timestamp
    assert [(e.timestamp - begun).total_seconds() for e in of(events, ThinkEvent)] == [0.0]
    assert (events[-1].timestamp - begun).total_seconds() == 60.0


async def test_a_child_has_a_stream_of_its_own_within_its_parents() -> None:
    child = Agent(ScriptedModel("from below"), name="child")

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Asks the child."""
        return str((await ctx.run_child(child, "y")).message)

    run = Agent(ScriptedModel(call("ask"), "done"), tools=[ask]).run("x")
    events = await collect(run)
    mine = [e for e in events if e.run_id == run.result.run_id]
    childs = [e for e in events if e.run_id != run.result.run_id]
    assert_one_segment(mine)
    assert_one_segment(childs)
    assert {e.parent_run_id for e in childs} == {run.result.run_id}
    assert {e.parent_run_id for e in mine} == {None}
    assert events[-1] is mine[-1]
    inside = kinds(events)
    assert (
        inside.index("tool_start") < events.index(childs[0]) < events.index(childs[-1]) < inside.index("tool_complete")
    )


async def test_concurrent_runs_of_one_agent_do_not_mix() -> None:
    streams: list[list[Event]] = []
    agent = Agent(ScriptedModel(script=lambda request: [call("add", a=1), "done"]), tools=[add])

    async def one() -> None:
        streams.append(await collect(agent.run("x")))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert len({events[0].run_id for events in streams}) == 5
    for events in streams:
        assert_one_segment(events)


async def test_a_run_that_could_not_begin_has_no_events() -> None:
    store, recorder = MemoryStore(), Recorder()
    inside = anyio.Event()

    class Hold(Hook):
        async def on_think(self, event: ThinkEvent) -> None:
            inside.set()
            await anyio.sleep_forever()

    busy = Agent(ScriptedModel("hi"), hooks=[Hold()], checkpointer=store)

    async def hold() -> None:
        await busy.run("x", thread_id="t")

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await inside.wait()
        with pytest.raises(ThreadBusy):
            await Agent(ScriptedModel("hi"), hooks=[recorder], checkpointer=store).run("y", thread_id="t")
        group.cancel_scope.cancel()
    assert recorder.events == []


async def test_a_process_that_dies_says_nothing_more_and_the_next_segment_begins_anew() -> None:
    class Dies(Hook):
        alive = False

        def on_tool_call(self, call: ToolCall) -> None:
            if not self.alive:
                raise Crash

    recorder, dies = Recorder(), Dies()
    agent = Agent(
        ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[recorder, dies], checkpointer=MemoryStore()
    )
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    assert of(recorder.events, TerminateEvent) == []
    dies.alive = True
    recorder.events.clear()
    await agent.resume("t")
    assert_one_segment(recorder.events, 1, resumed=True)


class Asks(Hook):
    """Asks a model about each prompt, and takes out what is secret."""

    name = "asks"

    def __init__(self) -> None:
        self.heard: list[str] = []

    @hookimpl
    async def locus_filter_input(self, prompt: Message, run: RunContext) -> str:
        await run.emit(ReflectEvent(judgment="looks odd"))
        await run.call_model(question("Is this fine?"), purpose="guard")
        return prompt.text.replace("XYZZY", "[code]")

    def on_event(self, event: Event) -> None:
        self.heard.append(event.type)


CAUSED = ["reflect", "model_chunk", "model_complete"]


@pytest.mark.parametrize("how", ["fails", "asks a model"])
async def test_the_start_comes_before_whatever_a_filter_causes(how: str) -> None:
    class Fails(Hook):
        @hookimpl
        async def locus_filter_input(self, prompt: Message) -> None:
            raise LookupError("my mistake")

    recorder = Recorder()
    model = ScriptedModel("yes", "hi", chunks=True)
    events = await collect(Agent(model, hooks=[Fails() if how == "fails" else Asks(), recorder]).run("x"))
    assert_one_segment(events)
    caused = ["hook_failed"] if how == "fails" else CAUSED
    assert kinds(events)[: len(caused) + 2] == ["run_start", *caused, "checkpoint"]
    assert events == recorder.events


async def test_the_start_tells_the_prompt_as_it_was_filtered() -> None:
    events = await collect(Agent(ScriptedModel("yes", "hi"), hooks=[Asks()]).run("The code is XYZZY."))
    assert of(events, RunStartEvent)[0].prompt == "The code is [code]."
    assert not any("XYZZY" in json.dumps(event_to_json(e)) for e in events)


async def test_who_filters_does_not_hear_of_the_call_that_it_makes_although_it_is_reported_later() -> None:
    asks, recorder = Asks(), Recorder()
    await Agent(ScriptedModel("yes", "hi"), hooks=[asks, recorder]).run("x")
    assert asks.heard.count("model_complete") == 1  # of the answer, not of its own question
    assert kinds(recorder.events).count("model_complete") == 2
    assert asks.heard[:2] == ["run_start", "reflect"]


async def test_a_directive_at_what_a_filter_causes_is_obeyed() -> None:
    class Frugal(Hook):
        def on_model_complete(self, event: ModelCompleteEvent) -> Cancel | None:
            return Cancel("too dear") if event.purpose == "guard" else None

    model = ScriptedModel("yes", "never")
    result = await Agent(model, hooks=[Asks(), Frugal()]).run("x")
    assert result.stop_reason == "Cancelled: too dear"
    assert len(model.requests) == 1


async def test_an_event_that_a_filter_emits_twice_is_its_failure() -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
            event = ReflectEvent(judgment="odd")
            await run.emit(event)
            await run.emit(event)

    events = await collect(Agent(ScriptedModel("hi"), hooks=[Twice()]).run("x"))
    assert_one_segment(events)
    assert kinds(events)[:4] == ["run_start", "reflect", "hook_failed", "checkpoint"]
    assert "emitted already" in of(events, HookFailedEvent)[0].error


async def test_a_filter_that_is_cancelled_in_the_middle_shows_no_prompt_and_the_end_is_reported() -> None:
    with anyio.CancelScope() as scope:

        class Slow(Asks):
            @hookimpl
            async def locus_filter_input(self, prompt: Message, run: RunContext) -> str:
                await run.emit(ReflectEvent(judgment="odd"))
                scope.cancel()
                await anyio.lowlevel.checkpoint()
                return "never"

        recorder, store = Recorder(), MemoryStore()
        await Agent(ScriptedModel("hi"), hooks=[Slow(), recorder], checkpointer=store).run("XYZZY", thread_id="t")
    assert kinds(recorder.events) == ["run_start", "reflect", "terminate"]
    assert of(recorder.events, RunStartEvent)[0].prompt == "[withheld: the prompt was not filtered to its end]"
    assert of(recorder.events, TerminateEvent)[0].reason == "Cancelled"
    assert await store.read("t") == ()


async def test_a_filter_whose_step_cannot_be_saved_shows_no_prompt_and_the_end_is_reported() -> None:
    class Steps(Hook):
        @hookimpl
        async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
            async def look() -> str:
                return "fine"

            await run.step("look", look)

    recorder = Recorder()
    with pytest.raises(StoreError):
        await Agent(ScriptedModel("hi"), hooks=[Steps(), recorder], checkpointer=FullStore(1)).run(
            "XYZZY", thread_id="t"
        )
    assert kinds(recorder.events) == ["run_start", "terminate"]
    assert "XYZZY" not in of(recorder.events, RunStartEvent)[0].prompt


async def test_what_hooks_emit_at_an_event_comes_after_it_for_the_consumer() -> None:
    class Chatty(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.emit(ReflectEvent(judgment="one"))
            await run.call_model(question("Is that right?"), purpose="judge")
            await run.emit(ReflectEvent(judgment="two"))

    class Echo(Hook):
        async def on_reflect(self, event: ReflectEvent, run: RunContext) -> None:
            if event.judgment == "one":
                await run.emit(ReflectEvent(judgment="echo"))

    run = Agent(ScriptedModel("hi", "yes", chunks=True), hooks=[Chatty(), Echo()]).run("x")
    events = await collect(run)
    assert_one_segment(events)
    after = events[kinds(events).index("think") :]
    assert kinds(after)[:6] == ["think", "reflect", "reflect", "model_chunk", "model_complete", "reflect"]
    assert [e.judgment for e in of(events, ReflectEvent)] == ["one", "echo", "two"]


async def test_a_run_within_a_hook_has_its_own_consumer() -> None:
    inner: list[Event] = []

    class Nested(Hook):
        async def on_think(self, event: ThinkEvent) -> None:
            inner.extend(await collect(Agent(ScriptedModel("from within")).run("y")))

    with anyio.fail_after(5):
        outer = await collect(Agent(ScriptedModel("hi"), hooks=[Nested()]).run("x"))
    assert_one_segment(inner)
    assert_one_segment(outer)


async def test_a_failure_is_reported_right_after_the_event_at_which_it_happened() -> None:
    recorder = Recorder()
    await Agent(ScriptedModel("hi"), hooks=[wrong("raises", "locus_on_think"), recorder]).run("x")
    told = kinds(recorder.events)
    assert told[told.index("think") + 1] == "hook_failed"
    assert [e.seq for e in recorder.events] == sorted(e.seq for e in recorder.events)
    assert of(recorder.events, HookFailedEvent)[0].iteration == 1
