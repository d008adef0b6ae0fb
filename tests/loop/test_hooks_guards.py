"""Guards in a run: where an ordinary hook would be skipped, a failing guard rejects the call or ends the run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loop.hook_kit import ASYNC_WAYS, WAYS, failures, plugins, wrong
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, kinds, of, results

from locus import (
    Agent,
    AgentState,
    Allow,
    Event,
    Hook,
    HookFailedEvent,
    Message,
    Reject,
    TerminateEvent,
    ToolStartEvent,
)
from locus.core.journal import Transition
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Failing(Hook):
    """A guard that fails at the events of some kinds."""

    guard = True
    name = "door"

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def on_event(self, event: Event) -> None:
        if event.type in self.kinds:
            raise LookupError("no idea")


# -- observers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
async def test_a_guard_that_cannot_watch_an_iteration_keeps_the_model_from_being_asked(how: str) -> None:
    recorder = Recorder()
    model = ScriptedModel()
    guard = wrong(how, "locus_on_iteration", guard=True, name="door")
    result = await Agent(model, hooks=[guard, recorder]).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"
    assert model.requests == ()
    assert [e.plugin for e in of(recorder.events, HookFailedEvent)] == ["door"]
    assert kinds(recorder.events)[-1] == "terminate"


@pytest.mark.parametrize(
    ("kind", "asked", "ran"),
    [
        ("run_start", 0, 0),
        ("iteration", 0, 0),
        ("model_chunk", 1, 0),
        ("model_complete", 1, 0),
        ("think", 1, 0),
        ("tool_start", 1, 0),
        ("tool_complete", 1, 1),
        ("checkpoint", 0, 0),
    ],
)
async def test_wherever_a_watching_guard_fails_the_run_goes_no_further(kind: str, asked: int, ran: int) -> None:
    bodies.clear()
    recorder = Recorder()
    model = ScriptedModel(["Let me see.", call("add", a=1)], "never said", chunks=True)
    result = await Agent(model, tools=[add], hooks=[Failing(kind), recorder]).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"
    assert (len(model.requests), bodies["add"]) == (asked, ran)
    assert_valid_history(result.state.messages)
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled: guard door failed"]


async def test_a_guard_that_fails_at_the_very_end_is_reported_and_the_end_is_kept() -> None:
    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Failing("terminate"), recorder]).run("x")
    assert result.stop_reason == "NoToolCalls"
    assert kinds(recorder.events)[-2:] == ["terminate", "hook_failed"]
    assert [f.count for f in failures(result, "door")] == [1]


async def test_a_failing_guard_beats_what_others_answer() -> None:
    class Refuse(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> Reject:
            return Reject("no")

    result = await Agent(
        ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Refuse(), Failing("tool_start")]
    ).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"


async def test_a_guard_is_asked_every_time_however_often_it_failed() -> None:
    guard = wrong("raises", "locus_decide_tool_call", guard=True, name="door")
    model = ScriptedModel(*[call("add", a=n) for n in range(5)], "done")
    result = await Agent(model, tools=[add], hooks=[guard]).run("x")
    assert guard.calls == 5
    assert result.stop_reason == "NoToolCalls"
    assert [text.startswith("Error: Rejected: plugin_error: 'door'") for text in results(result)] == [True] * 5
    [failure] = failures(result, "door")
    assert (failure.count, failure.quarantined) == (5, False)


# -- deciders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [how for how in WAYS if not how.startswith("asks")])
async def test_a_guard_that_cannot_decide_rejects_that_call_and_the_run_continues(how: str) -> None:
    bodies.clear()
    guard = wrong(how, "locus_decide_tool_call", guard=True, name="door")
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[guard]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    assert results(result) == ["Error: Rejected: plugin_error: 'door' failed while it decided about this call"]
    assert bodies["add"] == 0


# -- prompts and answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
async def test_a_guard_that_cannot_read_the_prompt_keeps_it_out_of_the_run(how: str) -> None:
    store, recorder, model = MemoryStore(), Recorder(), ScriptedModel()
    guard = wrong(how, "locus_filter_input", nonsense=7, guard=True, name="door")
    agent = Agent(model, hooks=[guard, recorder], checkpointer=store)
    result = await agent.run("my card is XYZZY", thread_id="t")
    assert result.stop_reason == "Cancelled: guard door failed"
    assert model.requests == ()
    assert "XYZZY" not in repr(result.state)
    assert "XYZZY" not in repr(await store.read("t"))
    assert "XYZZY" not in repr(recorder.events)


@pytest.mark.parametrize("how", WAYS)
async def test_a_guard_that_cannot_review_an_answer_cancels_the_run(how: str) -> None:
    guard = wrong(how, "locus_review_answer", guard=True, name="door")
    result = await Agent(ScriptedModel("hi"), hooks=[guard]).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"
    assert result.satisfied == ("Cancelled",)


async def test_an_ordinary_reviewer_may_not_overrule_a_failed_guard() -> None:
    class Fine(Hook):
        @hookimpl
        def locus_review_answer(self) -> None:
            return None

    guard = wrong("raises", "locus_review_answer", guard=True, name="door")
    result = await Agent(ScriptedModel("hi"), hooks=[Fine(), guard, Fine()]).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"


# -- routes, wrappers, nodes --------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
async def test_a_guard_that_cannot_say_where_to_go_cancels_the_run(how: str) -> None:
    bodies.clear()
    guard = wrong(how, "locus_decide_route", guard=True, name="door")
    result = await Agent(ScriptedModel(call("add", a=1), "never"), tools=[add], hooks=[guard]).run("x")
    assert result.stop_reason == "Cancelled: guard door failed"
    assert bodies["add"] == 0
    assert_valid_history(result.state.messages)


@pytest.mark.parametrize("how", ASYNC_WAYS)
@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("locus_wrap_model_call", "ModelError"),
        ("locus_wrap_node", "NodeError"),
        ("locus_think", "NodeError"),
    ],
)
async def test_a_guard_around_or_in_place_of_something_lets_nothing_through_when_it_fails(
    hook: str, reason: str, how: str
) -> None:
    recorder, model = Recorder(), ScriptedModel()
    result = await Agent(model, hooks=[wrong(how, hook, guard=True, name="door"), recorder]).run("x")
    assert result.stop_reason == reason
    assert model.requests == ()
    assert len(of(recorder.events, TerminateEvent)) == 1


@pytest.mark.parametrize("how", ASYNC_WAYS)
async def test_a_guard_around_a_tool_lets_no_call_through_when_it_fails(how: str) -> None:
    bodies.clear()
    guard = wrong(how, "locus_wrap_tool_call", guard=True, name="door")
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[guard]).run("x")
    assert (result.stop_reason, bodies["add"]) == ("NoToolCalls", 0)
    [text] = results(result)
    assert text.startswith("Error: ")


# -- the report ---------------------------------------------------------------------------------------


async def test_the_report_tells_a_guard_that_allowed_from_one_that_failed_and_one_that_never_ran() -> None:
    class Door(Hook):
        guard = True

        def on_tool_call(self, call: ToolCall) -> Allow:
            return Allow()

    class Ordinary(Hook):
        def on_tool_call(self, call: ToolCall) -> None:
            return None

    broken = wrong("raises", "locus_decide_tool_call", guard=True, name="broken")
    model = ScriptedModel(call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[Door(), Ordinary(), broken]).run("x")
    seen: dict[str, Any] = {r.name: (r.guard, r.status, len(r.failures)) for r in plugins(result).plugins}
    assert seen == {
        "Door": (True, "active", 0),
        "Ordinary": (False, "active", 0),
        "broken": (True, "active", 1),
    }
    assert plugins(result).of("another") is None


async def test_what_a_guard_refused_is_in_the_journal_as_a_refusal() -> None:
    store = MemoryStore()

    class Door(Hook):
        guard = True

        @hookimpl
        def locus_review_answer(self, answer: Message, state: AgentState) -> None:
            raise LookupError("no idea")

    await Agent(ScriptedModel("hi"), hooks=[Door()], checkpointer=store).run("x", thread_id="t")
    last = [e.body for e in await store.read("t") if isinstance(e.body, Transition)][-1]
    assert (last.why, last.satisfied) == ("Cancelled: guard Door failed", ("Cancelled",))
