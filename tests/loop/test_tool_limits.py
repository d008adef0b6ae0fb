"""How many tool calls a turn and a run make, how many at once, and how long a model may take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.kit import Recorder, assert_valid_history, collect, of, results

import locus
from locus import (
    Agent,
    AgentState,
    Hook,
    Message,
    ModelChunkEvent,
    ModelErrorEvent,
    Retry,
    Role,
    ToolCompleteEvent,
    ToolStartEvent,
    tool,
)
from locus.config import load_config
from locus.core.errors import ConfigError, ModelError, SettingsError, is_transient
from locus.core.executions import ToolExecution
from locus.core.termination import Bound, MaxIterations, ToolCalled, ToolCallLimit, condition_from_json
from locus.journal import MemoryStore
from locus.models.protocol import Chunk, ModelResponse
from locus_testkit import ScriptedModel, call


class Gauge:
    """A tool whose bodies are counted, and how many are under way at once."""

    def __init__(self) -> None:
        self.entered: list[int] = []
        self.now = self.most = 0

        @tool
        async def work(n: int) -> str:
            """Work."""
            self.entered.append(n)
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(n % 4 + 2):  # the others begin in the turn of the event loop after the one that waits first
                await anyio.lowlevel.checkpoint()
            self.now -= 1
            return f"{n}"

        self.tool = work


# -- a turn -----------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_the_first_calls_of_a_turn_are_made_and_the_others_hear_why_they_are_not(mode: Any) -> None:
    gauge, recorder = Gauge(), Recorder()
    calls = [call("work", n=n) for n in range(1_000)]
    agent = Agent(
        ScriptedModel(calls, "done"),
        tools=[gauge.tool],
        max_tool_calls_per_turn=5,
        tool_execution=mode,
        hooks=[recorder],
        checkpointer=MemoryStore(),
    )
    result = await agent.run("x", thread_id="t")
    assert sorted(gauge.entered) == [0, 1, 2, 3, 4]
    got = results(result)
    assert got[:5] == ["0", "1", "2", "3", "4"]
    why = "a turn may make 5 tool calls, and this one asks for 1,000; ask again for what is still needed"
    refusal = f"Error: not run: {why}"
    assert got[5:] == [refusal] * 995
    assert_valid_history(result.state.messages)
    assert [e.started for e in result.state.tool_executions] == [True] * 5 + [False] * 995
    assert len(of(recorder.events, ToolStartEvent)) == 5
    assert len(of(recorder.events, ToolCompleteEvent)) == 1_000
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.anyio
async def test_a_turn_makes_128_calls_and_16_at_once_by_default() -> None:
    gauge = Gauge()
    calls = [call("work", n=n) for n in range(200)]
    await Agent(ScriptedModel(calls, "done"), tools=[gauge.tool]).run("x")
    assert (len(gauge.entered), gauge.most) == (128, 16)
    free = Gauge()
    agent = Agent(
        ScriptedModel(calls, "done"), tools=[free.tool], max_tool_calls_per_turn=None, max_concurrent_tools=None
    )
    await agent.run("x")
    assert (len(free.entered), free.most) == (200, 200)


@pytest.mark.anyio
async def test_a_limit_of_what_runs_at_once_starves_no_call_that_follows_another() -> None:
    """Duplicates wait for the first of their kind, and the first may be behind others."""
    entered: list[str] = []

    @tool(idempotent=True)
    async def once(key: str) -> str:
        """Once for each key."""
        entered.append(key)
        await anyio.lowlevel.checkpoint()
        return key

    calls = [call("once", key=key) for key in "abcabcabc"]
    with anyio.fail_after(30):
        result = await Agent(ScriptedModel(calls, "done"), tools=[once], max_concurrent_tools=2).run("x")
    assert sorted(entered) == ["a", "b", "c"]
    assert results(result) == list("abcabcabc")


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    turns=st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4),
    per_turn=st.none() | st.integers(1, 8),
    at_once=st.none() | st.integers(1, 5),
    limit=st.none() | st.integers(0, 20),
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_no_more_bodies_are_entered_and_no_more_at_once_than_the_limits_say(
    backend: str, turns: list[list[int]], per_turn: int | None, at_once: int | None, limit: int | None
) -> None:
    gauge = Gauge()
    script = [[call("work", n=n) for n in turn] for turn in turns if turn]
    agent = Agent(
        ScriptedModel(*script, "done"),
        tools=[gauge.tool],
        max_tool_calls_per_turn=per_turn,
        max_concurrent_tools=at_once,
        termination=None if limit is None else ToolCallLimit(limit),
        max_iterations=9,
    )
    result = anyio.run(agent.run, "x", backend=backend)
    assert_valid_history(result.state.messages)
    assert gauge.most <= (at_once or math.inf)
    assert len(gauge.entered) == result.state.started_calls
    bound = agent.condition.bounds().tool_calls
    assert (bound is None) is (limit is None)
    assert bound is None or len(gauge.entered) <= bound.limit
    expected: list[int] = []
    for turn in script:
        if limit is not None and len(expected) >= limit:
            break
        expected += [c.arguments["n"] for c in turn][:per_turn]
        expected = expected[:limit]
    assert sorted(gauge.entered) == sorted(expected)
    reached = limit is not None and len(expected) >= limit
    assert result.stop_reason == ("ToolCallLimit" if reached else "NoToolCalls")


# -- a run ------------------------------------------------------------------------------------------


def executed(*started: bool) -> AgentState:
    state = AgentState()
    for each in started:
        state = state.with_tool_execution(ToolExecution(tool_name="t", started=each))
    return state


def test_a_limit_of_tool_calls_says_what_it_counts_and_what_it_guarantees() -> None:
    limit = ToolCallLimit(2)
    assert repr(limit) == "ToolCallLimit(2)"
    assert condition_from_json(limit.to_json()) == limit
    assert limit.to_json() == {"type": "ToolCallLimit", "n": 2}
    assert locus.ToolCallLimit is ToolCallLimit
    states = [executed(), executed(True, False), executed(True, False, True), executed(True, True, True)]
    assert [limit.check(state) for state in states] == [False, False, True, True]
    told = limit.explain(states[1])
    assert (told.value, told.threshold, told.distance, told.text) == (1, 2, 1, "1 of 2 tool calls")
    bound = limit.bounds().tool_calls
    assert isinstance(bound, Bound)
    assert bound.limit == 2
    assert not limit.bounds().guarantees_halt  # a model may ask for nothing for ever
    assert (limit | ToolCallLimit(1)).bounds().tool_calls == ToolCallLimit(1).bounds().tool_calls
    assert (limit & ToolCallLimit(5)).bounds().tool_calls == ToolCallLimit(5).bounds().tool_calls
    assert (limit & MaxIterations(1)).bounds().tool_calls is None
    assert limit.bounds().to_json()["tool_calls"]["limit"] == 2
    wrong: Any
    for wrong in (-1, 1.5, True, "3"):
        with pytest.raises(ValueError, match="an integer, 0 or more"):
            ToolCallLimit(wrong)


def test_a_fork_of_a_state_counts_its_own_calls() -> None:
    one = executed(True)
    assert [one.started_calls, executed(True, True).started_calls] == [1, 2]
    left = one.with_tool_execution(ToolExecution(tool_name="t"))
    right = one.with_tool_execution(ToolExecution(tool_name="t", started=False))
    assert (left.started_calls, right.started_calls, one.started_calls) == (2, 1, 1)
    assert AgentState.from_checkpoint(left.to_checkpoint()).started_calls == 2


@pytest.mark.anyio
async def test_the_call_that_ends_the_run_for_another_reason_is_reported_under_that_name() -> None:
    gauge = Gauge()
    agent = Agent(
        ScriptedModel([call("work", n=1), call("work", n=2)], "done"),
        tools=[gauge.tool],
        termination=ToolCalled("work") | ToolCallLimit(1),
        max_iterations=3,
    )
    result = await agent.run("x")
    assert (gauge.entered, result.stop_reason) == ([1], "ToolCalled")
    assert results(result)[1] == "Error: not run: ToolCallLimit: 1 calls are what the run may make"


# -- time -------------------------------------------------------------------------------------------


class Again(Hook):
    """Tries a model again that failed, where that may help."""

    def __init__(self) -> None:
        self.errors: list[ModelErrorEvent] = []

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        self.errors.append(event)
        return Retry() if event.retryable else None


class Slow:
    """Streams without an end a few times, and answers then."""

    name = "test:slow"

    def __init__(self, times: int) -> None:
        self.left = times

    async def complete(self, request: Any, on_chunk: Any = None) -> ModelResponse:
        self.left -= 1
        while self.left >= 0:
            if on_chunk is not None:
                await on_chunk(Chunk("."))
            await anyio.lowlevel.checkpoint()
        return ModelResponse(message=Message(Role.ASSISTANT, "hi"))


@pytest.mark.anyio
async def test_a_model_that_takes_too_long_has_failed_and_may_be_asked_again_for_as_long() -> None:
    again = Again()
    with anyio.fail_after(60):
        result = await Agent(Slow(2), hooks=[again], model_timeout=0.02).run("x")
    assert (result.stop_reason, result.text) == ("NoToolCalls", "hi")
    assert [e.error for e in again.errors] == ["test:slow did not answer within 0.02 s (model_timeout)"] * 2


@pytest.mark.anyio
async def test_the_time_of_a_model_covers_the_whole_of_a_streaming_call() -> None:
    run = Agent(Slow(1), model_timeout=0.02).run("x")
    with anyio.fail_after(60):
        events = await collect(run)
    assert of(events, ModelChunkEvent)
    assert run.result.stop_reason == "ModelError"
    assert isinstance(run.result.error, ModelError)
    assert is_transient(run.result.error) is True


@pytest.mark.anyio
async def test_the_timeout_of_a_tool_wins_over_that_of_the_agent() -> None:
    @tool
    async def hang() -> str:
        """Never returns."""
        await anyio.sleep_forever()
        return "never"

    @tool(timeout=0.01)
    async def brief() -> str:
        """Never returns."""
        await anyio.sleep_forever()
        return "never"

    @tool(timeout=60)
    async def patient() -> str:
        """Outlives the others."""
        with anyio.move_on_after(0.05):
            await anyio.sleep_forever()
        return "patient"

    calls = [call("hang"), call("brief"), call("patient")]
    agent = Agent(ScriptedModel(calls, "done"), tools=[hang, brief, patient], tool_timeout=0.02)
    with anyio.fail_after(30):
        got = results(await agent.run("x"))
    assert [text.partition("and was")[0] for text in got] == [
        "Error: TimeoutError: the tool did not finish within 0.02 s ",
        "Error: TimeoutError: the tool did not finish within 0.01 s ",
        "patient",
    ]


# -- options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_tool_calls_per_turn", "max_concurrent_tools", "model_timeout", "tool_timeout"])
@pytest.mark.parametrize("value", [0, -1, "3", True, math.nan])
def test_a_limit_that_cannot_be_one_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        Agent(ScriptedModel("hi"), **{name: value})
    unlimited: dict[str, Any] = {name: None}
    assert Agent(ScriptedModel("hi"), **unlimited)


def test_a_config_file_replaces_the_defaults_and_an_argument_replaces_both(tmp_path: Path) -> None:
    path = tmp_path / "locus.toml"
    counts = "max_tool_calls_per_turn = 3\nmax_concurrent_tools = 2\n"
    path.write_text(f"[agent]\n{counts}model_timeout = inf\ntool_timeout = 9\n")
    config = load_config(path)
    limits = Agent(ScriptedModel("hi"), config=config).runtime.call_limits
    assert (limits.per_turn, limits.at_once, limits.model_seconds, limits.tool_seconds) == (3, 2, math.inf, 9)
    limits = Agent(ScriptedModel("hi"), config=config, max_concurrent_tools=7, model_timeout=None).runtime.call_limits
    assert (limits.per_turn, limits.at_once, limits.model_seconds) == (3, 7, None)
    limits = Agent(
        ScriptedModel("hi"), config=config, max_tool_calls_per_turn=128, max_concurrent_tools=16, model_timeout=600.0
    ).runtime.call_limits
    assert (limits.per_turn, limits.at_once, limits.model_seconds) == (128, 16, 600.0)  # given, if only what they are
    path.write_text("[agent]\nmodel_timeout = 0.0\n")
    with pytest.raises(SettingsError, match="model_timeout"):
        load_config(path)
