"""`ctx.sleep`: how long it lasts, and what goes on meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.core.errors import ConfigError
from locus.core.journal import Paused, Submitted
from locus.core.messages import Message, Role
from locus.journal import MemoryStore, Signal
from locus_plugin_workflow import RetryPolicy, Worker, cancel, show, start

from .clockwork import HOUR, World, make_memory, make_world, one

__all__ = ["make_memory", "make_world"]

pytestmark = pytest.mark.anyio


# -- how long -------------------------------------------------------------------------------------


async def test_sleep_lasts_until_the_time_on_record_in_any_worker(world: World) -> None:
    entered: list[int] = []

    async def handler(ctx: Any) -> Any:
        entered.append(ctx.attempt)
        await ctx.sleep(HOUR)
        return ctx.complete(ctx.now)

    definition = one(handler)
    due = world.clock.now() + timedelta(hours=1)
    await world.begin(definition)
    for seconds in (0, 1_800, 1_799):
        await world.work(definition, after=seconds)
        state = await world.step()
        assert (state.status, state.not_before) == ("running", due)
    assert entered == [0]

    await world.work(definition, after=1)
    state = await world.step()
    assert (state.status, state.output, state.not_before) == ("completed", due, None)
    assert entered == [0, 0]


async def test_sleep_is_not_begun_anew_by_another_attempt(memory: World) -> None:
    entered: list[Any] = []

    async def handler(ctx: Any) -> Any:
        await ctx.sleep(timedelta(hours=1))
        entered.append(ctx.attempt)
        return ctx.complete() if ctx.attempt else ctx.fail("once more")

    definition = one(handler, retry=RetryPolicy(2, initial=0))
    await memory.begin(definition)
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).status == "completed"
    assert entered == [0, 1]


async def test_sleeps_of_a_handler_add_up_and_each_is_slept_once(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        for _ in range(3):
            await ctx.sleep(HOUR)
        return ctx.complete(ctx.now)

    definition = one(handler)
    began = memory.clock.now()
    await memory.begin(definition)
    for _ in range(2):
        await memory.work(definition, after=HOUR)
        assert (await memory.step()).status == "running"
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).output == began + timedelta(hours=3)


async def test_sleep_inside_of_a_step_is_not_taken_for_the_one_behind_it(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        async def nap() -> str:
            await ctx.sleep(HOUR)
            return "rested"

        rested = await ctx.step("nap", nap, effect="keyed")
        for _ in range(2):
            await ctx.sleep(HOUR)
        return ctx.complete([rested, ctx.now])

    definition = one(handler)
    began = memory.clock.now()
    await memory.begin(definition)
    for _ in range(2):
        await memory.work(definition, after=HOUR)
        assert (await memory.step()).status == "running"
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).output == ("rested", began + timedelta(hours=3))


async def test_step_that_is_called_sleep_is_not_a_sleep(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        async def count() -> int:
            return 17

        if ctx.attempt:
            await ctx.sleep(HOUR)
        counted = await ctx.step("sleep", count)
        return ctx.complete(counted) if ctx.attempt else ctx.fail("once more")

    definition = one(handler, retry=RetryPolicy(2, initial=0))
    await memory.begin(definition)
    assert (await memory.step()).status == "running"
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).output == 17


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "60", True, None])
async def test_what_is_not_a_duration_is_refused(memory: World, seconds: Any) -> None:
    async def handler(ctx: Any) -> Any:
        with pytest.raises(ConfigError, match="expected seconds"):
            await ctx.sleep(seconds)
        return ctx.complete("refused")

    await memory.begin(one(handler))

    assert (await memory.step()).output == "refused"


async def test_short_sleep_keeps_its_worker_and_lasts_by_its_clock() -> None:
    async def handler(ctx: Any) -> Any:
        until = ctx.now + timedelta(seconds=0.05)
        await ctx.sleep(0.05)
        return ctx.complete((ctx.now - until).total_seconds())

    store, definition = MemoryStore(), one(handler)
    assert (await Worker(store).run_workflow(definition, run_id="run")).output >= 0
    assert not [e for e in await store.read("run/s") if isinstance(e.body, Paused)][1:]


@pytest.mark.parametrize(("bound", "value"), [("timeout", 60), ("max_duration", 60)])
async def test_bound_of_the_step_ends_its_sleep(memory: World, bound: str, value: float) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(HOUR)
        return ctx.complete()

    definition = one(handler, **{bound: value})
    await memory.begin(definition)
    assert (await memory.step()).not_before == memory.clock.now() + timedelta(seconds=60)
    await memory.work(definition, after=60)

    state = await memory.step()
    assert (state.status, state.reason, state.not_before) == ("failed", bound, None)


# -- what goes on meanwhile -----------------------------------------------------------------------


async def test_other_runs_go_on_in_the_only_slot(world: World) -> None:
    async def handler(ctx: Any) -> Any:
        if ctx.run_id == "run":
            await ctx.sleep(HOUR)
        return ctx.complete()

    definition = one(handler)
    await world.begin(definition)
    for n in range(3):
        await start(world.store, definition, run_id=f"other{n}")
    await world.work(definition, slots=1)

    assert [(await show(world.store, f"other{n}")).status for n in range(3)] == ["completed"] * 3
    depth = await world.store.depth("workflow.handler")
    assert (depth.ready, depth.held, depth.sleeping) == (0, 0, 1)


async def test_cancel_ends_a_step_that_sleeps_at_once(world: World) -> None:
    entered: list[int] = []

    async def handler(ctx: Any) -> Any:
        entered.append(ctx.attempt)
        await ctx.sleep(HOUR)

    definition = one(handler)
    await world.begin(definition)
    assert await cancel(world.store, "run", "no more")
    await world.work(definition)

    run, state = await show(world.store, "run"), await world.step()
    assert (run.status, run.error) == ("failed", "cancelled: no more")
    assert (state.status, state.reason, state.not_before) == ("failed", "cancelled", None)
    assert entered == [0]
    assert (await world.store.depth("workflow.handler")).sleeping == 0


async def test_signal_that_asks_for_nothing_does_not_enter_the_handler(world: World) -> None:
    entered: list[int] = []

    async def handler(ctx: Any) -> Any:
        entered.append(ctx.attempt)
        await ctx.sleep(HOUR)
        return ctx.complete()

    definition = one(handler)
    await world.begin(definition)
    turn = Submitted(run_id="run", prompt=Message(Role.USER, "retry"))
    assert await world.store.signal("run/s", Signal(body=turn, id="early"))
    await world.work(definition)
    assert await world.store.signals("run/s") == ()
    assert (entered, (await world.step()).status) == ([0], "running")
    await world.work(definition, after=HOUR)

    assert (entered, (await world.step()).status) == ([0, 0], "completed")


async def test_worker_that_is_offered_it_too_early_leaves_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the worker before has died between the end of the sleep's entries and that of its offer."""
    entered: list[int] = []

    async def handler(ctx: Any) -> Any:
        entered.append(ctx.attempt)
        await ctx.sleep(10 * HOUR)
        return ctx.complete()

    definition = one(handler)
    await start(world.store, definition, run_id="run")
    take = world.store.take

    async def die(*_: Any) -> bool:
        return False

    async def take_and_die(*arguments: Any) -> Any:
        offer = await take(*arguments)
        if offer is not None and offer.thread_id == "run/s":
            offer.back = die
        return offer

    monkeypatch.setattr(world.store, "take", take_and_die)
    await world.work(definition)
    monkeypatch.undo()
    head = len(await world.store.read("run/s"))
    for _ in range(3):
        await world.work(definition, after=HOUR)

    assert entered == [0]
    assert len(await world.store.read("run/s")) == head


async def test_worker_that_leaves_while_it_looks_at_a_sleep_changes_nothing(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(HOUR)

    definition = one(handler)
    await memory.begin(definition)
    entries = await memory.store.read("run/s")

    with anyio.CancelScope() as scope:
        turn = Submitted(run_id="run", prompt=Message(Role.USER, "retry"))
        await memory.store.signal("run/s", Signal(body=turn, id="early"))
        forget = memory.store.forget_signals

        async def leave(*arguments: Any) -> Any:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            return await forget(*arguments)

        memory.store.forget_signals = leave
        await memory.work(definition)
    assert scope.cancelled_caught
    assert await memory.store.read("run/s") == entries
