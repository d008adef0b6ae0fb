"""Signals: what becomes of one, wherever it is sent, and that none of them disturbs who sends it."""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
from attrs import fields

from locus import Agent, Hook, ToolContext, tool
from locus.core.events import Event, HookFailedEvent, TerminateEvent, event_from_json, event_to_json
from locus_plugin_signals import SIGNALS, SignalRefusedEvent
from locus_plugin_signals.sender import (
    EV_DEEPAGENT_FS_READ,
    EV_DEEPAGENT_FS_WRITE,
    EV_DEEPAGENT_SUBAGENT_COMPLETED,
    EV_DEEPAGENT_SUBAGENT_SPAWNED,
    EV_DEEPAGENT_TODO_ADDED,
    EV_DEEPAGENT_TODO_COMPLETED,
    EV_RESEARCH_CAUSAL_BUILT,
    EV_RESEARCH_EXECUTE_COMPLETED,
    EV_RESEARCH_EXECUTE_STARTED,
    EV_RESEARCH_GROUNDING_EVALUATED,
    EV_RESEARCH_REGENERATE_COMPLETED,
    EV_RESEARCH_REGENERATE_STARTED,
    EV_RESEARCH_REPLAN,
    EV_RESEARCH_SUMMARIZE_COMPLETED,
    emit,
    emit_sync,
)
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

PAYLOADS: dict[str, dict[str, Any]] = {
    EV_RESEARCH_EXECUTE_STARTED: {"prompt_preview": "why?", "replan": 1},
    EV_RESEARCH_EXECUTE_COMPLETED: {"fact_count": 3},
    EV_RESEARCH_CAUSAL_BUILT: {"node_count": 4, "hypothesis_preview": "rain", "confidence": 0.5},
    EV_RESEARCH_SUMMARIZE_COMPLETED: {"summary_length": 100, "has_structured_output": True},
    EV_RESEARCH_GROUNDING_EVALUATED: {
        "score": 0.75,
        "claims_evaluated": 4,
        "ungrounded_count": 1,
        "requires_replan": False,
    },
    EV_RESEARCH_REGENERATE_STARTED: {"ungrounded_count": 1},
    EV_RESEARCH_REGENERATE_COMPLETED: {"regeneration": 1},
    EV_RESEARCH_REPLAN: {"replan": 2, "ungrounded_count": 1, "prompt_preview": "again"},
    EV_DEEPAGENT_SUBAGENT_SPAWNED: {"subagent_type": "reader", "description_preview": "read", "max_iterations": 10},
    EV_DEEPAGENT_SUBAGENT_COMPLETED: {
        "subagent_type": "reader",
        "output_length": 5,
        "duration_ms": 1.5,
        "success": True,
    },
    EV_DEEPAGENT_TODO_ADDED: {"content": "look", "status": "pending"},
    EV_DEEPAGENT_TODO_COMPLETED: {"content": "look", "status": "completed"},
    EV_DEEPAGENT_FS_WRITE: {"path": "/a", "byte_count": 3},
    EV_DEEPAGENT_FS_READ: {"path": "/a", "byte_count": 3},
}


async def events_of(body: Callable[[], Any], **options: Any) -> list[Event]:
    """The plugin's events, and failures of hooks, of a run whose tool has that body, sync or async."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(call("act"), "Done."), tools=[tool(body, name="act")], **options)
    events = [event async for event in agent.run("Go.")]
    kinds = (*SIGNALS.values(), SignalRefusedEvent, HookFailedEvent)
    assert isinstance(events[-1], TerminateEvent)
    assert events[-1].reason == "NoToolCalls"
    return [event for event in events if isinstance(event, kinds)]


async def send(signal: Any, **payload: Any) -> list[Event]:
    """What becomes of one signal."""

    async def act() -> None:
        await emit(signal, **payload)

    return await events_of(act)


def test_every_signal_is_sent_here() -> None:
    assert PAYLOADS.keys() == SIGNALS.keys()


@pytest.mark.parametrize("signal", PAYLOADS)
async def test_a_signal_becomes_the_event_of_its_name_with_its_payload(signal: str) -> None:
    (event,) = await send(signal, **PAYLOADS[signal])

    assert type(event) is SIGNALS[signal]
    own = {each.name for each in fields(type(event))} - {each.name for each in fields(Event)}
    assert {name: getattr(event, name) for name in own} == PAYLOADS[signal]
    assert event.run_id
    assert event_from_json(event_to_json(event)) == event


@pytest.mark.parametrize(
    ("signal", "field", "length"),
    [
        (EV_RESEARCH_EXECUTE_STARTED, "prompt_preview", 120),
        (EV_RESEARCH_CAUSAL_BUILT, "hypothesis_preview", 120),
        (EV_RESEARCH_REPLAN, "prompt_preview", 120),
        (EV_DEEPAGENT_SUBAGENT_SPAWNED, "description_preview", 200),
    ],
)
async def test_a_preview_is_the_beginning_of_the_text(signal: str, field: str, length: int) -> None:
    text = "\N{EARTH GLOBE EUROPE-AFRICA}" + "x" * 10_000
    (event,) = await send(signal, **PAYLOADS[signal] | {field: text})
    assert getattr(event, field) == text[:length]


@pytest.mark.parametrize(
    ("given", "counted"), [(7, 7), ("", 0), ("aé\N{EARTH GLOBE EUROPE-AFRICA}", 7), (b"\xff\xfe", 2), ("\ud800", 3)]
)
@pytest.mark.parametrize("signal", [EV_DEEPAGENT_FS_WRITE, EV_DEEPAGENT_FS_READ])
async def test_bytes_are_counted_as_bytes_of_utf_8(signal: str, given: Any, counted: int) -> None:
    (event,) = await send(signal, path="/a", byte_count=given)
    assert getattr(event, "byte_count") == counted  # noqa: B009 - of either class


class Evil:
    """Raises whenever it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (EV_DEEPAGENT_FS_READ, {"path": "/a"}, "expected the fields byte_count, path, got path"),
    (EV_DEEPAGENT_FS_READ, {}, "expected the fields byte_count, path, got none"),
    (EV_RESEARCH_REPLAN, {**PAYLOADS[EV_RESEARCH_REPLAN], "more": 1}, "got more, prompt_preview, replan"),
    (EV_DEEPAGENT_FS_READ, {"path": "/a", "byte_count": 1, "seq": 5}, "got byte_count, path, seq"),
    (EV_DEEPAGENT_FS_READ, {"path": 3, "byte_count": 1}, "path must be a str, got 3"),
    (EV_DEEPAGENT_FS_READ, {"path": "/a", "byte_count": -1}, "byte_count must be an int of 0 or more, got -1"),
    (EV_DEEPAGENT_FS_READ, {"path": "/a", "byte_count": None}, "byte_count must be an int of 0 or more, got None"),
    (EV_DEEPAGENT_FS_READ, {"path": "/a", "byte_count": True}, "byte_count must be an int of 0 or more, got True"),
    (EV_DEEPAGENT_FS_READ, {"path": Evil(), "byte_count": 1}, "no repr"),
    (EV_RESEARCH_EXECUTE_STARTED, {"prompt_preview": None, "replan": 0}, "prompt_preview must be a str, got None"),
    (EV_RESEARCH_EXECUTE_COMPLETED, {"fact_count": "3"}, "fact_count must be an int of 0 or more, got '3'"),
    (EV_RESEARCH_CAUSAL_BUILT, {**PAYLOADS[EV_RESEARCH_CAUSAL_BUILT], "confidence": math.nan}, "a finite number"),
    (
        EV_RESEARCH_SUMMARIZE_COMPLETED,
        {"summary_length": 1, "has_structured_output": 1},
        "has_structured_output must be a bool, got 1",
    ),
    ("research.unknown", {"a": 1}, "expected one of the EV_ constants"),
    (None, {}, "expected one of the EV_ constants"),
    ([], {}, "expected one of the EV_ constants"),
    (Evil(), {}, "expected one of the EV_ constants"),
]


@pytest.mark.parametrize(("signal", "payload", "problem"), WRONG)
async def test_a_wrong_signal_is_not_sent_and_an_event_says_why(signal: Any, payload: Any, problem: str) -> None:
    (event,) = await send(signal, **payload)

    assert isinstance(event, SignalRefusedEvent)
    assert problem in event.problem
    assert isinstance(signal, Evil) or event.signal == str(signal)
    assert event_from_json(event_to_json(event)) == event


@pytest.mark.parametrize(("signal", "payload", "problem"), WRONG)
async def test_a_wrong_signal_raises_nowhere(signal: Any, payload: Any, problem: str) -> None:
    await emit(signal, **payload)
    emit_sync(signal, **payload)

    def act() -> None:
        emit_sync(signal, **payload)

    (event,) = await events_of(act)
    assert isinstance(event, SignalRefusedEvent)


@pytest.mark.parametrize("signal", PAYLOADS)
async def test_outside_of_a_run_nothing_happens(signal: str) -> None:
    await emit(signal, **PAYLOADS[signal])
    emit_sync(signal, **PAYLOADS[signal])
    await anyio.to_thread.run_sync(lambda: emit_sync(signal, **PAYLOADS[signal]))


# -- where it is sent --------------------------------------------------------------------------------


def fs_write(number: int) -> dict[str, Any]:
    return {"path": "/a", "byte_count": number}


def numbers(events: list[Event]) -> list[int]:
    assert all(type(event) is SIGNALS[EV_DEEPAGENT_FS_WRITE] for event in events)
    return [getattr(event, "byte_count") for event in events]  # noqa: B009 - of that class


async def test_a_worker_thread_waits_until_it_is_heard() -> None:
    heard: list[int] = []
    before: list[int] = []

    class Listener(Hook):
        async def on_deepagent_fs_write(self, event: Any) -> None:
            await anyio.lowlevel.checkpoint()
            heard.append(event.byte_count)

    def act() -> None:
        for number in range(3):
            emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(number))
            before.append(len(heard))

    assert numbers(await events_of(act, hooks=[Listener()])) == [0, 1, 2]
    assert heard == [0, 1, 2]
    assert before == [1, 2, 3]


async def send_from_thread(number: int) -> None:
    await anyio.to_thread.run_sync(lambda: emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(number)))


async def test_threads_that_a_tool_starts_send_for_its_run() -> None:
    async def act() -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(send_from_thread, number)

    assert sorted(numbers(await events_of(act))) == list(range(8))


async def test_without_awaiting_a_signal_goes_before_the_next_one() -> None:
    async def act() -> None:
        emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(2))
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(3))

    assert numbers(await events_of(act)) == [1, 2, 3]


async def test_with_the_plugin_on_the_agent_a_signal_goes_at_the_end_of_the_node() -> None:
    class Sending(Hook):
        def on_think(self, event: Any) -> None:
            emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(event.iteration))

    async def act() -> None:
        emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(100))

    assert numbers(await events_of(act, hooks=[Sending()], signals=True)) == [1, 100, 2]


async def test_a_plain_thread_in_the_context_of_the_run_keeps_its_signal_for_the_run() -> None:
    async def act() -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(emit_sync, EV_DEEPAGENT_FS_WRITE, **fs_write(1)))
        thread.start()
        thread.join()

    assert numbers(await events_of(act, signals=True)) == [1]


async def test_a_task_that_outlives_its_run_sends_nothing() -> None:
    ended = anyio.Event()
    sent: list[str] = []

    async def late() -> None:
        await ended.wait()
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        sent.append("late")

    async with anyio.create_task_group() as group:

        async def act() -> None:
            group.start_soon(late)

        heard = await events_of(act)
        ended.set()
    assert heard == []
    assert sent == ["late"]


async def test_a_thread_that_was_given_up_is_not_disturbed() -> None:
    entered, go, gone = threading.Event(), threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def slow() -> None:
        entered.set()
        go.wait()
        try:
            emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        except BaseException as e:  # noqa: BLE001 - this is what the test is about
            raised.append(e)
        finally:
            gone.set()

    async def act() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: anyio.to_thread.run_sync(slow, abandon_on_cancel=True))
            await anyio.to_thread.run_sync(entered.wait)
            group.cancel_scope.cancel()
        go.set()
        await anyio.to_thread.run_sync(gone.wait)

    await events_of(act)
    assert gone.is_set()
    assert raised == []


async def test_in_a_child_a_signal_is_of_the_child() -> None:
    async def act() -> None:
        """Act."""
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(2))

    child: Agent[Any, Any] = Agent(ScriptedModel(call("act"), "Done."), tools=[act])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Delegate."""
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        result = await ctx.run_child(child, "Go.")
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(3))
        return str(result.text)

    agent: Agent[Any, Any] = Agent(ScriptedModel(call("delegate"), "Done."), tools=[delegate])
    events = [e async for e in agent.run("Go.") if type(e) is SIGNALS[EV_DEEPAGENT_FS_WRITE]]
    assert numbers(events) == [1, 2, 3]
    parent, inner, again = events
    assert parent.run_id == again.run_id == inner.parent_run_id
    assert inner.run_id != parent.run_id


# -- who listens -------------------------------------------------------------------------------------


async def test_a_listener_that_fails_does_not_disturb_the_sender() -> None:
    class Failing(Hook):
        def on_deepagent_fs_write(self, event: Any) -> None:
            raise RuntimeError("no")

    async def act() -> str:
        await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
        return "fine"

    events = await events_of(act, hooks=[Failing()])
    assert [type(event).__name__ for event in events] == ["DeepagentFsWriteEvent", "HookFailedEvent"]


async def test_a_cancellation_passes_through() -> None:
    class Slow(Hook):
        async def on_deepagent_fs_write(self, event: Any) -> None:
            scope.cancel()
            await anyio.sleep_forever()

    scope = anyio.CancelScope()
    reached: list[str] = []

    async def act() -> None:
        with scope:
            await emit(EV_DEEPAGENT_FS_WRITE, **fs_write(1))
            reached.append("after")

    await events_of(act, hooks=[Slow()])
    assert scope.cancelled_caught
    assert reached == []


async def test_two_runs_at_the_same_time_hear_their_own() -> None:
    found: list[list[int]] = [[], []]

    async def one(which: int) -> None:
        def act() -> None:
            for _ in range(5):
                emit_sync(EV_DEEPAGENT_FS_WRITE, **fs_write(which))

        found[which] = numbers(await events_of(act))

    async with anyio.create_task_group() as group:
        group.start_soon(one, 0)
        group.start_soon(one, 1)
    assert found == [[0] * 5, [1] * 5]
