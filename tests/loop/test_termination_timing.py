"""When a run ends: after which node, before which call, and under which name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, collect, kinds, of, results

from locus import (
    Agent,
    AgentState,
    Hook,
    IterationEvent,
    Message,
    ModelCompleteEvent,
    ModelRequest,
    ReflectEvent,
    Retry,
    Role,
    TerminateEvent,
    ThinkEvent,
    ToolContext,
    tool,
)
from locus.core.errors import ConditionError, ConfigError
from locus.core.termination import (
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoToolCalls,
    TerminationCondition,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
)
from locus.journal import MemoryStore, read_history
from locus.loop.budget import NoHaltWarning
from locus.models.protocol import Price
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call, never
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


@tool
async def fail(why: str = "broken") -> str:
    """Always fails."""
    raise ValueError(why)


def looping(*turns: Any, **options: Any) -> ScriptedModel:
    """A model that asks for one more addition for ever, after the given turns."""
    return ScriptedModel(*turns, call("add", a=1), after="repeat", **options)


class Judge(Hook):
    """Reflects after every iteration and sets the confidence."""

    def __init__(self, confidence: float) -> None:
        self.confidence = confidence

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        await run.emit(ReflectEvent(judgment="fine", confidence=self.confidence))
        return state.with_confidence(self.confidence)


# -- iterations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("spelled", ["keyword", "condition"])
async def test_max_iterations_allows_exactly_n_model_calls(n: int, spelled: str) -> None:
    model = looping()
    agent = (
        Agent(model, tools=[add], max_iterations=n)
        if spelled == "keyword"
        else Agent(model, tools=[add], termination=MaxIterations(n))
    )

    result = await agent.run("add")

    assert len(model.requests) == n
    assert result.stop_reason == "MaxIterations"
    assert result.satisfied == ("MaxIterations",)
    # The n-th iteration's tools ran: n iterations are finished.
    assert results(result) == ["2"] * n
    assert result.state.iteration == result.iterations == n


@pytest.mark.parametrize("store", [None, MemoryStore()])
async def test_after_a_stop_by_max_iterations_state_condition_event_and_history_agree(
    store: MemoryStore | None,
) -> None:
    recorder = Recorder()
    agent = Agent(looping(), tools=[add], max_iterations=3, hooks=[recorder, Judge(0.5)], checkpointer=store)

    result = await agent.run("add", thread_id="t")

    [end] = of(recorder.events, TerminateEvent)
    assert (result.state.iteration, result.iterations) == (3, 3)
    assert (end.iterations_used, end.iteration, end.detail) == (3, 3, "3 of 3 iterations")
    assert result.detail == end.detail
    assert agent.condition.check(result.state)
    found = agent.condition.evaluate(result.state)
    assert found is not None
    assert (found.reason, found.leaves, found.detail) == (end.reason, end.satisfied, end.detail)
    explained = MaxIterations(3).explain(result.state)
    assert (explained.satisfied, explained.value, explained.distance) == (True, 3, 0)
    numbers = [e.iteration for e in recorder.events]
    assert (numbers, set(numbers)) == (sorted(numbers), {1, 2, 3})
    if store is not None:
        history = await read_history(store, "t")
        assert [(t.node, t.iteration) for t in history][-3:] == [("execute", 2), ("reflect", 2), ("terminate", 2)]
        again = await agent.run("add", thread_id="t")
        assert (again.state.iteration, again.iterations) == (3, 3)


async def test_a_stop_where_the_answer_is_sent_back_counts_the_iteration_as_finished() -> None:
    agent = Agent(ScriptedModel("one", "two", "three"), termination=MaxIterations(2), stop_on_text=False)
    result = await agent.run("go on")
    assert (result.stop_reason, result.iterations, result.state.iteration) == ("MaxIterations", 2, 2)


async def test_a_stop_in_the_middle_of_an_iteration_does_not_count_it_as_finished() -> None:
    recorder = Recorder()
    result = await Agent(looping(), tools=[add], termination=ToolCalled("add"), max_iterations=3, hooks=[recorder]).run(
        "add"
    )
    [end] = of(recorder.events, TerminateEvent)
    assert (end.iterations_used, end.iteration, result.iterations, result.state.iteration) == (1, 1, 1, 0)


async def test_iteration_events_count_from_one_and_match_the_model_calls() -> None:
    model = looping()
    events = await collect(Agent(model, tools=[add], max_iterations=3).run("add"))

    assert [e.iteration for e in of(events, IterationEvent)] == [1, 2, 3]
    assert [e.iteration for e in of(events, ModelCompleteEvent)] == [1, 2, 3]
    assert of(events, TerminateEvent)[0].iterations_used == 3


async def test_an_answer_on_the_last_allowed_call_is_an_answer_and_no_limit() -> None:
    result = await Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], max_iterations=2).run("add")
    assert result.stop_reason == "NoToolCalls"
    assert result.message == "two"


async def test_an_answer_ends_the_run_though_the_condition_does_not_say_so() -> None:
    result = await Agent(ScriptedModel("hello"), termination=TokenLimit(1000) | MaxIterations(5)).run("hi")
    assert (result.stop_reason, result.satisfied) == ("NoToolCalls", ("NoToolCalls",))


async def test_the_implicit_end_on_an_answer_can_be_turned_off() -> None:
    model = ScriptedModel("one", "two", "DONE")
    agent = Agent(model, termination=TextMention("DONE") | MaxIterations(9), stop_on_text=False)

    result = await agent.run("go on until you are done")

    assert result.stop_reason == "TextMention"
    assert len(model.requests) == 3


# -- after every node -----------------------------------------------------------------------------


async def test_a_condition_met_by_think_ends_the_run_before_its_tools() -> None:
    ran: list[int] = []

    @tool
    async def touch(n: int) -> str:
        """Touch."""
        ran.append(n)
        return "touched"

    asked = CustomCondition(lambda s: bool(s.unanswered), name="Asked") | MaxIterations(9)
    model = ScriptedModel([call("touch", n=1), call("touch", n=2)])
    result = await Agent(model, tools=[touch], termination=asked).run("x")

    assert result.stop_reason == "Asked"
    assert ran == []
    # What was not run is told to the model, so that the history can be continued.
    assert results(result) == ["Error: not run: Asked"] * 2
    assert_valid_history(result.state.messages)


async def test_a_condition_met_by_execute_ends_the_run_without_another_think() -> None:
    model = looping()
    result = await Agent(model, tools=[add], termination=ToolCalled("add"), max_iterations=9).run("x")
    assert result.stop_reason == "ToolCalled"
    assert len(model.requests) == 1
    assert results(result) == ["2"]


async def test_a_condition_met_by_reflect_ends_the_run_without_another_think() -> None:
    model = looping()
    wanted = ToolCalled("add") & ConfidenceMet(0.9)
    result = await Agent(model, tools=[add], hooks=[Judge(0.93)], termination=wanted, max_iterations=9).run("x")
    assert len(model.requests) == 1
    assert result.stop_reason == "ToolCalled AND ConfidenceMet"


async def test_reflect_is_entered_where_a_policy_says_so_and_nowhere_else() -> None:
    model = ScriptedModel(call("add", a=1), call("add", a=2), "done")

    class Second(Judge):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[EveryIterations]:
            return [EveryIterations(2)]

    events = await collect(Agent(model, tools=[add], hooks=[Second(0.5)]).run("x"))
    assert [e.iteration for e in of(events, ReflectEvent)] == [2]


# -- names ----------------------------------------------------------------------------------------


async def test_and_names_its_leaves_and_or_the_branch_that_held() -> None:
    wanted = (ToolCalled("add") & ConfidenceMet(0.9)) | TokenLimit(10_000) | MaxIterations(10)
    result = await Agent(looping(), tools=[add], hooks=[Judge(0.95)], termination=wanted).run("x")
    assert result.stop_reason == "ToolCalled AND ConfidenceMet"
    assert result.satisfied == ("ToolCalled", "ConfidenceMet")

    result = await Agent(looping(), tools=[add], hooks=[Judge(0.1)], termination=wanted, max_iterations=2).run("x")
    assert result.stop_reason == "MaxIterations"
    assert result.satisfied == ("MaxIterations",)


async def test_the_event_and_the_result_tell_the_same_end() -> None:
    recorder = Recorder()
    result = await Agent(looping(), tools=[add], hooks=[recorder], max_iterations=2).run("x")
    [end] = of(recorder.events, TerminateEvent)
    assert (end.reason, end.satisfied, end.detail) == (result.stop_reason, result.satisfied, result.detail)
    assert end.usage == result.usage
    assert end.total_tool_calls == 2
    assert recorder.events[-1] is end


async def test_a_terminal_tool_ends_the_run_under_the_name_of_tool_called() -> None:
    model = ScriptedModel([call("add", a=1), call("fail")], call("add", a=5), after="repeat")
    failed = await Agent(model, tools=[add, fail], terminal_tools={"fail"}, max_iterations=2).run("x")
    assert failed.stop_reason == "MaxIterations"  # a terminal tool that failed has not ended anything

    ended = await Agent(looping(), tools=[add, fail], terminal_tools=["add"]).run("x")
    assert (ended.stop_reason, ended.detail) == ("ToolCalled", "add was called in iteration 1")


def _is_five(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["a"] == 5)


async def test_tool_called_can_look_at_the_arguments() -> None:
    model = ScriptedModel(call("add", a=4), call("add", a=5), call("add", a=6))
    result = await Agent(model, tools=[add], termination=ToolCalled("add", _is_five), max_iterations=9).run("x")
    assert result.stop_reason == "ToolCalled"
    assert len(model.requests) == 2


async def test_a_predicate_that_raises_ends_the_run_with_its_cause() -> None:
    def broken(state: AgentState) -> bool:
        raise KeyError("who")

    recorder = Recorder()
    agent = Agent(looping(), tools=[add], termination=CustomCondition(broken), max_iterations=3, hooks=[recorder])
    result = await agent.run("x")
    assert result.stop_reason == "ConditionError"
    assert isinstance(result.error, ConditionError)
    assert isinstance(result.error.cause, KeyError)
    assert len(of(recorder.events, TerminateEvent)) == 1
    assert_valid_history(result.state.messages)


async def test_a_run_can_have_its_own_reason_to_stop() -> None:
    model = looping()
    agent = Agent(model, tools=[add], max_iterations=10)
    result = await agent.run("x", termination=ToolCalled("add"))
    assert result.stop_reason == "ToolCalled"
    assert (await agent.run("x")).stop_reason == "MaxIterations"


# -- budgets, right before each model call ----------------------------------------------------------


class RetryOnce(Hook):
    """Has the first answer thrown away, which makes Think ask again."""

    def __init__(self) -> None:
        self.left = 1

    def on_think(self, event: ThinkEvent) -> Retry | None:
        self.left -= 1
        return Retry("again") if self.left == 0 else None


async def test_tokens_are_checked_between_two_attempts_at_one_think() -> None:
    model = ScriptedModel("no", "yes")  # 15 tokens each
    result = await Agent(model, termination=TokenLimit(14), max_iterations=9, hooks=[RetryOnce()]).run("x")
    assert len(model.requests) == 1
    assert result.stop_reason == "TokenLimit"
    assert result.usage.total_tokens == 15  # what was thrown away was paid for


async def test_what_a_hook_spends_between_two_nodes_counts_before_the_next_call() -> None:
    class Costly(Hook):
        async def on_iteration(self, event: IterationEvent, run: RunContext) -> None:
            await run.call_model(ModelRequest(messages=(Message(Role.USER, "worth it?"),)), purpose="judge")

    model = ScriptedModel("hardly", "never")
    result = await Agent(model, termination=TokenLimit(14), max_iterations=9, hooks=[Costly()]).run("x")
    assert len(model.requests) == 1
    assert result.stop_reason == "TokenLimit"
    assert result.usage.total_tokens == 15


async def test_a_token_limit_stops_when_it_is_exceeded_and_not_when_it_is_reached() -> None:
    reached = looping()
    await Agent(reached, tools=[add], termination=TokenLimit(30), max_iterations=5).run("x")
    assert len(reached.requests) == 3  # 15, 30, 45: the third call was still allowed

    from_state = looping()
    result = await Agent(from_state, tools=[add], token_budget=29, max_iterations=5).run("x")
    assert (len(from_state.requests), result.stop_reason) == (2, "TokenLimit")


async def test_dollars_are_checked_between_two_attempts_at_one_think() -> None:
    model = ScriptedModel("no", "yes", price=Price(prompt=100_000, completion=0))  # 10 tokens: one dollar
    result = await Agent(model, termination=CostLimit(1.0), max_iterations=9, hooks=[RetryOnce()]).run("x")
    assert (len(model.requests), result.stop_reason) == (1, "CostLimit")
    assert result.cost == pytest.approx(1.0)


async def test_a_cost_limit_that_could_never_count_is_refused_at_build() -> None:
    class Unpriced:
        name = "no:price"

        async def complete(self, request: Any, on_chunk: Any = None) -> Any:
            raise AssertionError

    with pytest.raises(ConfigError, match="price is not known"):
        Agent(Unpriced(), termination=CostLimit(1.0), max_iterations=9)
    with pytest.raises(ConfigError, match="price is not known"):
        Agent(ScriptedModel("x"), termination=CostLimit(1.0), max_iterations=9)


@pytest.mark.parametrize("kind", ["limit", "deadline"])
async def test_time_that_passed_outside_the_nodes_is_seen_before_the_call(kind: str) -> None:
    clock = FakeClock()

    class Late(Hook):
        def on_iteration(self, event: IterationEvent) -> None:
            clock.advance(60)

    limit: TerminationCondition = TimeLimit(30)
    if kind == "deadline":
        limit = Deadline(clock.now() + timedelta(seconds=30))
    model = looping()
    result = await Agent(model, tools=[add], termination=limit, clock=clock, hooks=[Late()]).run("x")
    assert model.requests == ()
    assert result.stop_reason == type(limit).__name__


async def test_a_time_limit_adds_up_what_tools_and_models_take() -> None:
    clock = FakeClock()

    @tool
    async def work(seconds: float) -> str:
        """Work."""
        clock.advance(seconds)
        return "worked"

    model = ScriptedModel(call("work", seconds=20), call("work", seconds=20), "done")
    result = await Agent(model, tools=[work], termination=TimeLimit(30), clock=clock).run("x")
    assert result.stop_reason == "TimeLimit"
    assert results(result) == ["worked", "worked"]
    assert result.state.active_seconds == 40.0


async def test_a_model_that_never_answers_is_stopped_by_the_time_limit() -> None:
    with anyio.fail_after(5):
        result = await Agent(ScriptedModel(never), termination=TimeLimit(0.3)).run("x")
    assert result.stop_reason == "TimeLimit"
    assert "did not answer" in result.state.errors[-1]


async def test_a_tool_that_never_returns_is_stopped_by_the_time_limit() -> None:
    @tool
    async def hang() -> str:
        """Never returns."""
        await anyio.sleep_forever()
        return "never"

    with anyio.fail_after(5):
        result = await Agent(ScriptedModel(call("hang")), tools=[hang], termination=TimeLimit(0.3)).run("x")
    assert result.stop_reason == "TimeLimit"
    assert results(result)[0].startswith("Error: TimeoutError")


@pytest.mark.parametrize("kind", ["limit", "deadline"])
async def test_tools_and_models_know_how_much_time_is_left(kind: str) -> None:
    clock, told = FakeClock(), list[float | None]()

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        """Look at the clock."""
        told.append(ctx.deadline)
        return "looked"

    limit: TerminationCondition = TimeLimit(60)
    if kind == "deadline":
        limit = Deadline(clock.now() + timedelta(seconds=60))
    model = ScriptedModel(call("look"), "done", after="cycle")
    before = anyio.current_time()
    await Agent(model, tools=[look], termination=limit, clock=clock).run("x")
    told += [r.deadline for r in model.requests]
    assert len(told) == 3
    assert all(at is not None and before + 60 <= at <= anyio.current_time() + 60 for at in told)

    await Agent(model, tools=[look], max_iterations=9).run("x")
    assert [*told[3:], *(r.deadline for r in model.requests[2:])] == [None] * 3


# -- always an end ----------------------------------------------------------------------------------


async def test_a_condition_without_an_end_gets_the_default_bound_and_says_so_once() -> None:
    model = looping()
    with pytest.warns(NoHaltWarning, match=r"MaxIterations\(20\)") as caught:
        agent = Agent(model, tools=[add], termination=ToolCalled("submit"))
    assert [w.filename for w in caught] == [__file__]  # it points at the agent's own line
    assert agent.condition.bounds().iterations == 20

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = await agent.run("x")
    assert len(model.requests) == 20
    assert result.stop_reason == "MaxIterations"


async def test_an_agent_without_a_condition_has_the_default_bound_and_no_warning() -> None:
    model = looping()
    result = await Agent(model, tools=[add]).run("x")
    assert (len(model.requests), result.stop_reason) == (20, "MaxIterations")
    assert result.state.max_iterations == 20


async def test_the_condition_of_an_agent_explains_itself() -> None:
    agent = Agent(ScriptedModel("x"), tools=[add], termination=ToolCalled("add"), max_iterations=3)

    result = await agent.run("x")
    explained = str(agent.condition.explain(result.state))
    for leaf in ("ToolCalled", "MaxIterations", "NoToolCalls"):
        assert leaf in explained
    assert list(agent.condition.leaves())[-1] == NoToolCalls()


@pytest.mark.parametrize(
    "turns",
    [["done"], [call("add", a=1), "done"], [[call("add", a=1), call("nope")], "done"], [RuntimeError("down")]],
)
async def test_every_run_has_exactly_one_terminate_event_and_it_is_the_last(turns: list[Any]) -> None:
    events = await collect(Agent(ScriptedModel(*turns), tools=[add]).run("x"))
    assert kinds(events).count("terminate") == 1
    assert events[-1].type == "terminate"
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
