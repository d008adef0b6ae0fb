"""Streaming: what a run shows while it happens, and that showing it changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from attrs import evolve
from tests.loop.hook_kit import failures
from tests.loop.kit import Recorder, add, collect, confirm, kinds, of

from locus import (
    Agent,
    AgentState,
    Cancel,
    CheckpointEvent,
    Event,
    Hook,
    Message,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelError,
    ModelErrorEvent,
    ModelRequest,
    ModelResponse,
    ModelRestartEvent,
    Retry,
    Revise,
    Role,
    TerminateEvent,
    ThinkEvent,
    ToolContext,
    tool,
)
from locus.core.messages import RawBlock, TextBlock, ThinkingBlock
from locus.journal import MemoryStore
from locus.models.protocol import Chunk, OnChunk
from locus.plugin import hookimpl
from locus.run import CHUNKS_AHEAD
from locus_testkit import ScriptedModel, call, malformed_call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


@tool
async def fail() -> str:
    """Fails."""
    raise LookupError("broken")


class Breaks:
    """Streams some words and then fails, ``times`` times; then it answers."""

    name = "breaks:model"

    def __init__(self, times: int, *, retryable: bool = True) -> None:
        self.left, self.retryable = times, retryable

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        words = ["half", " an"] if self.left else ["the", " whole"]
        if on_chunk is not None:
            for word in words:
                await on_chunk(Chunk(word))
        if self.left:
            self.left -= 1
            raise ModelError("the line broke", retryable=self.retryable)
        return ModelResponse(message=Message(Role.ASSISTANT, "the whole"))


class Screen:
    """What a user interface shows that follows the rules: a restart wipes what earlier attempts wrote."""

    def __init__(self) -> None:
        self.attempts: dict[int, str] = {}

    def take(self, event: Event) -> None:
        if isinstance(event, ModelChunkEvent) and event.purpose == "think":
            self.attempts[event.attempt] = self.attempts.get(event.attempt, "") + event.text
        elif isinstance(event, ModelRestartEvent):
            self.attempts = {a: text for a, text in self.attempts.items() if a >= event.attempt}

    @property
    def text(self) -> str:
        return "".join(self.attempts.values())


class Plain(Hook):
    """Hears nothing."""


SCRIPTS: dict[str, list[Any]] = {
    "text": ["hello there"],
    "thinking": [[ThinkingBlock("let me see", "sig"), TextBlock("hello")]],
    "tools": [["Let me add.", call("add", a=1), call("add", a=2)], call("fail"), "done"],
    "raw blocks": [[RawBlock("acme", {"cite": 1}), TextBlock("hello")]],
    "bad calls": [[call("nothing"), malformed_call("add", '{"a": ')], "done"],
    "an empty answer": [Message(Role.ASSISTANT, ())],
    "an error": [call("add", a=1), ModelError("down")],
    "a revision": ["too long", "short"],
}


class Shorter(Hook):
    """Sends long answers back."""

    @hookimpl
    def locus_review_answer(self, answer: Message) -> Revise | None:
        return Revise("shorter") if "long" in answer.text else None


def comparable(state: AgentState) -> AgentState:
    """The state without what differs between any two runs: ids and durations."""
    return evolve(
        state,
        run_id="r",
        tool_executions=tuple(evolve(e, duration_ms=0.0) for e in state.tool_executions),
    )


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("chunks", [True, 1, 7])
async def test_a_run_that_streams_leaves_the_same_state_as_one_that_does_not(name: str, chunks: bool | int) -> None:
    async def run(how: str) -> tuple[AgentState, str, int]:
        recorder = Recorder()
        hooks: list[Hook] = [Shorter(), *([recorder] if how == "listens" else [])]
        model = ScriptedModel(*SCRIPTS[name], chunks=False if how == "plain" else chunks)
        run = Agent(model, tools=[add, fail], hooks=hooks, clock=FakeClock()).run("x")
        seen = 0
        if how == "iterates":
            async for event in run:
                seen += isinstance(event, ModelChunkEvent)
        else:
            await run
            seen = len(of(recorder.events, ModelChunkEvent))
        return comparable(run.result.state), run.result.stop_reason, seen

    plain, reason, none = await run("plain")
    assert none == 0
    for how in ("silent", "listens", "iterates"):
        state, ended, seen = await run(how)
        assert (state, ended) == (plain, reason), how
        assert bool(seen) is (how != "silent" and name != "an empty answer"), how


@pytest.mark.parametrize("name", SCRIPTS)
async def test_what_was_shown_is_what_was_said(name: str) -> None:
    shown: dict[str, str] = {}
    said: dict[str, str] = {}
    model = ScriptedModel(*SCRIPTS[name], chunks=3)
    async for event in Agent(model, tools=[add, fail], hooks=[Shorter()]).run("x"):
        if isinstance(event, ModelChunkEvent):
            shown[event.kind] = shown.get(event.kind, "") + event.text
        elif isinstance(event, ThinkEvent):
            said["text"] = said.get("text", "") + event.text
            said["reasoning"] = said.get("reasoning", "") + (event.reasoning or "")
    for kind in ("text", "reasoning"):
        assert shown.get(kind, "") == said.get(kind, "")


async def test_chunks_come_between_the_beginning_of_an_iteration_and_the_end_of_its_call() -> None:
    model = ScriptedModel(call("add", a=1), "one two", chunks=True)
    events = await collect(Agent(model, tools=[add]).run("x"))
    shown = [k for k in kinds(events) if k in ("iteration", "model_chunk", "model_complete", "think")]
    assert shown == [
        *("iteration", "model_chunk", "model_chunk", "model_complete", "think"),
        *("iteration", "model_chunk", "model_chunk", "model_complete", "think"),
    ]
    assert {c.iteration for c in of(events, ModelChunkEvent) if c.kind == "text"} == {2}


async def test_every_chunk_arrives_in_order_however_slow_the_consumer_is() -> None:
    text = "".join(f"{n:04}" for n in range(5 * CHUNKS_AHEAD))
    seen: list[str] = []
    async for event in Agent(ScriptedModel(text, chunks=4)).run("x"):
        if isinstance(event, ModelChunkEvent):
            seen.append(event.text)
            await anyio.lowlevel.checkpoint()
    assert len(seen) == 5 * CHUNKS_AHEAD
    assert "".join(seen) == text


async def test_a_slow_consumer_slows_the_model() -> None:
    made = 0

    class Eager:
        name = "eager:model"

        async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
            nonlocal made
            assert on_chunk is not None
            for _ in range(10 * CHUNKS_AHEAD):
                await on_chunk(Chunk("x"))
                made += 1
            return ModelResponse(message=Message(Role.ASSISTANT, "x" * 10 * CHUNKS_AHEAD))

    taken = 0
    async for event in Agent(Eager()).run("x"):
        if isinstance(event, ModelChunkEvent):
            taken += 1
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert made - taken <= CHUNKS_AHEAD + 1
    assert taken == made == 10 * CHUNKS_AHEAD


# -- in the journal -----------------------------------------------------------------------------------


async def test_chunks_are_not_kept_and_not_replayed() -> None:
    store, recorder = MemoryStore(), Recorder()
    model = ScriptedModel(["Well then.", call("confirm", what="pay")], "all done", chunks=True)
    agent = Agent(model, tools=[confirm], hooks=[recorder], checkpointer=store)
    await agent.run("x", thread_id="t")
    assert "Chunk" not in repr(await store.read("t"))
    recorder.events.clear()
    await agent.resume("t", "yes")
    assert [c.text for c in of(recorder.events, ModelChunkEvent)] == ["all", " done"]


# -- attempts -----------------------------------------------------------------------------------------


class RetryOnError(Hook):
    """Asks for another try."""

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        return Retry("the line broke") if event.retryable else None


class RetryWrapper(Hook):
    """Tries again by itself."""

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
        while True:
            try:
                return await call_next(request)
            except ModelError:
                continue


@pytest.mark.parametrize("hook", [RetryOnError, RetryWrapper])
@pytest.mark.parametrize("times", [1, 2])
async def test_after_a_broken_stream_a_screen_that_follows_the_rules_shows_the_answer(
    hook: type[Hook], times: int
) -> None:
    screen, run = Screen(), Agent(Breaks(times), hooks=[hook()]).run("x")
    events = await collect(run)
    for event in events:
        screen.take(event)
    assert screen.text == run.result.message == "the whole"
    assert [e.attempt for e in of(events, ModelRestartEvent)] == list(range(1, times + 1))
    assert [c.attempt for c in of(events, ModelChunkEvent)] == [n for n in range(times + 1) for _ in range(2)]


async def test_a_restart_says_why_when_a_hook_asked_for_it() -> None:
    recorder = Recorder()
    await Agent(Breaks(1), hooks=[RetryOnError(), recorder]).run("x")
    [restart] = of(recorder.events, ModelRestartEvent)
    assert (restart.reason, restart.purpose) == ("the line broke", "think")


async def test_attempts_are_counted_again_in_each_iteration() -> None:
    class FussyOnce(Hook):
        asked = 0

        def on_think(self, event: ThinkEvent) -> Retry | None:
            self.asked += 1
            return Retry() if self.asked == 1 else None

    recorder = Recorder()
    model = ScriptedModel("no", call("add", a=1), "done", chunks=True)
    await Agent(model, tools=[add], hooks=[FussyOnce(), recorder]).run("x")
    assert [(c.iteration, c.attempt) for c in of(recorder.events, ModelChunkEvent) if c.kind == "text"] == [
        (1, 0),
        (2, 0),
    ]


async def test_a_stream_that_breaks_for_good_leaves_nothing_of_it_behind() -> None:
    recorder = Recorder()
    result = await Agent(Breaks(1, retryable=False), hooks=[RetryOnError(), recorder]).run("x")
    assert (result.stop_reason, result.message) == ("ModelError", "")
    assert [c.text for c in of(recorder.events, ModelChunkEvent)] == ["half", " an"]
    assert [m.role for m in result.state.messages] == [Role.USER]
    assert of(recorder.events, ModelRestartEvent) == []


async def test_a_replaced_answer_behind_a_buffer_is_shown_as_it_is_after_every_attempt() -> None:
    class Redact(Hook):
        buffers = True

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            response = await call_next(request)
            return evolve(response, message=Message(Role.ASSISTANT, response.message.text.replace("whole", "[gone]")))

    screen, run = Screen(), Agent(Breaks(1), hooks=[Redact(), RetryOnError()]).run("x")
    shown: list[str] = []
    async for event in run:
        screen.take(event)
        if isinstance(event, ModelChunkEvent):
            shown.append(event.text)
    assert shown == ["the [gone]"]
    assert screen.text == run.result.message


# -- those who listen ---------------------------------------------------------------------------------


async def test_a_listener_may_end_the_run_in_the_middle_of_an_answer() -> None:
    class Stop(Hook):
        def on_model_chunk(self, event: ModelChunkEvent) -> Cancel | None:
            return Cancel("seen enough") if event.text == " two" else None

    model = ScriptedModel("one two three", "never", chunks=True)
    result = await Agent(model, hooks=[Stop()]).run("x")
    assert result.stop_reason == "Cancelled: seen enough"
    assert result.message == "one two three"  # the node under way finishes


async def test_a_listener_that_fails_is_out_and_the_stream_continues() -> None:
    class Bad(Hook):
        name = "bad"

        def on_model_chunk(self, event: ModelChunkEvent) -> None:
            raise LookupError("my mistake")

    run = Agent(ScriptedModel("one two three four five", chunks=True), hooks=[Bad()]).run("x")
    events = await collect(run)
    assert [c.text for c in of(events, ModelChunkEvent)] == ["one", " two", " three", " four", " five"]
    assert [(f.count, f.quarantined) for f in failures(run.result)] == [(3, True)]


async def test_chunks_are_only_made_when_somebody_listens() -> None:
    model = ScriptedModel("one two", "one two", chunks=True)
    recorder = Recorder()
    await Agent(model, hooks=[Plain()]).run("x")
    await Agent(model, hooks=[recorder]).run("x")
    assert len(of(recorder.events, ModelChunkEvent)) == 2


async def test_what_a_child_says_streams_through_its_parent() -> None:
    child = Agent(ScriptedModel("from below", chunks=True), name="child")

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Asks the child."""
        return str((await ctx.run_child(child, "x")).message)

    run: AsyncIterator[Event] = Agent(ScriptedModel(call("ask"), "from above", chunks=True), tools=[ask]).run("x")
    events = await collect(run)
    texts = {(c.parent_run_id is not None, c.text) for c in of(events, ModelChunkEvent) if c.kind == "text"}
    assert texts == {(True, "from"), (True, " below"), (False, "from"), (False, " above")}


async def test_an_answer_that_a_wrapper_made_up_streams_nothing() -> None:
    class Cached(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            return ModelResponse(message=Message(Role.ASSISTANT, "cached"))

    events = await collect(Agent(ScriptedModel(chunks=True), hooks=[Cached()]).run("x"))
    assert of(events, ModelChunkEvent) == []
    assert [e.attempts for e in of(events, ModelCompleteEvent)] == [0]


# -- some kinds alone ---------------------------------------------------------------------------------


class CountingStore(MemoryStore):
    """Counts appends."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0

    async def append(self, claim: Any, bodies: Any) -> Any:
        self.appends += 1
        return await super().append(claim, bodies)


async def test_run_hands_over_events_of_some_kinds_alone() -> None:
    stores = CountingStore(), CountingStore()
    turns = call("add", a=1, b=2), call("add", a=3, b=4), "done"
    everything, some = (Agent(ScriptedModel(*turns), tools=[add], checkpointer=store) for store in stores)

    heard = [event async for event in everything.run("x", thread_id="t")]
    run = some.run("x", thread_id="t").only(CheckpointEvent, TerminateEvent)
    chosen = [event async for event in run]

    wanted = [event for event in heard if isinstance(event, CheckpointEvent | TerminateEvent)]
    assert kinds(chosen) == kinds(wanted) != kinds(heard)
    assert run.result.text == "done"
    assert stores[1].appends < stores[0].appends


async def test_hooks_hear_what_the_consumer_does_not_want() -> None:
    recorder = Recorder()
    agent = Agent(ScriptedModel(call("add", a=1, b=2), "done"), tools=[add], hooks=[recorder])

    chosen = [event async for event in agent.run("x").only(TerminateEvent)]

    assert kinds(chosen) == [TerminateEvent.type]
    assert {"think", "tool_complete", "terminate"} <= {event.type for event in recorder.events}
