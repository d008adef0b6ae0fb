"""Wherever a run dies it goes on with the plan that it had, and nobody is asked for another."""

from __future__ import annotations

from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, tool
from locus.core.journal import Intent, Outcome
from locus.journal import MemoryStore
from locus_testkit import CrashingStore, ScriptedModel, SimulatedCrash, assert_valid_history, call, every_crash

from .kit import ANSWER, PLAN, Journey, of, plan, purposes, ran, run, step

pytestmark = pytest.mark.anyio


class Tools:
    """Safe to repeat, so that a crash in a body loses no result; one of them fails."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def all(self) -> list[Any]:
        @tool(effect="keyed")
        async def look(at: str) -> str:
            """Look."""
            self.ran.append(at)
            return f"seen {at}"

        @tool(effect="keyed")
        async def fail(how: str) -> str:
            """Fail."""
            raise RuntimeError(how)

        return [look, fail]


FIRST = plan(
    step("a", "look", at="x"),
    step("f", "fail", how="badly"),
    step("b", "look", decide={"at": "what next"}, depends_on=["a"]),
)
SECOND = plan(
    step("pick", None, depends_on=["a"]),
    step("b", "look", decide={"at": "what next"}, depends_on=["a"]),
    step("c", "look", at=of("pick")),
)


def play(request: Any) -> Any:
    """The same answer to the same question, in any process."""
    if request.purpose == "think":
        return "Done."
    if request.purpose == "planning":
        return SECOND if '"why_plan_anew"' in request.messages[1].text else FIRST
    return '{"at": "y"}' if request.output is not None else "z"


#: What is done without a crash: two plans, a thought, a decision, the answer.
CALLS = {"planning": 2, "planning-step": 2, "think": 1}


async def _count_answers(store: CrashingStore, purpose: str) -> int:
    """How many answers to a purpose the journal has."""
    bodies = [entry.body for entry in await store.read("t")]
    return sum(isinstance(body, Intent | Outcome) and body.step_id.purpose == purpose for body in bodies)


async def test_wherever_a_run_dies_it_continues_with_the_same_plan() -> None:
    plain, whole = ScriptedModel(play, after="repeat"), Tools()
    reference, _ = await run(plain, whole.all(), planning=True)
    assert {p: purposes(plain).count(p) for p in CALLS} == CALLS
    for store in every_crash(least=34):
        tools, model, lost = Tools(), ScriptedModel(play, after="repeat"), [0]
        agent = Agent(model, tools=tools.all(), checkpointer=store, planning=True)

        async def between(store: CrashingStore = store, model: ScriptedModel = model, lost: list[int] = lost) -> None:
            lost[0] = len(model.requests) - sum([await _count_answers(store, p) for p in CALLS])

        result = await store.outlive(agent, "Look.", between=between)
        if result is None:
            continue
        assert (result.text, result.stop_reason) == ("Done.", "NoToolCalls")
        assert ran(result) == ran(reference)
        assert_valid_history(result.state.messages)
        report = result.reports["planning"]
        assert (report.plans, report.steps, report.replans, report.how) == (2, 4, 1, "answered")
        asked = {p: purposes(model).count(p) for p in CALLS}
        assert sum(asked.values()) == sum(CALLS.values()) + lost[0], (
            "only an answer that was not written is asked for again"
        )
        assert lost[0] <= (not store.stored)
        (await timetravel.replay(agent, "t")).raise_for_difference()


async def test_a_replay_shows_no_difference() -> None:
    store, model = MemoryStore(), ScriptedModel(PLAN, ANSWER)
    agent = Agent(model, tools=Journey().all(), planning=True, checkpointer=store)
    await agent.run("Plan.", thread_id="t")
    (await timetravel.replay(agent, "t")).raise_for_difference()
    assert len(model.requests) == 2


async def test_a_fork_continues_with_the_plan_that_it_was_made_in() -> None:
    store, model = MemoryStore(), ScriptedModel(PLAN, ANSWER, ANSWER)
    agent = Agent(model, tools=Journey().all(), planning=True, checkpointer=store)
    whole = await agent.run("Plan.", thread_id="t")
    history = await timetravel.history(agent, "t")
    middle = [entry.n for entry in history if entry.node == "execute"][1]
    result = await agent.resume(await timetravel.fork(agent, "t", at=middle))
    assert (result.text, result.run_id != whole.run_id) == (ANSWER, True)
    assert purposes(model) == ["planning", "think", "think"]
    assert ran(result) == ran(whole)
    assert result.reports["planning"] == whole.reports["planning"]


async def test_a_run_that_was_given_up_continues_without_a_plan_after_a_crash() -> None:
    dying = [True]

    @tool(effect="keyed")
    async def work(x: str) -> str:
        """Work."""
        if dying.pop() if dying else False:
            raise SimulatedCrash
        return x

    def script(request: Any) -> Any:
        if request.purpose == "planning":
            return "no plan"
        return "Done." if len(request.messages) > 2 else call("work", x="a")

    store, model = MemoryStore(), ScriptedModel(script, after="repeat")
    agent = Agent(model, tools=[work], planning=True, checkpointer=store)
    with pytest.raises(SimulatedCrash):
        await agent.run("Work.", thread_id="t")
    result = await agent.resume("t")
    assert (result.text, purposes(model)) == ("Done.", ["planning", "planning", "think", "think"])
    assert (result.reports["planning"].how, result.reports["planning"].planner_calls) == ("react", 2)
