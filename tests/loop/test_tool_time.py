"""The time of a run and of a tool: nothing is begun once it is used up, and what outlives it is reported as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.loop.kit import Recorder, assert_valid_history, kinds, of, results

from locus import Agent, AgentResult, Hook, TerminateEvent, ToolCompleteEvent, ToolContext, ToolStartEvent, tool
from locus.core.termination import Deadline, TerminationCondition, TimeLimit
from locus.journal import MemoryStore
from locus.models.protocol import ModelRequest
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel, Turn, call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio

paid: list[str] = []


@tool(idempotent=True)
async def pay(to: str = "bob") -> str:
    """Pay."""
    paid.append(to)
    return "paid"


@tool
def pay_in_a_thread(to: str = "bob") -> str:
    """Pay, synchronously."""
    paid.append(to)
    return "paid"


def limit(kind: str, clock: FakeClock, seconds: float) -> TerminationCondition:
    return TimeLimit(seconds) if kind == "limit" else Deadline(clock.now() + timedelta(seconds=seconds))


@pytest.fixture(autouse=True)
def _nothing_is_paid() -> None:
    paid.clear()


# -- the time of a run ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["limit", "deadline"])
@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
@pytest.mark.parametrize("beside", [False, True])
async def test_no_body_is_entered_once_the_time_of_the_run_is_used_up(kind: str, mode: Any, beside: bool) -> None:
    clock, recorder = FakeClock(), Recorder()
    calls = [call("pay"), call("pay_in_a_thread"), call("pay", to="eve")] if beside else [call("pay")]

    def late(_: ModelRequest) -> Turn:
        clock.advance(31)
        return calls

    agent = Agent(
        ScriptedModel(late, "done"),
        tools=[pay, pay_in_a_thread],
        termination=limit(kind, clock, 30),
        clock=clock,
        hooks=[recorder],
        tool_execution=mode,
    )
    result = await agent.run("x")
    reason = "TimeLimit" if kind == "limit" else "Deadline"
    assert (paid, result.stop_reason) == ([], reason)
    assert results(result) == [f"Error: not run: {reason}"] * len(calls)
    assert result.state.tool_executions == ()
    assert kinds(recorder.events, ToolStartEvent) == []
    assert len(of(recorder.events, TerminateEvent)) == 1
    assert_valid_history(result.state.messages)


async def test_the_rest_of_a_turn_is_not_run_when_a_call_uses_the_time_up() -> None:
    clock = FakeClock()

    @tool
    async def work() -> str:
        """Work for long."""
        clock.advance(31)
        return "worked"

    agent = Agent(
        ScriptedModel([call("work"), call("pay"), call("pay", to="eve")], "done"),
        tools=[work, pay],
        termination=TimeLimit(30),
        clock=clock,
        tool_execution="sequential",
    )
    result = await agent.run("x")
    assert (paid, result.stop_reason) == ([], "TimeLimit")
    assert results(result) == ["worked", *["Error: not run: TimeLimit"] * 2]


async def test_a_decision_or_a_start_event_that_takes_too_long_lets_no_body_be_entered() -> None:
    clock = FakeClock()

    class Slow(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> None:
            clock.advance(31)

    agent = Agent(
        ScriptedModel(call("pay"), "done"), tools=[pay], termination=TimeLimit(30), clock=clock, hooks=[Slow()]
    )
    result = await agent.run("x")
    assert (paid, result.stop_reason) == ([], "TimeLimit")
    assert results(result) == ["Error: not run: TimeLimit"]
    assert [e.started for e in result.state.tool_executions] == [False]


async def test_a_child_enters_no_body_once_the_time_of_its_parent_is_used_up() -> None:
    clock = FakeClock()

    def late(_: ModelRequest) -> Turn:
        clock.advance(31)
        return call("pay")

    child = Agent(ScriptedModel(late, "done"), tools=[pay], clock=clock)
    ended: list[AgentResult[Any]] = []

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Run another agent."""
        ended.append(await ctx.run_child(child, "pay"))
        return "delegated"

    parent = Agent(ScriptedModel(call("delegate"), "done"), tools=[delegate], termination=TimeLimit(30), clock=clock)
    result = await parent.run("x")
    assert (paid, result.stop_reason) == ([], "TimeLimit")
    assert [(each.stop_reason, results(each)) for each in ended] == [("TimeLimit", ["Error: not run: TimeLimit"])]


@pytest.mark.parametrize("history", [True, False])
async def test_work_before_a_question_counts_and_waiting_for_the_answer_does_not(history: bool) -> None:
    clock, store = FakeClock(), MemoryStore(history=history)

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work, and ask."""
        clock.advance(10)
        first = ctx.interrupt("Go on?")
        second = ctx.interrupt("Really?")
        return f"{first} {second}"

    def made(*turns: Any) -> Agent[Any, Any]:
        model = ScriptedModel(*turns)
        return Agent(model, tools=[work, pay], termination=TimeLimit(35), clock=clock, checkpointer=store)

    asked = await made(call("work")).run("x", thread_id="t")
    assert (asked.stop_reason, asked.state.active_seconds) == ("Interrupted", 10)
    clock.advance(1_000)
    asked = await made().resume("t", "yes")
    assert (asked.stop_reason, asked.state.active_seconds) == ("Interrupted", 20)
    clock.advance(1_000)
    result = await made(call("pay"), "done").resume("t", "yes")
    assert (result.stop_reason, result.state.active_seconds) == ("NoToolCalls", 30)
    assert results(result) == ["yes yes", "paid"]


async def test_no_body_is_entered_when_the_time_was_used_up_before_a_question() -> None:
    clock, store = FakeClock(), MemoryStore()

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work, and ask."""
        paid.append("work")
        clock.advance(31)
        return str(ctx.interrupt("Go on?"))

    agent = Agent(
        ScriptedModel(call("work"), "done"), tools=[work], termination=TimeLimit(30), clock=clock, checkpointer=store
    )
    assert (await agent.run("x", thread_id="t")).stop_reason == "Interrupted"
    result = await agent.resume("t", "yes")
    assert (paid, result.stop_reason) == (["work"], "TimeLimit")
    assert_valid_history(result.state.messages)


# -- the time of a tool -----------------------------------------------------------------------------


async def only_result(*tools: Any, **options: Any) -> tuple[str, AgentResult[Any]]:
    result = await Agent(ScriptedModel(call(tools[0].name), "done"), tools=tools, **options).run("x")
    [text] = results(result)
    return text, result


async def test_an_async_body_that_outlives_its_time_has_failed_although_it_returns() -> None:
    @tool(timeout=0.01)
    async def stubborn() -> str:
        """Swallows its cancellation and finishes."""
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            paid.append("late")
        return "paid"

    text, result = await only_result(stubborn)
    assert paid == ["late"]
    assert text == ("Error: TimeoutError: the tool did finish, but not within 0.01 s; its result was not used")
    [execution] = result.state.tool_executions
    assert (execution.succeeded, execution.started) == (False, True)


async def test_a_function_that_no_thread_has_begun_in_time_is_not_called_and_not_recorded_as_started() -> None:
    """All worker threads are busy: the body is never entered, neither in time nor later."""

    @tool(timeout=0.01)
    def begin() -> str:
        """Pay, synchronously."""
        paid.append("begun")
        return "paid"

    limiter = anyio.to_thread.current_default_thread_limiter()
    holders = [object() for _ in range(int(limiter.total_tokens))]
    for holder in holders:
        await limiter.acquire_on_behalf_of(holder)
    try:
        text, result = await only_result(begin)
    finally:
        for holder in holders:
            limiter.release_on_behalf_of(holder)
    assert text == "Error: TimeoutError: the tool was not started within 0.01 s: all worker threads were busy"
    assert [e.started for e in result.state.tool_executions] == [False]
    await anyio.to_thread.run_sync(lambda: None)
    assert paid == []


async def test_a_call_whose_wrapper_fails_before_the_body_is_not_recorded_as_started() -> None:
    class Wrapper(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: Any, run: Any) -> Any:
            raise RuntimeError("no network")

    text, result = await only_result(pay, hooks=[Wrapper()])
    assert text == "Error: RuntimeError: no network"
    assert (paid, [e.started for e in result.state.tool_executions]) == ([], [False])


async def test_a_call_whose_wrapper_fails_after_the_body_is_recorded_as_started() -> None:
    class Wrapper(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: Any, run: Any) -> Any:
            await call_next(call)
            raise RuntimeError("no disk")

    _, result = await only_result(pay, hooks=[Wrapper()])
    assert (paid, [e.started for e in result.state.tool_executions]) == (["bob"], [True])


async def begun_in_a_thread(make: Callable[[float], Any], **options: Any) -> tuple[str, AgentResult[Any]]:
    """What becomes of a body whose time is up when a thread has begun it, however busy the machine is."""
    seconds = 0.02
    while True:
        text, result = await only_result(make(seconds), **options)
        if "was not started" not in text:
            return text.replace(f"{seconds:.3g} s", "its time"), result
        seconds *= 4


async def test_a_synchronous_body_that_is_given_up_may_still_finish_and_says_so() -> None:
    go_on, finished, recorder = threading.Event(), threading.Event(), Recorder()

    def make(seconds: float) -> Any:
        @tool(timeout=seconds)
        def slow() -> str:
            """Finishes when it is let."""
            go_on.wait(60)
            paid.append("late")
            finished.set()
            return "paid"

        return slow

    text, result = await begun_in_a_thread(make, hooks=[recorder])
    go_on.set()
    assert text == (
        "Error: TimeoutError: the tool did not finish within its time and was given up; it may still finish, so its "
        "outcome is unknown: find out before calling it again"
    )
    assert [e.started for e in result.state.tool_executions] == [True]
    assert "given up" in str(of(recorder.events, ToolCompleteEvent)[-1].error)
    await anyio.to_thread.run_sync(finished.wait, 60)
    assert paid == ["late"]


async def test_a_coroutine_behind_a_plain_decorator_is_stopped_and_not_given_up() -> None:
    async def hang() -> str:
        await anyio.sleep_forever()
        return "never"

    def make(seconds: float) -> Any:
        @tool(timeout=seconds)
        def decorated() -> Any:
            """Returns a coroutine."""
            return hang()

        return decorated

    text, _ = await begun_in_a_thread(make)
    assert text == "Error: TimeoutError: the tool did not finish within its time and was stopped"
