"""A run inside a run: `ctx.run_child` inherits limits, cancellation and trace; usage rolls up, questions surface."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, collect, confirm, of, results

from locus import (
    Agent,
    AgentResult,
    Budget,
    Event,
    InterruptEvent,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolContext,
    tool,
)
from locus.core.termination import CostLimit, TimeLimit, TokenLimit
from locus.journal import MemoryStore
from locus.models.protocol import Price
from locus_testkit import ScriptedModel, call, never

pytestmark = pytest.mark.anyio


class Delegate:
    """A tool that has a child do its work, and keeps what the child came to."""

    def __init__(self, child: Agent[Any, Any], budget: Budget | None = None) -> None:
        self.child, self.budget = child, budget
        self.results: list[AgentResult[Any]] = []

    @tool
    async def delegate(self, task: str, ctx: ToolContext[Any]) -> str:
        """Delegate a task."""
        result = await ctx.run_child(self.child, task, budget=self.budget)
        self.results.append(result)
        return f"{result.stop_reason}: {result.message}"


def looping(**options: Any) -> ScriptedModel:
    return ScriptedModel(call("add", a=1), after="repeat", **options)


async def test_a_childs_answer_usage_and_trace_reach_the_parent() -> None:
    inner, outer = Recorder(), Recorder()
    work = Delegate(Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], hooks=[inner]))
    agent = Agent(ScriptedModel(call("delegate", task="1 + 1?"), "it is two"), tools=[work.delegate], hooks=[outer])

    result = await agent.run("x", thread_id="t")

    assert results(result) == ["NoToolCalls: two"]
    assert result.usage.total_tokens == 60  # two calls each
    [child] = work.results
    assert child.run_id != result.run_id
    assert child.thread_id.startswith("t/")
    assert {e.parent_run_id for e in inner.events} == {result.run_id}
    assert {e.parent_run_id for e in outer.events} == {None}


async def test_a_childs_events_stream_with_those_of_the_parent() -> None:
    work = Delegate(Agent(ScriptedModel("two")))
    run = Agent(ScriptedModel(call("delegate", task="1 + 1?"), "it is two"), tools=[work.delegate]).run("x")
    events = await collect(run)
    mine = run.result.run_id
    assert [e.text for e in of(events, ThinkEvent)] == ["", "two", "it is two"]
    assert [e.parent_run_id for e in of(events, ThinkEvent)] == [None, mine, None]
    assert len([e for e in of(events, TerminateEvent) if e.parent_run_id is None]) == 1
    assert [e.prompt for e in of(events, RunStartEvent)] == ["x", "1 + 1?"]


@pytest.mark.parametrize("kind", ["budget", "rest"])
async def test_a_child_spends_no_more_tokens_than_its_budget_and_what_its_parent_has_left(kind: str) -> None:
    inner = looping()
    work = Delegate(Agent(inner, tools=[add], max_iterations=50), Budget(tokens=35) if kind == "budget" else None)
    limit = TokenLimit(1000 if kind == "budget" else 50)
    agent = Agent(
        ScriptedModel(call("delegate", task="x"), "done"), tools=[work.delegate], termination=limit, max_iterations=9
    )
    result = await agent.run("x")
    assert work.results[0].stop_reason == "TokenLimit"
    assert len(inner.requests) == 3  # 15, 30, 45 of 35; or 15 of the parent's and then 45 of 35
    assert result.stop_reason == ("NoToolCalls" if kind == "budget" else "TokenLimit")


async def test_a_child_makes_no_more_iterations_than_its_budget() -> None:
    inner = looping()
    work = Delegate(Agent(inner, tools=[add], max_iterations=50), Budget(iterations=2))
    await Agent(ScriptedModel(call("delegate", task="x"), "done"), tools=[work.delegate]).run("x")
    assert len(inner.requests) == 2
    assert work.results[0].stop_reason == "MaxIterations"


async def test_a_child_spends_no_more_dollars_than_its_parent_has_left() -> None:
    price = Price(prompt=100_000, completion=0)  # a dollar a call
    inner = looping(price=price)
    work = Delegate(Agent(inner, tools=[add], max_iterations=50))
    agent = Agent(
        ScriptedModel(call("delegate", task="x"), "done", price=price),
        tools=[work.delegate],
        termination=CostLimit(3.0),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert len(inner.requests) == 2
    assert work.results[0].stop_reason == "CostLimit"
    assert result.stop_reason == "CostLimit"
    assert result.cost == pytest.approx(3.0)


async def test_a_child_inherits_the_deadline() -> None:
    work = Delegate(Agent(ScriptedModel(never)))
    agent = Agent(ScriptedModel(call("delegate", task="x"), "done"), tools=[work.delegate], termination=TimeLimit(0.05))
    with anyio.fail_after(5):
        result = await agent.run("x")
    assert result.stop_reason == "TimeLimit"


async def test_a_child_that_fails_is_the_tools_business() -> None:
    work = Delegate(Agent(ScriptedModel(RuntimeError("down"))))
    result = await Agent(ScriptedModel(call("delegate", task="x"), "sorry"), tools=[work.delegate]).run("x")
    assert results(result) == ["ModelError: "]
    assert result.stop_reason == "NoToolCalls"


async def test_a_bad_prompt_for_a_child_is_an_error_of_the_tool() -> None:
    work = Delegate(Agent(ScriptedModel("never")))
    result = await Agent(ScriptedModel(call("delegate", task=""), "sorry"), tools=[work.delegate]).run("x")
    assert results(result)[0].startswith("Error: InputError: the prompt is empty")


@pytest.mark.parametrize("store", ["none", "memory"])
async def test_a_question_of_a_child_surfaces_in_the_parent_and_its_answer_goes_down(store: str) -> None:
    inner, recorder = ScriptedModel(call("confirm", what="pay"), "paid"), Recorder()
    work = Delegate(Agent(inner, tools=[confirm]))
    agent = Agent(
        ScriptedModel([call("delegate", task="pay"), call("add", a=1)], "all done"),
        tools=[work.delegate, add],
        hooks=[recorder],
        checkpointer=MemoryStore() if store == "memory" else None,
    )

    asked = await agent.run("x", thread_id="t")

    assert asked.stop_reason == "Interrupted"
    assert [q.question for q in asked.interrupts] == ["Shall I pay?"]
    assert [e.tool_name for e in of(recorder.events, InterruptEvent) if e.parent_run_id is None] == ["delegate"]

    result = await agent.resume(asked, "yes")

    assert results(result) == ["NoToolCalls: paid", "2"]
    assert len(inner.requests) == 2
    [child] = work.results
    assert results(child) == ["pay: yes"]
    assert result.usage.total_tokens == 60


@pytest.mark.parametrize("store", ["none", "memory"])
async def test_a_finished_child_is_not_run_again_when_its_tool_asks_afterwards(store: str) -> None:
    inner = ScriptedModel("child done")
    entered: Counter[str] = Counter()
    child: Agent[Any, str] = Agent(inner)

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Delegates, then asks."""
        entered["work"] += 1
        done = await ctx.run_child(child, "do it")
        return f"{done.message}, {ctx.interrupt('and now?')}"

    agent = Agent(
        ScriptedModel(call("work"), "done"), tools=[work], checkpointer=MemoryStore() if store == "memory" else None
    )
    result = await agent.resume(await agent.run("x"), "go on")
    assert results(result) == ["child done, go on"]
    assert entered["work"] == 2
    assert len(inner.requests) == 1
    assert result.usage.total_tokens == 45


async def test_several_children_of_one_tool_are_kept_apart() -> None:
    child: Agent[Any, str] = Agent(ScriptedModel(lambda request: f"did {request.messages[-1].text}", after="repeat"))

    @tool
    async def both(ctx: ToolContext[Any]) -> str:
        """Runs two children."""
        one = await ctx.run_child(child, "one")
        two = await ctx.run_child(child, "two")
        return f"{one.message}, {two.message}, {ctx.interrupt('fine?')}"

    agent = Agent(ScriptedModel([call("both"), call("both")], "done"), tools=[both])
    asked = await agent.run("x")
    result = await agent.resume(asked, {q.interrupt_id: "yes" for q in asked.interrupts})
    assert results(result) == ["did one, did two, yes"] * 2


async def test_children_can_run_at_the_same_time_inside_one_tool() -> None:
    child: Agent[Any, str] = Agent(ScriptedModel(lambda request: f"did {request.messages[-1].text}", after="repeat"))

    @tool
    async def both(ctx: ToolContext[Any]) -> str:
        """Runs two children together."""
        got: dict[str, str] = {}

        async def one(task: str) -> None:
            got[task] = (await ctx.run_child(child, task)).message

        async with anyio.create_task_group() as group:
            group.start_soon(one, "a")
            group.start_soon(one, "b")
        return f"{got['a']}, {got['b']}"

    result = await Agent(ScriptedModel(call("both"), "done"), tools=[both]).run("x")
    assert results(result) == ["did a, did b"]


async def test_cancelling_the_caller_reaches_the_tools_of_the_child() -> None:
    inside, log = anyio.Event(), list[str]()

    @tool
    async def hang() -> str:
        """Hang."""
        inside.set()
        try:
            await anyio.sleep_forever()
        finally:
            log.append("released")
        return "never"

    recorder = Recorder()
    work = Delegate(Agent(ScriptedModel(call("hang")), tools=[hang], hooks=[recorder]))
    agent = Agent(ScriptedModel(call("delegate", task="x")), tools=[work.delegate], hooks=[recorder])

    async def main() -> None:
        await agent.run("x")

    async with anyio.create_task_group() as group:
        group.start_soon(main)
        await inside.wait()
        group.cancel_scope.cancel()
    assert log == ["released"]
    ends = of(recorder.events, TerminateEvent)
    assert [(e.reason, e.parent_run_id is None) for e in ends] == [("Cancelled", False), ("Cancelled", True)]


async def test_children_go_as_deep_as_they_like_within_the_budget_of_the_first() -> None:
    leaf = looping()
    deep = Delegate(Agent(leaf, tools=[add], max_iterations=50))
    middle_model = ScriptedModel(call("delegate", task="deeper"), "middle")
    middle = Delegate(Agent(middle_model, tools=[deep.delegate]))
    agent = Agent(
        ScriptedModel(call("delegate", task="deep"), "done"),
        tools=[middle.delegate],
        termination=TokenLimit(60),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert len(leaf.requests) == 3  # 15 + 15 + 15 * 3 = 75: the third call was the one that exceeded 60
    assert result.usage.total_tokens == 75
    assert result.stop_reason == "TokenLimit"


async def test_deps_go_down_to_the_child() -> None:
    @tool
    async def look(ctx: ToolContext[str]) -> str:
        """Look at the deps."""
        return ctx.deps

    work = Delegate(Agent[str, str](ScriptedModel(call("look"), "seen"), tools=[look]))
    await Agent[str, str](ScriptedModel(call("delegate", task="x"), "done"), tools=[work.delegate]).run("x", deps="d")
    assert results(work.results[0]) == ["d"]


async def test_every_event_of_a_child_can_be_distinguished_from_the_parents() -> None:
    work = Delegate(Agent(ScriptedModel("two")))
    events: list[Event] = await collect(
        Agent(ScriptedModel(call("delegate", task="x"), "done"), tools=[work.delegate]).run("x", thread_id="t")
    )
    assert len({e.event_id for e in events}) == len(events)
    children = [e for e in events if e.parent_run_id is not None]
    assert children
    assert {e.thread_id for e in events if e.parent_run_id is None} == {"t"}
    assert "t" not in {e.thread_id for e in children}
