"""Wherever a cancel comes, from whom and with what as its reason: one end says Cancelled, unless it was decided."""

from __future__ import annotations

import threading
from typing import Any

import anyio.to_thread
import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, confirm, kinds, of, results

from locus import (
    Agent,
    AgentResult,
    Cancel,
    CheckpointEvent,
    Event,
    Hook,
    InterruptEvent,
    Message,
    TerminateEvent,
    ToolCompleteEvent,
    ToolStartEvent,
    tool,
)
from locus.core.directives import Accept
from locus.core.errors import NothingToResume
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

#: What may be given as a reason, and what the end says then.
REASONS: list[tuple[Any, str]] = [
    (None, "Cancelled"),
    ("", "Cancelled"),
    ("enough", "Cancelled: enough"),
    (0, "Cancelled: 0"),
    (False, "Cancelled: False"),
    (ValueError("too late"), "Cancelled: too late"),
]

#: Who cancels.
WAYS = ("directive", "context", "agent", "thread", "handle")


class CancelAt(Hook):
    """Cancels the run at its n-th event, or at none; keeps all events."""

    def __init__(self, n: int, way: str, reason: Any) -> None:
        self.n, self.way, self.reason = n, way, reason
        self.events: list[Event] = []
        self.agent: Agent[Any, Any]
        self.run: Any = None

    async def on_event(self, event: Event, run: RunContext) -> Cancel | None:
        self.events.append(event)
        if len(self.events) != self.n:
            return None
        match self.way:
            case "directive":
                return Cancel(self.reason)
            case "context":
                run.cancel(self.reason)
            case "agent":
                assert self.agent.cancel(self.reason) == 1
            case "thread":
                other = threading.Thread(target=self.agent.cancel, args=(self.reason,))
                other.start()
                await anyio.to_thread.run_sync(other.join)
            case "handle":
                self.run.cancel(self.reason)
        return None


def program(*hooks: Hook, asks: bool, store: MemoryStore | None) -> Agent[Any, str]:
    """A run of three calls of the model, or one that ends with a question beside another call."""
    turn = [call("add", a=1), call("confirm", what="pay") if asks else call("add", a=2)]
    model = ScriptedModel(script=lambda request: [turn, call("add", a=3), "done"])
    return Agent[Any, str](model, tools=[add, confirm], hooks=hooks, checkpointer=store)


async def cancelled_at(n: int, way: str, reason: Any, *, asks: bool, kept: bool) -> tuple[CancelAt, AgentResult[Any]]:
    hook = CancelAt(n, way, reason)
    hook.agent = program(hook, asks=asks, store=MemoryStore() if kept else None)
    hook.run = hook.agent.run("x", thread_id="t")
    return hook, await hook.run


def end_decided(events: list[Event]) -> int:
    """The number of the first event after which a cancel comes too late: the run's end is on record, or told."""
    for n, event in enumerate(events, 1):
        if isinstance(event, TerminateEvent) or (
            isinstance(event, CheckpointEvent) and event.next_node in ("terminate", "end")
        ):
            return n
    raise AssertionError("a run without an end")


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("asks", [False, True], ids=["answers", "asks"])
@pytest.mark.parametrize("way", WAYS)
async def test_wherever_a_cancel_comes_one_end_says_so(way: str, asks: bool, kept: bool) -> None:
    whole, before = await cancelled_at(0, way, None, asks=asks, kept=kept)
    assert before.stop_reason == ("Interrupted" if asks else "NoToolCalls")
    decided = end_decided(whole.events)
    for n in range(1, len(whole.events) + 1):
        reason, expected = REASONS[n % len(REASONS)]
        hook, result = await cancelled_at(n, way, reason, asks=asks, kept=kept)
        ends = of(hook.events, TerminateEvent)
        assert len(ends) == 1, (n, kinds(hook.events))
        assert hook.events[-1] is ends[0]
        assert result.stop_reason == ends[0].reason
        if n < decided:
            assert ends[0].reason == expected, (n, kinds(hook.events)[:n])
            assert not result.interrupts
            assert_valid_history(result.state.messages)
            if kept:
                with pytest.raises(NothingToResume):
                    await program(asks=asks, store=hook.agent.runtime.store).resume("t", "yes")  # type: ignore[arg-type]
        else:
            assert ends[0].reason == before.stop_reason


@pytest.mark.parametrize(("reason", "expected"), REASONS)
async def test_whatever_is_given_as_the_reason_the_caller_s_cancel_counts(reason: Any, expected: str) -> None:
    run = program(asks=False, store=None).run("x")
    run.cancel(reason)
    assert (await run).stop_reason == expected


class Says(Hook):
    """Answers one question of the loop with a cancel."""

    def __init__(self, where: str, reason: Any) -> None:
        self.where, self.cancel = where, Cancel(reason)

    @hookimpl
    def locus_filter_input(self, prompt: Message) -> Cancel | None:
        return self.cancel if self.where == "filter" else None

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall) -> Cancel | None:
        return self.cancel if self.where == "decide" else None

    @hookimpl
    def locus_review_answer(self, answer: Message) -> Cancel | Accept | None:
        return self.cancel if self.where == "review" else None


@pytest.mark.parametrize("where", ["filter", "decide", "review"])
@pytest.mark.parametrize(("reason", "expected"), REASONS[:3])
async def test_a_hook_that_is_asked_may_cancel_without_a_reason(where: str, reason: Any, expected: str) -> None:
    result = await program(Says(where, reason), asks=False, store=None).run("x")
    assert result.stop_reason == expected


class CancelOn(Hook):
    """Cancels on events of a kind, without a reason."""

    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind

    def on_event(self, event: Event) -> Cancel | None:
        return Cancel(reason=None) if isinstance(event, self.kind) else None


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", [InterruptEvent, ToolCompleteEvent])
async def test_a_cancel_beside_an_open_question_keeps_what_the_other_call_came_to(
    kind: type[Event], kept: bool
) -> None:
    entered: list[str] = []

    @tool
    async def pay(amount: int) -> str:
        """May happen once only."""
        entered.append("pay")
        return f"paid {amount}"

    store, recorder = MemoryStore() if kept else None, Recorder()
    model = ScriptedModel([call("pay", amount=3), call("confirm", what="send")], "next")
    agent = Agent(
        model, tools=[pay, confirm], hooks=[CancelOn(kind), recorder], checkpointer=store, tool_execution="sequential"
    )
    result = await agent.run("x", thread_id="t")
    assert result.stop_reason == "Cancelled"
    assert results(result) == ["paid 3", "Error: not run: Cancelled"]
    assert entered == ["pay"]
    assert [e.tool_name for e in result.state.tool_executions] == ["pay"]
    assert len(of(recorder.events, TerminateEvent)) == 1
    assert len(of(recorder.events, InterruptEvent)) == (kind is InterruptEvent)
    if store is not None:
        again = await Agent(ScriptedModel("hello"), checkpointer=store).run("and now?", thread_id="t")
        assert again.message == "hello"
        assert_valid_history(again.state.messages)


async def test_a_cancel_counts_although_the_node_fails_afterwards() -> None:
    class Broken(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> Cancel:
            return Cancel("enough")

        @hookimpl
        async def locus_execute(self, state: Any, run: RunContext) -> Any:
            run.cancel()
            raise ValueError("defect")

    result = await program(Broken(), asks=False, store=None).run("x")
    assert result.stop_reason == "Cancelled"
    assert any("defect" in error for error in result.state.errors)
