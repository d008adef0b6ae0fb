"""What becomes of a graph whose limit is reached: between super-steps, inside a node, in a child, across a crash."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus import Agent, Budget, Cancel, CostLimit, Hook, MaxIterations, TimeLimit, TokenLimit
from locus.core.errors import NothingToResume
from locus.journal import MemoryStore
from locus.models import Price
from locus_plugin_graph import END, START, NodeContext, Send, StateGraph
from locus_testkit import ScriptedModel
from locus_testkit.crashes import CrashingStore, every_crash, is_crash

pytestmark = pytest.mark.anyio

#: Of 10 prompt and 5 completion tokens it makes 0.0015 dollars.
PRICE = Price(prompt=100.0, completion=100.0)


class Crash(GeneratorExit):
    """The process is gone."""


def two(
    ran: Counter[str], *, limit: Any, checkpointer: Any = None, retries: int = 0, on_error: Any = None, **options: Any
) -> Any:
    """A node that finishes beside one that asks a model 9 times, and what would follow both."""

    async def cheap(values: dict[str, Any]) -> dict[str, Any]:
        ran["cheap"] += 1
        return {"log": ["cheap"]}

    async def dear(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        ran["dear"] += 1
        for _ in range(50):  # the other one has begun by then, on trio too, which begins tasks in any order
            await anyio.lowlevel.checkpoint()
        for n in range(9):
            await ctx.call_model(f"{n}?")
        return {"log": ["dear"]}

    def after(values: dict[str, Any]) -> dict[str, Any]:
        ran["after"] += 1
        return {"log": ["after"]}

    graph = StateGraph(reducers={"log": operator.add}, effect=options.pop("effect", "pure"))
    graph.add_node("cheap", cheap).add_node("dear", dear, retries=retries).add_node("after", after)
    graph.add_edge(START, "cheap").add_edge(START, "dear").add_edge(["cheap", "dear"], "after").add_edge("after", END)
    model = ScriptedModel("yes", after="repeat", price=PRICE)
    return graph.compile(model=model, checkpointer=checkpointer, termination=limit, on_error=on_error, **options)


@pytest.mark.parametrize(("limit", "name"), [(TokenLimit(40), "TokenLimit"), (CostLimit(0.003), "CostLimit")])
async def test_a_limit_holds_over_a_graph(limit: Any, name: str) -> None:
    """Given a cycle that spends 15 tokens, 0.0015 dollars, a super-step; then it ends once the limit is used up."""

    async def node(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        await ctx.call_model(f"{values['n']}?")
        return {"n": values["n"] + 1}

    graph = StateGraph(effect="pure").add_node("a", node).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda values: "a" if values["n"] < 20 else END)
    model = ScriptedModel("yes", after="repeat", price=PRICE)
    result = await graph.compile(model=model, termination=limit).run({"n": 0})

    assert result.stop_reason == name
    assert result.values["n"] == len(model.requests) == {"TokenLimit": 3, "CostLimit": 2}[name]
    assert not result.is_open


# -- inside a node -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "name"), [(TokenLimit(40), "TokenLimit"), (CostLimit(0.004), "CostLimit")])
async def test_a_limit_that_is_reached_in_a_node_ends_the_run_and_keeps_what_finished(limit: Any, name: str) -> None:
    ran: Counter[str] = Counter()
    app = two(ran, limit=limit, checkpointer=MemoryStore())
    result = await app.run({"log": ["in"]}, thread_id="t")

    assert (result.stop_reason, result.is_open, result.error) == (name, False, None)
    assert result.values == {"log": ["in", "cheap"]}
    assert result.usage.total_tokens == 45
    assert ran == {"cheap": 1, "dear": 1}
    assert [entry.why for entry in await app.history("t")][1:] == [name, name]
    drawn = app.mermaid(result.state)
    assert "class n0 ran" in drawn
    assert "class n1 next" in drawn
    with pytest.raises(NothingToResume, match=name):
        await app.resume("t")
    assert (await app.replay("t")).difference is None


async def test_the_next_turn_begins_with_what_was_kept() -> None:
    app = two(Counter(), limit=TokenLimit(40), checkpointer=MemoryStore())
    await app.run({"log": ["in"]}, thread_id="t")
    again = await app.run({"log": ["more"]}, thread_id="t")

    assert again.stop_reason == "TokenLimit"
    assert again.values["log"][:3] == ["in", "cheap", "more"]


@pytest.mark.parametrize("options", [{"retries": 3}, {"on_error": {"dear": "after"}}])
async def test_a_limit_is_not_a_failure_to_try_again_or_to_go_around(options: Any) -> None:
    ran: Counter[str] = Counter()
    result = await two(ran, limit=TokenLimit(40), **options).run({"log": []})

    assert (result.stop_reason, result.values) == ("TokenLimit", {"log": ["cheap"]})
    assert ran == {"cheap": 1, "dear": 1}


async def test_a_limit_waits_for_what_failed_or_asks_beside_it() -> None:
    """Given a limit that is reached beside a failure and a question; then these are seen to before it ends the run."""
    ran: Counter[str] = Counter()

    async def dear(values: dict[str, Any], ctx: NodeContext) -> None:
        async def ask() -> None:
            ran["dear"] += 1
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            for n in range(9):
                await ctx.call_model(f"{n}?")

        async with anyio.create_task_group() as group:
            group.start_soon(ask)

    def fails(values: dict[str, Any]) -> dict[str, Any]:
        ran["fails"] += 1
        if ran["fails"] < 2:
            raise OSError("not now")
        return {"log": ["failed once"]}

    def asks(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"log": [ctx.interrupt("Go on?")]}

    graph = StateGraph(effect="pure", reducers={"log": operator.add})
    for node in (fails, asks, dear):
        graph.add_node(node).add_edge(START, node.__name__, END)
    model = ScriptedModel("yes", after="repeat")
    app = graph.compile(model=model, checkpointer=MemoryStore(), termination=TokenLimit(40))
    failed = await app.run(thread_id="t")
    asked = await app.resume("t")
    result = await app.resume("t", "yes")

    assert (failed.stop_reason, failed.is_open) == ("NodeError", True)
    assert "fails" in failed.detail
    assert asked.stop_reason == "Interrupted"
    assert (result.stop_reason, result.is_open) == ("TokenLimit", False)
    assert result.values == {"log": ["failed once", "yes"]}
    assert ran == {"fails": 2, "dear": 1}
    assert (await app.replay("t")).difference is None


async def test_the_time_of_the_run_ends_it_inside_a_node() -> None:
    begun = anyio.Event()

    async def quick(values: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        return {"quick": 1}

    async def slow(values: dict[str, Any]) -> None:
        await begun.wait()
        await anyio.sleep_forever()

    graph = StateGraph(effect="pure").add_node("quick", quick).add_node("slow", slow)
    graph.add_edge(START, "quick", END).add_edge(START, "slow", END)
    result = await graph.compile(termination=TimeLimit(0.5)).run()

    assert (result.stop_reason, result.is_open, result.values) == ("TimeLimit", False, {"quick": 1})


async def test_the_time_of_a_node_is_its_own() -> None:
    async def slow(values: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    graph = StateGraph(effect="pure").add_node("slow", slow, timeout=0.01).add_edge(START, "slow", END)
    result = await graph.compile(termination=TimeLimit(600)).run()

    assert result.stop_reason == "NodeError"
    assert "TimeoutError: it did not finish within 0.01 s" in result.detail


# -- in a child --------------------------------------------------------------------------------------


async def test_the_part_of_a_task_ends_the_run_too() -> None:
    """Given a limit that is shared by two tasks; when one has spent its part, it cannot go on."""

    async def spend(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        for _ in range(values["children"]):
            await ctx.run_child(Agent(ScriptedModel("yes")), "x")
        return {"log": [values["children"]]}

    graph = StateGraph(effect="pure", reducers={"log": operator.add}).add_node("spend", spend).add_edge("spend", END)
    graph.add_conditional_edges(START, lambda values: [Send("spend", {"children": n}) for n in (1, 9)], ["spend"])
    result = await graph.compile(checkpointer=MemoryStore(), termination=TokenLimit(100)).run(thread_id="t")

    assert (result.stop_reason, result.is_open, result.values) == ("TokenLimit", False, {"log": [1]})
    assert result.usage.total_tokens < 100
    assert "other runs" in result.detail


async def test_a_budget_that_a_node_gives_is_its_own_failure() -> None:
    async def node(values: dict[str, Any], ctx: NodeContext) -> None:
        await ctx.run_child(Agent(ScriptedModel("yes")), "x", budget=Budget(tokens=0))

    graph = StateGraph(effect="pure").add_node("node", node).add_edge(START, "node", END)
    result = await graph.compile(checkpointer=MemoryStore(), termination=TokenLimit(100)).run(thread_id="t")

    assert (result.stop_reason, result.is_open) == ("NodeError", True)
    assert "BudgetExceeded" in result.detail


async def test_a_limit_that_is_reached_in_a_sub_graph_ends_the_graph_above() -> None:
    ran: Counter[str] = Counter()
    inner = two(ran, limit=MaxIterations(9))
    graph = StateGraph(reducers={"log": operator.add}).add_node("sub", inner).add_edge(START, "sub", "after", END)
    graph.add_node("after", lambda values: {"log": ["never"]})
    result = await graph.compile(termination=TokenLimit(40)).run({"log": ["in"]})

    assert (result.stop_reason, result.is_open) == ("TokenLimit", False)
    assert result.values == {"log": ["in", "cheap"]}
    assert ran == {"cheap": 1, "dear": 1}


async def test_a_sub_graph_that_ends_before_its_first_super_step_fails_its_node() -> None:
    class Stop(Hook):
        async def on_run_start(self, event: Any) -> Cancel:
            return Cancel("not now")

    inner = StateGraph().add_node("a", lambda values: {"x": 1}).add_edge(START, "a", END).compile(hooks=[Stop()])
    result = await StateGraph().add_node("sub", inner).add_edge(START, "sub", END).compile().run()

    assert result.stop_reason == "NodeError"
    assert "'sub': its graph ended with 'Cancelled: not now' before its first super-step" in result.detail


# -- across a crash ----------------------------------------------------------------------------------


async def outlive(ran: Counter[str], store: CrashingStore, effect: str) -> Any:
    """A run, and in another process what follows a crash of it; a person says that nothing has happened."""
    app = two(ran, limit=TokenLimit(40), checkpointer=store, effect=effect)
    try:
        return await app.run({"log": ["in"]}, thread_id="t")
    except BaseException as error:
        if not is_crash(error):
            raise
    await store.revive()
    try:
        result = await app.resume("t")
        while result.interrupts:
            result = await app.resume("t", {asked.interrupt_id: "run again" for asked in result.interrupts})
    except NothingToResume:
        if await store.read("t"):
            return (await app.history("t"))[-1]
        return await app.run({"log": ["in"]}, thread_id="t")
    return result


@pytest.mark.parametrize("effect", ["pure", "once"])
async def test_a_crash_at_any_write_does_not_change_how_a_limit_ends_a_run(effect: str) -> None:
    """Given a limit inside a node; whenever the process dies, the run ends as it would have, at no further cost."""
    for store in every_crash(least=8):
        ran: Counter[str] = Counter()
        made = await outlive(ran, store, effect)
        peeked = await two(Counter(), limit=None, checkpointer=store).state_at("t", 2)

        assert peeked == {"log": ["in", "cheap"]}, store
        assert getattr(made, "stop_reason", "TokenLimit") == "TokenLimit", store
        assert ran["after"] == 0
        assert max(ran.values()) <= 1 + store.crashes, store


class DiesAfterTheLimit(CrashingStore):
    """Its process dies once it is on record that a limit was reached."""

    def _last(self, bodies: Any) -> bool:
        return not self.crashes and any("BudgetExceeded" in str(getattr(body, "error", "")) for body in bodies)


@pytest.mark.parametrize("effect", ["pure", "once"])
async def test_a_node_that_is_known_to_have_met_the_limit_is_not_entered_again(effect: str) -> None:
    ran: Counter[str] = Counter()
    store = DiesAfterTheLimit(stored=True)
    result = await outlive(ran, store, effect)

    assert store.crashes == 1
    assert (result.stop_reason, result.values) == ("TokenLimit", {"log": ["in", "cheap"]})
    assert ran == {"cheap": 1, "dear": 1}


async def test_a_crash_does_not_give_a_graph_more_to_spend() -> None:
    """Given a limit and children that spend beside each other; when the process dies, the resumed run keeps to it."""
    dies = [False, False, True]

    async def work(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        said = (await ctx.run_child(agent, f"{values['n']}")).text
        await ctx.call_model(f"is {values['n']} right?")
        await ctx.step("noted", anyio.lowlevel.checkpoint)  # the answer before is on record by now
        if dies and dies.pop(0):
            raise Crash
        return {"log": [said]}

    model = ScriptedModel("yes", after="repeat")
    agent = Agent(model)
    graph = StateGraph(effect="pure", reducers={"log": operator.add}).add_node("work", work)
    graph.add_node("again", lambda values: None).add_edge("work", "again")
    graph.add_conditional_edges(START, lambda values: [Send("work", {"n": n}) for n in range(4)], ["work"])
    graph.add_conditional_edges("again", lambda values: [Send("work", {"n": n}) for n in range(4)], ["work", END])
    app = graph.compile(model=model, checkpointer=MemoryStore(), termination=TokenLimit(200), max_concurrency=1)
    with pytest.raises(Crash):
        await app.run(thread_id="t")
    spent = len(model.requests)
    result = await app.resume("t")

    assert spent == 6
    assert result.stop_reason == "TokenLimit"
    assert result.usage.total_tokens == 15 * len(model.requests)
    assert 185 < result.usage.total_tokens <= 215, "what the node may still spend ends with the limit of the run"
