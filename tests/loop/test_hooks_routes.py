"""A plugin may take another legal edge; the router's purity, its stops and the history are out of its reach."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loop.hook_kit import WAYS, Crash, failures, wrong
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, of, results

from locus import Agent, AgentState, CheckpointEvent, Hook, HookFailedEvent, TerminateEvent, ThinkEvent
from locus.core.termination import TokenLimit
from locus.journal import MemoryStore
from locus.plugin import hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    bodies.clear()


class Divert(Hook):
    """Goes from one node to another, every time or the first ``times``, and notes what it was asked."""

    name = "divert"

    def __init__(self, node: str, to: Any, times: int = 99) -> None:
        self.node, self.to, self.times = node, to, times
        self.asked: list[tuple[str, str]] = []

    @hookimpl
    async def locus_decide_route(self, node: str, state: AgentState, proposed: str) -> Any:
        self.asked.append((str(node), str(proposed)))
        if node != self.node or self.times == 0:
            return None
        self.times -= 1
        return self.to


class Reflecting(Hook):
    """Reflects when the loop gets there."""

    @hookimpl
    def locus_reflect(self, state: AgentState) -> AgentState:
        return state.with_metadata("reflected", state.metadata.get("reflected", 0) + 1)


class Cadence(Hook):
    """Wants to reflect after every iteration."""

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)]


def edges(recorder: Recorder) -> list[str]:
    return [f"{e.node}>{e.next_node}" for e in of(recorder.events, CheckpointEvent)]


async def test_a_route_may_lead_to_reflect_without_a_policy() -> None:
    recorder, divert = Recorder(), Divert("execute", "reflect")
    model = ScriptedModel(call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[divert, Reflecting(), recorder]).run("x")
    assert result.state.metadata["reflected"] == 1
    assert edges(recorder) == [
        "start>think",
        "think>execute",
        "execute>reflect",
        "reflect>think",
        "think>terminate",
        "terminate>end",
    ]
    assert [e.why for e in of(recorder.events, CheckpointEvent)][2] == "instead of think"


async def test_a_route_may_pass_reflect_by() -> None:
    hooks = [Divert("execute", "think"), Reflecting(), Cadence()]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert result.message == "done"
    assert "reflected" not in result.state.metadata


async def test_nobody_is_asked_where_the_run_begins_or_ends() -> None:
    divert = Divert("", None)
    await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[divert]).run("x")
    assert divert.asked == [("think", "execute"), ("execute", "think")]


async def test_a_stop_is_never_diverted() -> None:
    divert = Divert("think", "think")
    model = ScriptedModel("done", "never")
    result = await Agent(model, hooks=[divert]).run("x")
    assert (result.stop_reason, len(model.requests), divert.asked) == ("NoToolCalls", 1, [])

    limited = Agent(
        ScriptedModel(call("add", a=1), "never"),
        tools=[add],
        hooks=[divert],
        termination=TokenLimit(10),
        max_iterations=9,
    )
    assert (await limited.run("x")).stop_reason == "TokenLimit"
    assert divert.asked == []


async def test_a_diversion_to_think_costs_an_iteration_and_is_bound_by_the_limit() -> None:
    divert = Divert("reflect", "think")
    model = ScriptedModel(call("add", a=1), after="repeat")
    agent = Agent(model, tools=[add], hooks=[Divert("execute", "reflect"), divert, Reflecting()], max_iterations=3)
    result = await agent.run("x")
    assert (result.stop_reason, len(model.requests)) == ("MaxIterations", 3)


async def test_a_run_may_be_led_to_its_end_and_its_open_calls_are_answered() -> None:
    recorder = Recorder()
    model = ScriptedModel(call("add", a=1), "never")
    result = await Agent(model, tools=[add], hooks=[Divert("think", "terminate"), recorder]).run("x")
    assert (bodies["add"], len(model.requests)) == (0, 1)
    assert_valid_history(result.state.messages)
    assert len(of(recorder.events, TerminateEvent)) == 1
    assert results(result)[0].startswith("Error: not run: ")
    assert "Cancelled" not in results(result)[0]
    assert "Cancelled" not in result.stop_reason


@pytest.mark.parametrize(
    ("node", "to"),
    [("think", "reflect"), ("think", "think"), ("execute", "execute"), ("execute", "nowhere"), ("execute", "")],
)
async def test_an_unknown_edge_is_not_taken_and_reported(node: str, to: str) -> None:
    recorder = Recorder()
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Divert(node, to), recorder]).run(
        "x"
    )
    assert (result.stop_reason, result.message, results(result)) == ("NoToolCalls", "done", ["2"])
    assert [e.plugin for e in of(recorder.events, HookFailedEvent)] == ["divert"]
    assert f"can follow {node}" in failures(result, "divert")[0].error
    assert_valid_history(result.state.messages)


async def test_an_answer_without_calls_cannot_be_executed() -> None:
    divert = Divert("think", "execute")
    result = await Agent(ScriptedModel("hm", after="repeat"), hooks=[divert], stop_on_text=False, max_iterations=2).run(
        "x"
    )
    assert result.stop_reason == "MaxIterations"
    assert failures(result, "divert")


@pytest.mark.parametrize("how", WAYS)
async def test_an_opinion_that_goes_wrong_leaves_the_route_and_is_out_after_the_third_time(how: str) -> None:
    bad, recorder = wrong(how, "locus_decide_route"), Recorder()
    model = ScriptedModel(call("add", a=1), call("add", a=2), "done")
    result = await Agent(model, tools=[add], hooks=[bad, recorder]).run("x")
    assert (result.stop_reason, results(result)) == ("NoToolCalls", ["2", "3"])
    assert bad.calls == 3
    assert [(e.hook, e.quarantined) for e in of(recorder.events, HookFailedEvent)] == [
        ("locus_decide_route", False),
        ("locus_decide_route", False),
        ("locus_decide_route", True),
    ]
    assert [(f.count, f.quarantined) for f in failures(result)] == [(3, True)]


async def test_the_first_of_two_opinions_wins_and_a_broken_one_does_not_count() -> None:
    hooks = [
        wrong("raises", "locus_decide_route"),
        Divert("execute", "reflect", times=1),
        Divert("execute", "terminate"),
        Reflecting(),
    ]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert (result.message, result.state.metadata["reflected"]) == ("done", 1)


async def test_a_route_that_was_taken_is_on_record_and_nobody_is_asked_again() -> None:
    class Dies(Hook):
        alive = False

        def on_think(self, event: ThinkEvent) -> None:
            return None

        @hookimpl
        def locus_reflect(self, state: AgentState) -> AgentState:
            if not self.alive:
                raise Crash
            return state.with_metadata("reflected", 1)

    divert, dies = Divert("execute", "reflect", times=1), Dies()
    agent = Agent(
        ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[divert, dies], checkpointer=MemoryStore()
    )
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    asked = list(divert.asked)
    dies.alive = True
    result = await agent.resume("t")
    assert (result.message, result.state.metadata["reflected"]) == ("done", 1)
    assert divert.asked == [*asked, ("reflect", "think")]


async def test_nodes_arrive_as_plain_names() -> None:
    seen: list[Any] = []

    class Look:
        @hookimpl
        def locus_decide_route(self, proposed: str, node: str) -> str | None:
            seen.append((node == "think", proposed == "execute", f"{node}>{proposed}"))
            return proposed

    await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Look()]).run("x")
    assert seen == [(True, True, "think>execute"), (False, False, "execute>think")]
