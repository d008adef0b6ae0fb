"""`agent.what_if`: where another rule would have stopped, without asking a model."""

from __future__ import annotations

from typing import Any

import pytest

from locus import AgentState, Event, Hook, Message, Role, Usage, tool
from locus.core.errors import ConfigError, JournalError, ModelError, NothingToResume
from locus.core.termination import CustomCondition, MaxIterations, TimeLimit, TokenLimit, ToolCalled
from locus.journal import MemoryStore
from locus.loop.router import Node, Route, Router
from locus.models.protocol import Price
from locus.plugin import hookimpl
from locus_kit.reflect import EveryIterations
from locus_plugin_timetravel import WhatIf, fork, history, what_if
from locus_testkit import FakeClock, ScriptedModel, call

from .kit import add, confirm, dead, made

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> MemoryStore:
    """Three model calls of 15 tokens: moments 2, 4 and 6; two executions: 3 and 5."""
    store = MemoryStore()
    result = await made(store, call("add", a=1), [call("add", a=2), call("add", a="x")], "done").run("x", thread_id="t")
    assert result.stop_reason == "NoToolCalls"
    return store


def where(found: WhatIf) -> tuple[str, int | None, str, int]:
    return found.verdict, found.n, found.reason, found.usage.total_tokens


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (MaxIterations(1), ("earlier", 3, "MaxIterations", 15)),
        (MaxIterations(2), ("earlier", 5, "MaxIterations", 30)),
        (MaxIterations(3), ("same", 6, "NoToolCalls", 45)),
        (MaxIterations(4), ("same", 6, "NoToolCalls", 45)),
        (TokenLimit(0), ("earlier", 2, "TokenLimit", 15)),
        (TokenLimit(15), ("earlier", 4, "TokenLimit", 30)),
        (ToolCalled("add"), ("earlier", 3, "ToolCalled", 15)),
        (ToolCalled("confirm"), ("same", 6, "NoToolCalls", 45)),
        (MaxIterations(2) & TokenLimit(100), ("same", 6, "NoToolCalls", 45)),
    ],
)
async def test_another_condition(store: MemoryStore, condition: Any, wanted: Any) -> None:
    found = await what_if(dead(store), "t", termination=condition)
    assert where(found) == wanted
    assert found.usage + found.saved == Usage(prompt_tokens=30, completion_tokens=15)
    # What the journal says by itself is what the agent says.
    assert await what_if(store, "t", termination=condition) == found
    # And what a run under that condition does.
    other = MemoryStore()
    agent = made(other, call("add", a=1), [call("add", a=2), call("add", a="x")], "done")
    real = await agent.run("x", thread_id="t", termination=condition)
    assert (real.stop_reason, real.usage.total_tokens) == (found.reason, found.usage.total_tokens)
    assert real.satisfied == found.satisfied


async def test_the_agents_own_condition_is_asked_when_no_other_is_given(store: MemoryStore) -> None:
    found = await what_if(dead(store), "t")
    assert where(found) == ("same", 6, "NoToolCalls", 45)
    assert (found.node, found.iteration, found.before_call, found.saved) == ("think", 2, False, Usage())
    tighter = await what_if(dead(store, max_iterations=1), "t")
    assert where(tighter) == ("earlier", 3, "MaxIterations", 15)
    looser = await what_if(dead(store, stop_on_text=False), "t")
    assert where(looser) == ("beyond", None, "think", 45)


async def test_an_answer_ends_a_run_where_it_ends_the_agents(store: MemoryStore) -> None:
    found = await what_if(dead(store, stop_on_text=False), "t", termination=MaxIterations(9))
    assert where(found) == ("beyond", None, "think", 45)


async def test_a_looser_limit_leads_beyond_the_record() -> None:
    store = MemoryStore()
    agent = made(store, call("add", a=1), call("add", a=2), max_iterations=2)
    assert (await agent.run("x", thread_id="t")).stop_reason == "MaxIterations"
    found = await what_if(dead(store, max_iterations=2), "t", termination=MaxIterations(5))
    assert where(found) == ("beyond", None, "think", 30)
    assert "beyond the record" in str(found)


async def test_terminal_tools_stay_terminal() -> None:
    store = MemoryStore()
    options: Any = {"terminal_tools": ["add"]}
    await made(store, call("add", a=1), **options).run("x", thread_id="t")
    found = await what_if(dead(store, **options), "t", termination=MaxIterations(9))
    assert where(found) == ("same", 3, "ToolCalled", 15)


async def test_a_run_that_waits_would_have_gone_on_waiting() -> None:
    store = MemoryStore()
    await made(store, call("add", a=1), call("confirm", what="go")).run("x", thread_id="t")
    agent = dead(store)
    assert where(await what_if(agent, "t", termination=MaxIterations(9))) == ("beyond", None, "execute", 30)
    assert where(await what_if(agent, "t", termination=MaxIterations(1))) == (
        "earlier",
        3,
        "MaxIterations",
        15,
    )


async def test_an_end_that_no_condition_gave_stays() -> None:
    store = MemoryStore()
    await made(store, call("add", a=1), ModelError("gone")).run("x", thread_id="failed")
    agent = made(store, call("add", a=1), "done")
    run = agent.run("x", thread_id="cancelled")
    async for event in run:
        if event.type == "tool_start":
            run.cancel("enough")
    for thread, n, reason in (("failed", 4, "ModelError"), ("cancelled", 3, "Cancelled: enough")):
        found = await what_if(dead(store), thread, termination=MaxIterations(9))
        assert where(found)[:3] == ("same", n, reason)
        earlier = await what_if(dead(store), thread, termination=TokenLimit(0))
        assert where(earlier)[:3] == ("earlier", 2, "TokenLimit")


async def test_time_is_that_of_the_record() -> None:
    store, clock = MemoryStore(), FakeClock()

    class Slow(Hook):
        def on_event(self, event: Event) -> None:
            if event.type == "tool_start":
                clock.advance(10)

    script = [call("add", a=1), call("add", a=2), "done"]
    await made(store, *script, clock=clock, hooks=[Slow()]).run("x", thread_id="t")
    for seconds, n, before_call in ((0.0, 2, True), (5.0, 4, True), (15.0, 6, True)):
        found = await what_if(dead(store), "t", termination=TimeLimit(seconds) | MaxIterations(9))
        assert (found.n, found.before_call, found.reason) == (n, before_call, "TimeLimit")
    limit = TimeLimit(5.0) | MaxIterations(9)
    agent = made(store, *script, clock=clock, hooks=[Slow()], termination=limit)
    real = await agent.run("x", thread_id="u")
    found = await what_if(agent, "t")
    assert (real.stop_reason, real.usage) == (found.reason, found.usage)
    # The start event used the time up: the body was not entered, and the tools were the last node.
    assert where(await what_if(agent, "u"))[:3] == ("same", 3, "TimeLimit")
    # Where the time was over before the call, another rule would have called.
    assert where(await what_if(agent, "u", termination=MaxIterations(9)))[:3] == ("beyond", None, "think")


async def test_another_router(store: MemoryStore) -> None:
    agent = dead(store)
    same = await what_if(agent, "t", router=agent.runtime.router)
    assert where(same) == ("same", 6, "NoToolCalls", 45)
    reflecting = Router(agent.condition, EveryIterations(1))
    found = await what_if(agent, "t", router=reflecting)
    assert where(found) == ("diverged", 3, "reflect", 15)
    assert "would have gone to reflect" in str(found)

    def impatient(node: Node, state: AgentState) -> Route:
        if len(state.tool_executions) > 1:
            return Route(Node.TERMINATE, "two calls are enough")
        return agent.runtime.router(node, state)

    found = await what_if(agent, "t", router=impatient)
    assert where(found) == ("earlier", 5, "two calls are enough", 30)


async def test_a_diverted_route_is_followed() -> None:
    class Divert(Hook):
        @hookimpl
        def locus_decide_route(self, node: str) -> str | None:
            return "reflect" if node == "execute" else None

    store = MemoryStore()
    agent = made(store, call("add", a=1), "2", hooks=[Divert()])
    await agent.run("x", thread_id="t")
    assert where(await what_if(agent, "t"))[:3] == ("same", 5, "NoToolCalls")
    assert where(await what_if(agent, "t", termination=MaxIterations(1)))[:3] == (
        "earlier",
        4,
        "MaxIterations",
    )


async def test_a_rule_that_fails_stops_there(store: MemoryStore) -> None:
    def picky(state: AgentState) -> bool:
        if state.tool_executions:
            raise LookupError("no idea")
        return False

    found = await what_if(dead(store), "t", termination=CustomCondition(picky) | MaxIterations(9))
    assert where(found) == ("earlier", 3, "ConditionError", 15)


async def test_any_run_of_a_thread_can_be_asked_about(store: MemoryStore) -> None:
    agent = made(store, "hello")
    first = (await history(agent, "t"))[0].run_id
    second = await agent.run("hi", thread_id="t")
    assert where(await what_if(agent, "t")) == ("same", 9, "NoToolCalls", 15)
    assert (await what_if(agent, "t")).run_id == second.run_id
    found = await what_if(agent, "t", termination=MaxIterations(1), run_id=first)
    assert (*where(found), found.run_id) == ("earlier", 3, "MaxIterations", 15, first)
    with pytest.raises(JournalError, match="has no run 'nobody'"):
        await what_if(agent, "t", run_id="nobody")


async def test_a_fork_is_one_run_with_its_beginning(store: MemoryStore) -> None:
    agent = made(store, "another end")
    origin = (await history(agent, "t"))[0].run_id
    parted = await fork(agent, "t", at=3)
    result = await agent.resume(parted)
    for run_id in (None, origin, result.run_id):
        found = await what_if(agent, parted, termination=MaxIterations(1), run_id=run_id)
        assert where(found) == ("earlier", 3, "MaxIterations", 15)
        assert found.saved.total_tokens == 15
        assert found.run_id == result.run_id


async def test_a_seed_that_is_over_already_is_stopped_before_the_first_call() -> None:
    store = MemoryStore()
    seed = AgentState(messages=[Message(Role.USER, "x")], prompt_tokens_used=100)
    await made(store, "done").run(seed, thread_id="t")
    found = await what_if(dead(store), "t", termination=TokenLimit(50))
    assert (*where(found), found.before_call) == ("earlier", 2, "TokenLimit", 100, True)
    assert found.saved.total_tokens == 15
    assert str(found) == (
        "it would have stopped before the model call of transition 2 (think, iteration 1): TokenLimit; 15 tokens saved"
    )


async def test_a_rule_must_be_given_and_be_one(store: MemoryStore) -> None:
    agent = dead(store)
    with pytest.raises(ConfigError, match="either termination"):
        await what_if(agent, "t", termination=MaxIterations(1), router=agent.runtime.router)
    with pytest.raises(ConfigError, match="either termination"):
        await what_if(store, "t")
    with pytest.raises(ConfigError, match="termination is 3"):
        await what_if(agent, "t", termination=3)  # type: ignore[arg-type]
    with pytest.raises(NothingToResume):
        await what_if(agent, "nowhere")
    with pytest.raises(JournalError, match="no history"):
        await what_if(dead(MemoryStore(history=False)), "t")


async def test_dollars_are_reported() -> None:
    @tool
    def noop() -> None:
        """Nothing."""

    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "2", price=Price(prompt=1000.0, completion=1000.0))
    agent = made(store, "x", tools=[add, confirm, noop])
    priced = type(agent)(model, tools=[add, confirm, noop], checkpointer=store)
    await priced.run("x", thread_id="t")
    found = await what_if(priced, "t", termination=MaxIterations(1))
    assert found.cost == pytest.approx(0.015)
    assert found.saved.cost == pytest.approx(0.015)
    assert "15 tokens, $0.015 saved" in str(found)
