"""Observers and deciders: who is heard, what is obeyed, and what happens when one of them fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from locus.core.directives import Accept, Allow, Cancel, Continue, Interrupt, Reject, Retry, Revise
from locus.core.events import (
    Event,
    HookFailedEvent,
    ModelChunkEvent,
    ThinkEvent,
    ToolStartEvent,
)
from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.hooks.dispatch import decide_route, decide_tool_call, notify
from locus.hooks.health import HookHealth
from locus.hooks.hook import Hook
from locus.hooks.manager import HookManager
from locus.hooks.markers import hookimpl
from locus.hooks.table import HookTable

pytestmark = pytest.mark.anyio

RUN: Any = object()
CALL = ToolCall("1", "delete", {"path": "x"})
STATE = AgentState()


def observer(
    returns: Any = None, *, is_async: bool = False, raises: BaseException | None = None, **fields: Any
) -> Hook:
    """A hook that hears every event and answers, or fails, in one way."""

    def answer() -> Any:
        if raises is not None:
            raise raises
        return returns

    class Sync(Hook):
        def on_event(self, ev: Event) -> Any:
            return answer()

    class Async(Hook):
        async def on_event(self, ev: Event) -> Any:
            return answer()

    return having(Async() if is_async else Sync(), fields)


def having(hook: Hook, fields: dict[str, Any]) -> Hook:
    for name, value in fields.items():
        setattr(hook, name, value)
    return hook


def table_of(*hooks: object) -> HookTable:
    return HookManager.build(hooks=hooks).table


async def told(table: HookTable, event: Event, health: HookHealth | None = None) -> Any:
    return await notify(table.observers(type(event)), event, RUN, health or HookHealth())


class Ear:
    """Collects what `HookHealth` tells."""

    def __init__(self) -> None:
        self.heard: list[HookFailedEvent] = []

    async def __call__(self, event: HookFailedEvent) -> None:
        self.heard.append(event)


# -- observers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_observer_that_answers_nothing_lets_the_run_go_on(is_async: bool) -> None:
    assert await told(table_of(observer(None, is_async=is_async)), ThinkEvent()) is None
    assert await told(table_of(observer(Continue(), is_async=is_async)), ThinkEvent()) is None
    assert await told(table_of(), ThinkEvent()) is None


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_observers_directive_comes_back(is_async: bool) -> None:
    assert await told(table_of(observer(Cancel("enough"), is_async=is_async)), ThinkEvent()) == Cancel("enough")


async def test_the_strictest_directive_wins_and_the_first_of_equals() -> None:
    directives = [Continue(), Retry("a"), Reject("b"), Retry("c"), Reject("d"), Cancel("e"), Cancel("f")]
    expected = [None, Retry("a"), Reject("b"), Reject("b"), Reject("b"), Cancel("e"), Cancel("e")]

    for n, verdict in enumerate(expected):
        table = table_of(*[observer(directive) for directive in directives[: n + 1]])
        assert await told(table, ToolStartEvent()) == verdict


async def test_the_answers_do_not_depend_on_their_order_but_for_equals() -> None:
    table = table_of(observer(Cancel("x")), observer(Reject("y")), observer(Retry("z")))

    assert await told(table, ToolStartEvent()) == Cancel("x")


async def test_a_sync_observer_may_hand_back_an_awaitable() -> None:
    async def later() -> Cancel:
        return Cancel("later")

    class Delegates(Hook):
        def on_think(self, ev: ThinkEvent) -> Awaitable[Cancel]:
            return later()

    assert await told(table_of(Delegates()), ThinkEvent()) == Cancel("later")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failing_observer_is_isolated_and_reported(is_async: bool) -> None:
    ear, after = Ear(), []

    class After(Hook):
        def on_event(self, ev: Event) -> None:
            after.append(ev)

    health = HookHealth(ear)
    table = table_of(observer(raises=ValueError("boom"), is_async=is_async, name="bad"), After())

    assert await told(table, ThinkEvent(), health) is None
    assert after == [ThinkEvent()]
    assert ear.heard == [HookFailedEvent(plugin="bad", hook="locus_on_event", error="ValueError: boom")]
    (failure,) = health.failures
    assert (failure.plugin, failure.hook, failure.count) == ("bad", "locus_on_event", 1)
    assert "ValueError: boom\nin hook locus_on_event of plugin 'bad'" in failure.trace


@pytest.mark.parametrize(
    "nonsense", [7, "yes", True, Cancel, Allow(), Accept(), Revise("no"), Interrupt("who?"), [], Reject("too late")]
)
async def test_nonsense_from_an_observer_is_a_failure(nonsense: Any) -> None:
    ear = Ear()

    assert await told(table_of(observer(nonsense, name="bad")), ThinkEvent(), HookHealth(ear)) is None
    assert [event.plugin for event in ear.heard] == ["bad"]
    assert "expected" in ear.heard[0].error


@pytest.mark.parametrize("failing", [{"raises": ValueError("boom")}, {"returns": "nonsense"}])
async def test_a_failing_guard_cancels_the_run_every_time_and_is_never_quarantined(failing: dict[str, Any]) -> None:
    table, health = table_of(observer(guard=True, name="door", **failing)), HookHealth()

    for _ in range(5):
        assert await told(table, ThinkEvent(), health) == Cancel("guard door failed")

    assert [(f.count, f.quarantined) for f in health.failures] == [(5, False)]


async def test_two_observers_that_cannot_hear_of_each_others_failures_do_not_go_on_for_ever() -> None:
    class Fragile(Hook):
        guard = True

        def on_event(self, ev: Event) -> None:
            raise ValueError

    table = table_of(Fragile(), Fragile())
    told_of: list[str] = []

    async def tell(event: HookFailedEvent) -> None:
        told_of.append(event.plugin)
        await notify(table.observers(HookFailedEvent), event, RUN, health)

    health = HookHealth(tell)
    await told(table, ThinkEvent(), health)

    assert told_of == ["Fragile", "Fragile#2"]
    assert [(f.plugin, f.count) for f in health.failures] == [("Fragile", 2), ("Fragile#2", 2)]


async def test_everybody_has_heard_an_event_before_anybody_hears_of_a_failure() -> None:
    order: list[str] = []

    class Watch(Hook):
        def on_event(self, ev: Event) -> None:
            order.append(ev.type)

    table = table_of(observer(raises=ValueError()), Watch())

    async def tell(event: HookFailedEvent) -> None:
        await notify(table.observers(HookFailedEvent), event, RUN, health)

    health = HookHealth(tell)
    await told(table, ThinkEvent(), health)

    assert order == ["think", "hook_failed"]


async def test_an_async_observer_that_hangs_past_its_timeout_has_failed() -> None:
    class Hangs(Hook):
        hook_timeout = 0.01

        async def on_think(self, ev: ThinkEvent) -> None:
            await anyio.sleep_forever()

    ear = Ear()

    assert await told(table_of(Hangs()), ThinkEvent(), HookHealth(ear)) is None
    assert ear.heard[0].error == "TimeoutError: took longer than its hook_timeout of 0.01 s"


async def test_an_awaitable_from_a_sync_observer_is_timed_as_well() -> None:
    class Hangs(Hook):
        hook_timeout = 0.01

        def on_think(self, ev: ThinkEvent) -> Awaitable[None]:
            return anyio.sleep_forever()

    ear = Ear()

    await told(table_of(Hangs()), ThinkEvent(), HookHealth(ear))

    assert ear.heard[0].error.startswith("TimeoutError: took longer")


async def test_a_coroutine_from_who_hears_chunks_is_a_failure_and_leaves_no_warning() -> None:
    async def later() -> None:
        raise AssertionError("nobody awaits this")

    class Delegates(Hook):
        def on_model_chunk(self, ev: ModelChunkEvent) -> Any:
            return later()

    ear = Ear()

    assert await told(table_of(Delegates()), ModelChunkEvent(), HookHealth(ear)) is None
    assert "a listener of chunks must be sync" in ear.heard[0].error


async def test_in_a_strict_run_a_failure_is_raised_with_a_note() -> None:
    table = table_of(observer(raises=ValueError("boom"), name="bad"))

    with pytest.raises(ValueError, match="boom") as caught:
        await told(table, ThinkEvent(), HookHealth(strict=True))

    assert caught.value.__notes__ == ["in hook locus_on_event of plugin 'bad'"]


@pytest.mark.parametrize("family", ["observe", "decide", "route"])
async def test_cancellation_passes_through_every_hook(family: str) -> None:
    class Slow(Hook):
        async def on_think(self, ev: Event) -> None:
            await anyio.sleep_forever()

        async def on_tool_call(self, call: ToolCall) -> None:
            await anyio.sleep_forever()

        @hookimpl
        async def locus_decide_route(self) -> None:
            await anyio.sleep_forever()

    table, health = table_of(Slow()), HookHealth()
    passed = False
    asks: dict[str, Callable[[], Awaitable[object]]] = {
        "observe": lambda: told(table, ThinkEvent(), health),
        "decide": lambda: decide_tool_call(table.impls("locus_decide_tool_call"), CALL, RUN, health),
        "route": lambda: decide_route(table.impls("locus_decide_route"), "think", STATE, "execute", (), health),
    }

    with anyio.move_on_after(0.01):
        await asks[family]()
        passed = True

    assert not passed
    assert health.failures == ()


async def test_ctrl_c_in_a_hook_is_no_failure_of_the_hook() -> None:
    with pytest.raises(KeyboardInterrupt):
        await told(table_of(observer(raises=KeyboardInterrupt())), ThinkEvent())


# -- deciders --------------------------------------------------------------------------------------


def decider(answer: Any = None, *, is_async: bool = False, raises: BaseException | None = None, **fields: Any) -> Hook:
    def decide(call: ToolCall) -> Any:
        assert call is CALL
        if raises is not None:
            raise raises
        return answer

    class Sync(Hook):
        def on_tool_call(self, call: ToolCall) -> Any:
            return decide(call)

    class Async(Hook):
        async def on_tool_call(self, call: ToolCall) -> Any:
            return decide(call)

    return having(Async() if is_async else Sync(), fields)


async def decided(*hooks: Hook, health: HookHealth | None = None) -> Any:
    impls = table_of(*hooks).impls("locus_decide_tool_call")
    return await decide_tool_call(impls, CALL, RUN, health or HookHealth())


@pytest.mark.parametrize("answer", [None, Allow(), Continue()])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_call_that_nobody_objects_to_may_run(answer: Any, is_async: bool) -> None:
    assert await decided(decider(answer, is_async=is_async)) == Allow()
    assert await decided() == Allow()


async def test_everybody_is_asked_about_a_call_and_the_strictest_answer_wins() -> None:
    answers = [None, Reject("a"), Reject("b"), Interrupt("sure?"), Allow(), Cancel("c"), Cancel("d")]
    expected = [Allow(), Reject("a"), Reject("a"), Interrupt("sure?"), Interrupt("sure?"), Cancel("c"), Cancel("c")]
    asked: list[int] = []

    class Counts(Hook):
        def on_tool_call(self, call: ToolCall) -> None:
            asked.append(1)

    for n, decision in enumerate(expected):
        assert await decided(*[decider(answer) for answer in answers[: n + 1]]) == decision
    await decided(decider(Cancel("no")), Counts())
    assert asked == [1]


async def test_a_decider_may_raise_its_question_as_a_tool_would() -> None:
    decision = await decided(decider(raises=Interrupt("sure?", ("yes", "no"))))

    assert decision == Interrupt("sure?", ("yes", "no"))
    assert decision.__traceback__ is None


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize(
    "failing",
    [
        {"raises": ValueError("boom")},
        {"answer": "yes"},
        {"answer": True},
        {"answer": Retry()},
        {"answer": Allow},
        {"raises": ValueError("boom"), "is_async": True},
    ],
)
async def test_a_decider_that_fails_rejects_the_call_and_is_asked_again_the_next_time(
    failing: dict[str, Any], guard: bool
) -> None:
    ear = Ear()
    health = HookHealth(ear)
    judges = table_of(decider(**failing, name="judge", guard=guard)).impls("locus_decide_tool_call")

    for _ in range(5):
        decision = await decide_tool_call(judges, CALL, RUN, health)
        assert decision == Reject("plugin_error: 'judge' failed while it decided about this call")

    assert [(event.plugin, event.quarantined) for event in ear.heard] == [("judge", False)] * 5


# -- routes ----------------------------------------------------------------------------------------


def router(answer: Any = None, *, raises: Exception | None = None, **fields: Any) -> Hook:
    class Toy(Hook):
        @hookimpl
        def locus_decide_route(self, node: str, state: AgentState, proposed: str) -> Any:
            assert (node, state, proposed) == ("execute", STATE, "think")
            if raises is not None:
                raise raises
            return answer

    return having(Toy(), fields)


async def routed(*hooks: Hook, health: HookHealth | None = None) -> Any:
    impls = table_of(*hooks).impls("locus_decide_route")
    legal = ("think", "reflect")
    return await decide_route(impls, "execute", STATE, "think", legal, health or HookHealth())


async def test_without_another_opinion_the_routers_route_stands() -> None:
    assert await routed() == "think"
    assert await routed(router(None), router("think")) == "think"


async def test_the_first_other_opinion_wins() -> None:
    assert await routed(router(None), router("reflect"), router("think")) == "reflect"


@pytest.mark.parametrize("failing", [{"answer": "terminate"}, {"answer": 7}, {"raises": ValueError("boom")}])
async def test_an_opinion_that_is_illegal_or_fails_leaves_the_routers_route_and_is_reported(
    failing: dict[str, Any],
) -> None:
    ear = Ear()
    health = HookHealth(ear)

    assert await routed(router(**failing, name="bad"), health=health) == "think"
    assert [event.plugin for event in ear.heard] == ["bad"]
    assert await routed(router(**failing), router("reflect")) == "reflect"


async def test_a_guard_that_cannot_say_where_to_go_cancels_the_run() -> None:
    hooks = (router(raises=ValueError(), guard=True, name="door"), router("reflect"))

    assert await routed(*hooks) == Cancel("guard door failed")
