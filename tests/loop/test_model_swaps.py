"""A wrapper that has another model answer: who is asked, what it is sent, what is charged."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from locus import Agent, Hook, Message, Role, Usage, tool
from locus.core.errors import ModelError, is_transient
from locus.core.events import Event, ModelCompleteEvent, ModelErrorEvent
from locus.core.messages import RawBlock, TextBlock, ThinkingBlock, ToolCall
from locus.models import Price, get_writer, make_portable, mark_writer
from locus.plugin import hookimpl
from locus_testkit import FakeClock, ScriptedModel, call

pytestmark = pytest.mark.anyio

SIGNED = Message(
    Role.ASSISTANT,
    (
        ThinkingBlock("hm", "signed by acme"),
        RawBlock("acme", {"x": 1}),
        TextBlock("Let me look.", extras={"cited": 1}),
        ToolCall("1", "look", {}, extras={"thought": "signed"}),
    ),
    extras={"id": "acme-1"},
)


@tool
def look() -> str:
    """Look."""
    return "seen"


class Swap(Hook):
    """Has another model answer the calls of some iterations."""

    def __init__(self, other: Any, *when: int) -> None:
        self.other, self.when = other, when
        self.found: list[Any] = []

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any, run: Any) -> Any:
        self.found.append(request.model)
        if run.state.iteration in self.when:
            return await call_next(evolve(request, model=self.other))
        own = request.model.name
        return await call_next(evolve(request, messages=make_portable(request.messages, own, own=own)))


async def test_a_wrapper_finds_the_runs_model_and_may_have_another_one_answer() -> None:
    own = ScriptedModel(SIGNED, "Done.", name="acme:big", price=Price(prompt=1, completion=1))
    other = ScriptedModel("Mine.", name="zeta:small", price=Price(prompt=1000, completion=1000))
    hook, events = Swap(other, 1), list[Event]()
    run = Agent(own, tools=[look], hooks=[hook]).run("Look.")
    events = [e async for e in run]
    assert hook.found == [own, own]
    assert (len(own.requests), len(other.requests)) == (1, 1)
    assert [e.model for e in events if isinstance(e, ModelCompleteEvent)] == ["acme:big", "zeta:small"]
    assert run.result.cost == pytest.approx(15e-6 + 15e-3)
    assert run.result.text == "Mine."


async def test_another_provider_is_not_sent_what_the_first_one_signed_and_the_history_keeps_it() -> None:
    own, other = ScriptedModel(SIGNED, name="acme:big"), ScriptedModel("Mine.", name="zeta:small")
    result = await Agent(own, tools=[look], hooks=[Swap(other, 1)]).run("Look.")
    sent = other.requests[0].messages[1]
    assert sent == Message(Role.ASSISTANT, (TextBlock("Let me look."), ToolCall("1", "look", {})))
    assert result.state.messages[1] == SIGNED
    assert get_writer(result.state.messages[-1]) == "zeta:small"


async def test_the_runs_own_model_gets_its_turns_verbatim_and_those_of_others_without_what_they_signed() -> None:
    own = ScriptedModel(SIGNED, "Done.", name="acme:big")
    theirs = Message(Role.ASSISTANT, (ThinkingBlock("?", "signed by zeta"), ToolCall("2", "look", {})))
    other = ScriptedModel(theirs, name="zeta:small")
    await Agent(own, tools=[look], hooks=[Swap(other, 1)]).run("Look.")
    sent = [m for m in own.requests[-1].messages if m.role is Role.ASSISTANT]
    assert sent == [SIGNED, Message(Role.ASSISTANT, ToolCall("2", "look", {}))]


async def test_a_model_of_the_same_provider_gets_everything() -> None:
    own, other = ScriptedModel(SIGNED, name="acme:big"), ScriptedModel("Mine.", name="acme:small")
    await Agent(own, tools=[look], hooks=[Swap(other, 1)]).run("Look.")
    assert other.requests[0].messages[1] == SIGNED


async def test_a_failure_of_the_other_model_is_reported_under_its_name() -> None:
    other = ScriptedModel(ModelError("no", status=400), name="zeta:small")
    run = Agent(ScriptedModel(name="acme:big"), hooks=[Swap(other, 0)]).run("Hi.")
    events = [e async for e in run]
    assert [(e.model, e.retryable) for e in events if isinstance(e, ModelErrorEvent)] == [("zeta:small", False)]


async def test_a_name_is_resolved_like_any_other_and_an_unknown_one_is_the_errors_cause() -> None:
    result = await Agent(ScriptedModel("no"), hooks=[Swap("nosuch:model", 0)]).run("Hi.")
    assert result.stop_reason == "ModelError"
    assert "nosuch" in str(result.error)


def test_a_turn_of_nothing_but_reasoning_is_left_out_for_others() -> None:
    turn = Message(Role.ASSISTANT, ThinkingBlock("hm", "s"))
    assert make_portable([turn], "zeta:a", own="acme:b") == ()
    assert make_portable([turn], "acme:a", own="acme:b") == (turn,)
    marked = mark_writer(turn, "zeta:a")
    assert make_portable([marked], "zeta:c", own="acme:b") == (marked,)
    assert make_portable([Message(Role.USER, "u")], "zeta:a", own="acme:b") == (Message(Role.USER, "u"),)


async def test_what_a_failed_call_has_used_is_charged() -> None:
    failed = ModelError("broke off", status=503, usage=Usage(prompt_tokens=7, completion_tokens=2))
    result = await Agent(ScriptedModel(failed)).run("Hi.")
    assert result.usage.total_tokens == 9


@pytest.mark.parametrize(
    ("status", "passes"),
    [(None, False), (400, False), (401, False), (404, False), (422, False), (501, False), (505, False)]
    + [(status, True) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)],
)
def test_whether_a_failure_passes_follows_from_its_status_unless_it_is_said(status: int | None, passes: bool) -> None:
    assert ModelError("x", status=status).retryable is passes
    assert ModelError("x", status=status, retryable=not passes).retryable is not passes


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (OSError(113, "no route"), True),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (ValueError(), False),
    ],
)
def test_failures_of_the_network_pass_and_those_of_this_machine_do_not(error: BaseException, passes: bool) -> None:
    assert is_transient(error) is passes


async def test_hooks_get_the_time_of_the_runs_clock_and_see_a_cancel() -> None:
    clock, seen = FakeClock(), list[Any]()

    class Looks(Hook):
        def on_iteration(self, event: Any, run: Any) -> None:
            seen.append((run.clock is clock, run.cancelled))
            run.cancel("enough")
            seen.append(run.cancelled)

    await Agent(ScriptedModel(call("look")), clock=clock, hooks=[Looks()]).run("Hi.")
    assert seen == [(True, None), "enough"]
