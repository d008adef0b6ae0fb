"""The laws of the loop: whatever a model and its tools do, a run ends once, in order, and raises nothing."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loop.kit import Recorder, assert_valid_history, collect, kinds, of
from tests.property.loop_world import World, awkward_scripts, polite_scripts
from tests.property.strategies_core import compose

from locus import (
    Agent,
    AgentResult,
    AgentState,
    Event,
    Hook,
    IterationEvent,
    ModelChunkEvent,
    ModelCompleteEvent,
    Retry,
    TerminateEvent,
    ThinkEvent,
    ToolCacheHitEvent,
    ToolCompleteEvent,
    ToolStartEvent,
)
from locus.core.events import event_from_json, event_to_json
from locus.core.journal import BLANK, entry_from_json, entry_to_json, fold
from locus.core.termination import (
    CustomCondition,
    MaxIterations,
    NoProgress,
    NoToolCalls,
    Satisfied,
    TerminationCondition,
    TokenLimit,
    ToolCalled,
)
from locus.journal import MemoryStore
from locus_testkit import ScriptedModel, Turn

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
modes = st.sampled_from(["concurrent", "sequential"])
ids = st.sampled_from(["unique", "per_turn", "same"])

Mode = Literal["concurrent", "sequential"]


class Ran:
    """Everything that one run did."""

    def __init__(self, script: list[Turn], mode: Mode, ids: Any, *hooks: Hook, limit: int = 6, **options: Any) -> None:
        self.model = ScriptedModel(*script, ids=ids, after="repeat")
        self.recorder, self.world, self.store = Recorder(), World(), MemoryStore()
        self.agent = Agent[Any, Any](
            self.model,
            tools=self.world.tools(),
            tool_execution=mode,
            max_iterations=limit,
            hooks=[*hooks, self.recorder],
            checkpointer=self.store,
            **options,
        )
        self.events: list[Event] = []
        self.result: AgentResult[Any]

    async def awaited(self) -> None:
        self.result = await self.agent.run("x", thread_id="t")
        self.events = self.recorder.events

    async def iterated(self) -> None:
        run = self.agent.run("x", thread_id="t")
        self.events = await collect(run)
        self.result = run.result


@both_backends
@given(script=awkward_scripts(), mode=modes, ids=ids)
def test_every_run_ends_once_with_a_result_for_each_call(
    backend: str, script: list[Turn], mode: Mode, ids: Any
) -> None:
    ran = Ran(script, mode, ids)
    anyio.run(ran.awaited, backend=backend)

    ends = of(ran.events, TerminateEvent)
    assert len(ends) == 1
    assert ran.events[-1] is ends[0]
    assert [e.seq for e in ran.events] == list(range(1, len(ran.events) + 1))
    assert ran.result.stop_reason in ("NoToolCalls", "EmptyAnswer", "MaxIterations", "ModelError")
    assert len(ran.model.requests) <= 6
    assert_valid_history(ran.result.state.messages)
    asked = sum(len(m.tool_calls) for m in ran.result.state.messages)
    assert len(ran.result.state.tool_executions) == len(ran.result.state.tool_history) == asked


@both_backends
@given(script=awkward_scripts(), mode=modes, ids=ids)
def test_each_call_is_reported_once_and_started_at_most_once(
    backend: str, script: list[Turn], mode: Mode, ids: Any
) -> None:
    ran = Ran(script, mode, ids)
    anyio.run(ran.awaited, backend=backend)

    executions = ran.result.state.tool_executions
    told = of(ran.events, ToolCompleteEvent)
    hits = of(ran.events, ToolCacheHitEvent)
    started = of(ran.events, ToolStartEvent)
    assert len(told) + len(hits) == len(executions)
    assert len(hits) == sum(e.cache_hit for e in executions)
    assert len(started) == sum(e.started and not e.cache_hit for e in executions)
    assert sum(ran.world.entered.values()) == len(started)
    # The body of an idempotent tool is entered once a key, unless it said that nothing happened.
    once = Counter({key: n for key, n in ran.world.entered.items() if key[0] == "once" and key[1] != "retryable"})
    assert not once or max(once.values()) == 1


@both_backends
@given(script=awkward_scripts(), mode=modes, ids=ids)
def test_what_a_run_leaves_behind_can_be_kept(backend: str, script: list[Turn], mode: Mode, ids: Any) -> None:
    ran = Ran(script, mode, ids)
    anyio.run(ran.awaited, backend=backend)

    state = ran.result.state
    assert AgentState.from_checkpoint(json.loads(json.dumps(state.to_checkpoint()))) == state
    entries = [e.body for e in anyio.run(ran.store.read, "t", backend=backend)]
    assert fold(BLANK, entries) == state
    assert [entry_from_json(json.loads(json.dumps(entry_to_json(b)))) for b in entries] == entries
    for event in ran.events:
        assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


@both_backends
@given(script=awkward_scripts(), mode=modes)
def test_every_token_is_counted_once(backend: str, script: list[Turn], mode: Mode) -> None:
    ran = Ran(script, mode, "unique")
    anyio.run(ran.awaited, backend=backend)
    calls = of(ran.events, ModelCompleteEvent)
    assert ran.result.usage.prompt_tokens == sum(c.usage.prompt_tokens for c in calls)
    assert ran.result.usage.completion_tokens == sum(c.usage.completion_tokens for c in calls)
    assert ran.result.iterations == (calls[-1].iteration if calls else 1) or ran.result.stop_reason == "ModelError"


def has_called_twice(state: AgentState) -> bool:
    return len(state.tool_executions) >= 2


def has_three_iterations(state: AgentState) -> bool:
    return state.iteration >= 3


stops = st.recursive(
    st.one_of(
        st.builds(MaxIterations, st.integers(1, 4)),
        st.builds(TokenLimit, st.integers(0, 60)),
        st.builds(ToolCalled, st.sampled_from(["act", "look"]), require_success=st.booleans()),
        st.builds(NoProgress, st.integers(2, 3)),
        st.builds(CustomCondition, st.sampled_from([has_called_twice, has_three_iterations])),
        st.just(NoToolCalls()),
    ),
    compose,
    max_leaves=5,
)


@both_backends
@given(script=awkward_scripts(), mode=modes, stop=stops, on_text=st.booleans())
def test_after_any_stop_the_condition_says_of_the_state_what_the_event_says(
    backend: str, script: list[Turn], mode: Mode, stop: TerminationCondition, on_text: bool
) -> None:
    ran = Ran(script, mode, "unique", stop_on_text=on_text, termination=stop)
    anyio.run(ran.awaited, backend=backend)

    [end], condition, state = of(ran.events, TerminateEvent), ran.agent.condition, ran.result.state
    begun = len(of(ran.events, IterationEvent))
    assert end.iterations_used == end.iteration == ran.result.iterations == max(begun, 1)
    assert state.iteration in (end.iterations_used - 1, end.iterations_used)
    if end.reason == "ModelError":
        return
    found = condition.evaluate(state)
    assert found == Satisfied(end.reason, end.satisfied, end.detail)
    assert condition.check(state) is condition.explain(state).satisfied is True
    assert condition.refute(state) is None
    if end.satisfied == ("MaxIterations",):
        # Beside another leaf it may have been satisfied since the iteration before.
        assert state.iteration == end.iterations_used


@both_backends
@given(script=polite_scripts(), ids=ids)
def test_awaited_and_iterated_runs_are_the_same_run(backend: str, script: list[Turn], ids: Any) -> None:
    awaited, iterated = Ran(script, "sequential", ids), Ran(script, "sequential", ids)
    anyio.run(awaited.awaited, backend=backend)
    anyio.run(iterated.iterated, backend=backend)
    assert kinds(iterated.events) == kinds(awaited.events) == kinds(iterated.recorder.events)
    assert iterated.result.state.messages == awaited.result.state.messages
    assert iterated.world.entered == awaited.world.entered


@both_backends
@given(script=polite_scripts(how=("fine", "raise", "none", "picture")), ids=ids)
def test_concurrency_changes_the_order_of_events_and_nothing_else(backend: str, script: list[Turn], ids: Any) -> None:
    together, in_turn = Ran(script, "concurrent", ids), Ran(script, "sequential", ids)
    anyio.run(together.awaited, backend=backend)
    anyio.run(in_turn.awaited, backend=backend)
    assert together.result.state.messages == in_turn.result.state.messages
    assert sorted(kinds(together.events)) == sorted(kinds(in_turn.events))


@both_backends
@given(script=polite_scripts(), size=st.integers(1, 7))
def test_streaming_changes_no_result(backend: str, script: list[Turn], size: int) -> None:
    plain, streamed = Ran(script, "sequential", "unique"), Ran(script, "sequential", "unique")
    streamed.model = ScriptedModel(*script, chunks=size, after="repeat")
    streamed.agent = Agent[Any, Any](
        streamed.model,
        tools=streamed.world.tools(),
        tool_execution="sequential",
        max_iterations=6,
        checkpointer=streamed.store,
    )
    anyio.run(plain.awaited, backend=backend)
    anyio.run(streamed.iterated, backend=backend)
    assert streamed.result.state.messages == plain.result.state.messages
    assert [k for k in kinds(streamed.events) if k != "model_chunk"] == kinds(plain.events)
    text = "".join(c.text for c in of(streamed.events, ModelChunkEvent) if c.kind == "text")
    assert text == "".join(t.text for t in of(streamed.events, ThinkEvent))


class Moody(Hook):
    """Asks for another try at whatever it hears, as generated."""

    def __init__(self, moods: list[bool]) -> None:
        self.moods = list(moods)

    def on_event(self, event: Event) -> Retry | None:
        return Retry() if self.moods and self.moods.pop(0) else None


@both_backends
@given(script=awkward_scripts(max_turns=3), mode=modes, moods=st.lists(st.booleans(), max_size=40))
def test_retries_repeat_no_effect_and_leave_a_valid_history(
    backend: str, script: list[Turn], mode: Mode, moods: list[bool]
) -> None:
    ran = Ran(script, mode, "unique", Moody(moods))
    anyio.run(ran.awaited, backend=backend)
    assert len(of(ran.events, TerminateEvent)) == 1
    assert_valid_history(ran.result.state.messages)
    calls = of(ran.events, ModelCompleteEvent)
    assert ran.result.usage.prompt_tokens == sum(c.usage.prompt_tokens for c in calls)
    # A body is entered again for one call only where it said that nothing happened, or has no effect at all.
    started = Counter(e.call_id for e in of(ran.events, ToolStartEvent))
    for execution in ran.result.state.tool_executions:
        if execution.tool_name != "look" and not execution.retryable and execution.error is not None:
            assert started[execution.call_id] <= 1 or "retryable" in str(execution.arguments)
    entries = [e.body for e in anyio.run(ran.store.read, "t", backend=backend)]
    assert fold(BLANK, entries) == ran.result.state
