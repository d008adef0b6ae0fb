"""Deciders in a run: each call on its own, the strictest answer wins, and whoever cannot say objects."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.loop.hook_kit import WAYS, failures, wrong
from tests.loop.kit import Recorder, add, answers, assert_valid_history, bodies, confirm, kinds, of, results

from locus import (
    Agent,
    Allow,
    Cancel,
    Continue,
    Decision,
    Hook,
    HookFailedEvent,
    Interrupt,
    InterruptEvent,
    Option,
    Reject,
    Retry,
    ToolCompleteEvent,
    ToolStartEvent,
    tool,
)
from locus.core.messages import ToolCall
from locus.core.termination import ToolCalled
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

YES_OR_NO = (Option("yes", allow=True), Option("no"))


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    bodies.clear()


class Decider(Hook):
    """Answers calls by the value of their argument ``a``, and notes what it was asked."""

    def __init__(self, **by_argument: Decision) -> None:
        self.by_argument, self.asked = by_argument, []  # type: ignore[var-annotated]

    async def on_tool_call(self, call: ToolCall) -> Decision | None:
        self.asked.append(call.arguments.get("a"))
        return self.by_argument.get(f"a{call.arguments.get('a')}")


async def test_each_call_of_a_turn_is_decided_on_its_own() -> None:
    decider, recorder = Decider(a1=Allow(), a2=Reject("two is too many")), Recorder()
    turn = [call("add", a=1), call("add", a=2), call("add", a=3)]
    result = await Agent(ScriptedModel(turn, "done"), tools=[add], hooks=[decider, recorder]).run("x")
    assert sorted(decider.asked) == [1, 2, 3]
    assert results(result) == ["2", "Error: Rejected: two is too many", "4"]
    assert [r.is_error for r in answers(result.state)] == [False, True, False]
    assert bodies["add"] == 2
    assert {e.arguments["a"] for e in of(recorder.events, ToolStartEvent)} == {1, 3}
    assert {e.arguments["a"] for e in of(recorder.events, ToolCompleteEvent)} == {1, 2, 3}


async def test_a_call_is_decided_before_anybody_hears_that_it_starts() -> None:
    order: list[str] = []

    class Watch(Hook):
        def on_tool_call(self, call: ToolCall) -> None:
            order.append("decide")

        def on_tool_start(self, event: ToolStartEvent) -> None:
            order.append("start")

        def on_tool_complete(self, event: ToolCompleteEvent) -> None:
            order.append("complete")

    await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Watch()]).run("x")
    assert order == ["decide", "start", "complete"]


async def test_a_decider_sees_the_run_and_the_call_as_the_body_gets_it() -> None:
    seen: list[Any] = []

    class Look:
        @hookimpl
        def locus_decide_tool_call(self, run: RunContext, call: ToolCall) -> None:
            seen.append((run.thread_id, run.deps, call.id, call.name, dict(call.arguments)))
            seen.append(dict(run.state.unanswered[0].arguments))

    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Look()])
    await agent.run("x", thread_id="t", deps="d")
    assert seen == [("t", "d", "call_1_1", "add", {"a": 1, "b": 1}), {"a": 1}]


async def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    decider = Decider()
    turn = [call("nothing"), call("add", a="x"), call("add", a=1)]
    result = await Agent(ScriptedModel(turn, "done"), tools=[add], hooks=[decider]).run("x")
    assert decider.asked == [1]
    assert len(results(result)) == 3


async def test_a_cached_result_needs_no_decision() -> None:
    @tool(idempotent=True)
    async def book(room: str) -> str:
        """Books."""
        bodies["book"] += 1
        return f"booked {room}"

    asked: list[str] = []

    class Ask(Hook):
        def on_tool_call(self, call: ToolCall) -> None:
            asked.append(call.name)

    model = ScriptedModel(call("book", room="a"), call("book", room="a"), "done")
    result = await Agent(model, tools=[book], hooks=[Ask()]).run("x")
    assert results(result) == ["booked a", "booked a"]
    assert (asked, bodies["book"]) == (["book"], 1)


async def test_the_strictest_of_several_deciders_wins_for_each_call() -> None:
    hooks = [
        Decider(a1=Allow(), a2=Reject("no"), a3=Interrupt("Three?"), a4=Cancel("four")),
        Decider(a1=Reject("first"), a2=Interrupt("Two?"), a3=Allow(), a4=Interrupt("Four?")),
        Decider(a1=Reject("second")),
    ]
    turn = [call("add", a=1), call("add", a=2), call("add", a=3)]
    asked = await Agent(ScriptedModel(turn, "done"), tools=[add], hooks=hooks).run("x")
    # Nobody is asked about what another decider rejects: the answer would overrule a rejection that was not shown.
    assert {q.question for q in asked.interrupts} == {"Three?"}
    assert bodies["add"] == 0

    result = await Agent(ScriptedModel(call("add", a=4), "done"), tools=[add], hooks=hooks).run("x")
    assert result.stop_reason == "Cancelled: four"

    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert results(result) == ["Error: Rejected: first"]


async def test_what_several_deciders_ask_about_a_call_is_one_question_with_every_reason() -> None:
    yes = (Option("yes", allow=True), Option("no"))
    hooks = [
        Decider(a1=Interrupt("Dear?")),
        Decider(a1=Allow()),
        Decider(a1=Interrupt("Risky?", yes)),
        Decider(a1=Interrupt("Late?", (Option("go", allow=True),))),
    ]
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks)
    (question,) = (asked := await agent.run("x")).interrupts
    assert question.question == "Dear?\nRisky?\nLate?"
    assert question.options == yes
    assert bodies["add"] == 0
    assert results(await agent.resume(asked, "yes")) == ["2"]


async def test_a_rejected_call_was_not_called() -> None:
    agent = Agent(
        ScriptedModel(call("add", a=1), "done"),
        tools=[add],
        hooks=[Decider(a1=Reject())],
        termination=ToolCalled("add"),
        max_iterations=5,
    )
    result = await agent.run("x")
    assert result.stop_reason == "NoToolCalls"
    [execution] = result.state.tool_executions
    assert (execution.started, execution.succeeded) == (False, False)


async def test_the_model_may_do_better_after_a_rejection() -> None:
    model = ScriptedModel(call("add", a=2), call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[Decider(a2=Reject("use 1"))]).run("x")
    assert results(result) == ["Error: Rejected: use 1", "2"]
    assert model.requests[1].messages[-1].tool_results[0].is_error


# -- asking a person ----------------------------------------------------------------------------------


async def test_siblings_of_a_call_that_a_person_is_asked_about_run_once() -> None:
    recorder = Recorder()
    turn = [call("add", a=1), call("add", a=2), call("confirm", what="pay")]
    agent = Agent(
        ScriptedModel(turn, "done"),
        tools=[add, confirm],
        hooks=[Decider(a2=Interrupt("Two?", YES_OR_NO)), recorder],
    )
    asked = await agent.run("x")
    questions = {q.question: q for q in asked.interrupts}
    assert set(questions) == {"Two?", "Shall I pay?"}
    assert questions["Two?"].options == YES_OR_NO
    assert [e.question for e in of(recorder.events, InterruptEvent)] == [q.question for q in asked.interrupts]
    assert bodies == {"add": 1, "confirm": 1}

    ids = {q.interrupt_id: "yes" for q in asked.interrupts}
    result = await agent.resume(asked, ids)
    assert results(result) == ["2", "3", "pay: yes"]
    assert bodies == {"add": 2, "confirm": 2}


async def test_a_call_may_need_a_persons_consent_and_then_ask_by_itself() -> None:
    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt(f"May I {call.name}?")

    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm], hooks=[Careful()])
    first = await agent.run("x")
    assert [q.question for q in first.interrupts] == ["May I confirm?"]
    assert bodies["confirm"] == 0
    second = await agent.resume(first, "allow")
    assert [q.question for q in second.interrupts] == ["Shall I pay?"]
    result = await agent.resume(second, "with pleasure")
    assert results(result) == ["pay: with pleasure"]


async def test_a_rejection_after_the_consent_still_counts() -> None:
    class Once(Hook):
        asked = 0

        def on_tool_call(self, call: ToolCall) -> Decision:
            self.asked += 1
            return Interrupt("May I?") if self.asked == 1 else Reject("the shop has closed")

    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Once()])
    result = await agent.resume(await agent.run("x"), "allow")
    assert results(result) == ["Error: Rejected: the shop has closed"]
    assert bodies["add"] == 0


ADDING = (Option("allow", allow=True), Option("no", takes="reason"), Option("edit", allow=True, takes="arguments"))


class AsksWithAdditions(Hook):
    """Asks about each call; a person may add a reason, or give other arguments."""

    def on_tool_call(self, call: ToolCall) -> Interrupt:
        return Interrupt(f"May I {call.name}({dict(call.arguments)})?", ADDING)


async def test_a_person_may_give_other_arguments_and_the_call_runs_and_is_recorded_with_these() -> None:
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[AsksWithAdditions()])
    result = await agent.resume(await agent.run("x"), {"arguments": {"a": 5}})
    (execution,) = result.state.tool_executions
    assert execution.arguments["a"] == 5
    assert execution.answer == {"arguments": {"a": 5}}
    assert results(result) == ['[A person changed the arguments of this call to {"a": 5, "b": 1}]\n6']
    assert bodies["add"] == 1


async def test_arguments_of_a_person_that_do_not_fit_are_asked_for_again() -> None:
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[AsksWithAdditions()])
    again = await agent.resume(await agent.run("x"), {"arguments": {"a": "many"}})
    assert "The arguments that you gave do not fit" in again.interrupts[0].question
    assert bodies["add"] == 0
    result = await agent.resume(again, {"reason": "never mind"})
    assert results(result) == ["Error: Rejected: a person refused this call: never mind"]


# -- ending the run -----------------------------------------------------------------------------------


async def test_a_decider_that_ends_the_run_lets_what_is_under_way_finish_and_starts_nothing() -> None:
    entered, decided = anyio.Event(), anyio.Event()

    @tool
    async def slow() -> str:
        """Is under way when the run is cancelled."""
        entered.set()
        await decided.wait()
        return "finished"

    class Stop(Hook):
        async def on_tool_call(self, call: ToolCall) -> Cancel | None:
            if call.name != "add":
                return None
            await entered.wait()
            decided.set()
            return Cancel("enough")

    model = ScriptedModel([call("slow"), call("add", a=1)], "never")
    with anyio.fail_after(5):
        result = await Agent(model, tools=[slow, add], hooks=[Stop()]).run("x")
    assert result.stop_reason == "Cancelled: enough"
    assert results(result) == ["finished", "Error: not run: Cancelled: enough"]
    assert bodies["add"] == 0
    assert_valid_history(result.state.messages)


# -- failing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [how for how in WAYS if not how.startswith("asks")])
async def test_a_decider_that_goes_wrong_rejects_each_call_it_was_asked_about(how: str) -> None:
    bad, recorder = wrong(how, "locus_decide_tool_call"), Recorder()
    turn = [call("add", a=1), call("add", a=2)]
    model = ScriptedModel(turn, turn, "done")
    result = await Agent(model, tools=[add], hooks=[bad, recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    assert results(result) == ["Error: Rejected: plugin_error: 'bad' failed while it decided about this call"] * 4
    assert bodies["add"] == 0
    assert bad.calls == 4  # out of quarantine: it decides, and nothing may slip through
    assert [(e.plugin, e.quarantined) for e in of(recorder.events, HookFailedEvent)] == [("bad", False)] * 4
    [failure] = failures(result)
    assert (failure.hook, failure.count, failure.quarantined) == ("locus_decide_tool_call", 4, False)


@pytest.mark.parametrize("nonsense", ["yes", True, Retry(), Allow])
async def test_what_is_not_a_decision_rejects_the_call(nonsense: Any) -> None:
    bad = wrong("nonsense", "locus_decide_tool_call", nonsense=nonsense)
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[bad]).run("x")
    assert results(result) == ["Error: Rejected: plugin_error: 'bad' failed while it decided about this call"]


@pytest.mark.parametrize("answer", [None, Allow(), Continue()])
async def test_a_call_that_nobody_objects_to_runs(answer: Any) -> None:
    agrees = wrong("nonsense sync", "locus_decide_tool_call", nonsense=answer)
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[agrees]).run("x")
    assert (results(result), failures(result)) == (["2"], ())


@pytest.mark.parametrize("how", ["asks", "asks sync"])
async def test_a_decider_that_raises_its_question_has_asked_it(how: str) -> None:
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[wrong(how, "locus_decide_tool_call")])
    asked = await agent.run("x")
    assert [q.question for q in asked.interrupts] == ["May I?"]
    result = await agent.resume(asked, "allow")
    assert results(result) == ["2"]
    assert failures(result) == ()


@pytest.mark.parametrize("how", ["raises", "hangs", "nonsense sync"])
async def test_siblings_of_a_call_whose_decision_failed_run(how: str) -> None:
    class Half(Hook):
        name = "half"
        hook_timeout = 0.01

        @hookimpl
        async def locus_decide_tool_call(self, call: ToolCall) -> Any:
            if call.arguments["a"] != 2:
                return None
            answer: Any = broken.locus_decide_tool_call()  # type: ignore[attr-defined]
            return await answer if hasattr(answer, "__await__") else answer

    broken = wrong(how, "locus_decide_tool_call")
    turn = [call("add", a=1), call("add", a=2), call("add", a=3)]
    with anyio.fail_after(5):
        result = await Agent(ScriptedModel(turn, "done"), tools=[add], hooks=[Half()]).run("x")
    first, second, third = results(result)
    assert (first, third) == ("2", "4")
    assert second.startswith("Error: Rejected: plugin_error: 'half'")


async def test_a_failed_decision_does_not_soften_a_cancel() -> None:
    hooks = [wrong("raises", "locus_decide_tool_call"), Decider(a1=Cancel("stop"))]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert result.stop_reason == "Cancelled: stop"


async def test_a_decider_that_no_caller_can_wait_for_ends_with_its_caller() -> None:
    begun, recorder = anyio.Event(), Recorder()

    class Hangs(Hook):
        async def on_tool_call(self, call: ToolCall) -> None:
            begun.set()
            await anyio.sleep_forever()

    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Hangs(), recorder])

    async def run() -> None:
        await agent.run("x")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            group.cancel_scope.cancel()
    assert kinds(recorder.events)[-1] == "terminate"
    assert "hook_failed" not in kinds(recorder.events)
    assert bodies["add"] == 0
