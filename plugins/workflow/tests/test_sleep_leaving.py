"""`ctx.sleep`: how a handler is left for it, and what is found when it is entered again."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.core.journal import Outcome, Paused
from locus.journal import JournalHost
from locus_plugin_workflow import Worker, start
from locus_plugin_workflow.records import StepRecord, read_step

from .clockwork import HOUR, World, make_memory, make_world, one

__all__ = ["make_memory", "make_world"]

pytestmark = pytest.mark.anyio


# -- what is not done twice -----------------------------------------------------------------------


async def test_steps_before_it_are_answered_from_the_record(world: World) -> None:
    did: Counter[str] = Counter()

    async def handler(ctx: Any) -> Any:
        async def pay() -> str:
            did["pay"] += 1
            return "paid"

        async def ship() -> str:
            did["ship"] += 1
            return "shipped"

        paid = await ctx.step("pay", pay)
        await ctx.sleep(HOUR)
        return ctx.complete([paid, await ctx.step("ship", ship)])

    definition = one(handler)
    await world.begin(definition)
    await world.work(definition, after=HOUR)

    assert (await world.step()).output == ("paid", "shipped")
    assert did == {"pay": 1, "ship": 1}


async def test_handler_is_left_once_the_steps_beside_the_sleep_have_ended(memory: World) -> None:
    did: Counter[str] = Counter()

    async def handler(ctx: Any) -> Any:
        async def pay() -> str:
            did["began"] += 1
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            did["paid"] += 1
            return "paid"

        async def pay_once() -> None:
            paid.append(await ctx.step("pay", pay))
            await ctx.sleep(30, name="short")

        paid: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(pay_once)
            await ctx.sleep(HOUR)
        return ctx.complete(paid)

    definition = one(handler)
    await memory.begin(definition)
    state = await memory.step()
    assert (state.status, state.not_before) == ("running", memory.clock.now() + timedelta(seconds=30))
    await memory.work(definition, after=30)
    assert (await memory.step()).not_before == memory.clock.now() + timedelta(seconds=HOUR - 30)
    await memory.work(definition, after=HOUR - 30)

    assert (await memory.step()).output == ("paid",)
    assert did == {"began": 1, "paid": 1}


async def test_sleep_is_over_while_a_step_beside_it_is_still_under_way(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        async def long() -> str:
            began.set()
            await done.wait()
            return "done"

        async def rest() -> None:
            await began.wait()
            await ctx.sleep(HOUR)
            done.set()

        async def pass_time() -> None:
            await began.wait()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            memory.clock.advance(HOUR)
            await ctx.step("tick", tick)

        async def tick() -> None: ...

        began, done = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(rest)
            group.start_soon(pass_time)
            ended = await ctx.step("long", long)
        return ctx.complete(ended)

    await memory.begin(one(handler))

    assert (await memory.step()).output == "done"


@pytest.mark.parametrize("is_async", [True, False])
async def test_long_sleep_inside_of_what_may_happen_once_is_refused(memory: World, is_async: bool) -> None:
    """The step could neither be entered again, nor be known not to have done anything."""
    did: Counter[str] = Counter()

    async def handler(ctx: Any) -> Any:
        async def pay() -> None:
            did["paid"] += 1
            await ctx.sleep(1)
            await ctx.sleep(HOUR)

        await ctx.step("pay", pay)

    def plain(ctx: Any) -> Any:
        def pay() -> None:
            did["paid"] += 1
            ctx.sleep(0)
            ctx.sleep(HOUR)

        ctx.step("pay", pay)

    definition = one(handler if is_async else plain)
    await memory.begin(definition)

    state = await memory.step()
    assert state.status == "failed"
    assert "step 'pay'" in state.error
    assert "sleep before it or behind it" in state.error
    assert did == {"paid": 1}


async def test_step_that_may_be_repeated_is_entered_again_behind_its_sleep(memory: World) -> None:
    did: Counter[str] = Counter()

    def handler(ctx: Any) -> Any:
        def outer() -> str:
            did["outer"] += 1
            paid: str = ctx.step("pay", pay)
            ctx.sleep(HOUR)
            return paid

        def pay() -> str:
            did["pay"] += 1
            return "paid"

        return ctx.complete(ctx.step("outer", outer, effect="keyed"))

    definition = one(handler)
    await memory.begin(definition)
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).output == "paid"
    assert did == {"outer": 2, "pay": 1}


# -- how a handler is left ------------------------------------------------------------------------


async def test_sleep_leaves_a_handler_through_its_task_groups(world: World) -> None:
    async def handler(ctx: Any) -> Any:
        async with anyio.create_task_group() as outer:
            async with anyio.create_task_group() as inner:
                inner.start_soon(partial(ctx.sleep, HOUR, name="short"))
                inner.start_soon(partial(ctx.sleep, 2 * HOUR, name="long"))
            outer.start_soon(ctx.sleep, 0)
        return ctx.complete(ctx.now)

    definition = one(handler)
    began = world.clock.now()
    await world.begin(definition)
    assert (await world.step()).not_before == began + timedelta(hours=1)
    await world.work(definition, after=HOUR)
    assert (await world.step()).not_before == began + timedelta(hours=2)
    await world.work(definition, after=HOUR)

    assert (await world.step()).output == began + timedelta(hours=2)


async def test_two_sleeps_at_the_same_time_need_names(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.sleep, HOUR)
            group.start_soon(ctx.sleep, 2 * HOUR)

    await memory.begin(one(handler))

    assert (await memory.step()).status == "failed"


async def test_failure_beside_a_sleep_is_a_failure(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        async def fail() -> None:
            raise OSError("no")

        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await ctx.sleep(HOUR)

    await memory.begin(one(handler))

    state = await memory.step()
    assert (state.status, state.reason) == ("failed", "error")


@pytest.mark.parametrize("is_async", [True, False])
async def test_handler_that_says_something_instead_of_being_left_sleeps_first(memory: World, is_async: bool) -> None:
    saved: list[Any] = []

    async def handler(ctx: Any) -> Any:
        try:
            await ctx.sleep(HOUR)
        finally:
            return ctx.complete(ctx.now)  # noqa: B012  a handler may do that

    def plain(ctx: Any) -> Any:
        try:
            ctx.sleep(HOUR)
        except BaseException:  # noqa: BLE001  a handler may do that
            saved.append("swallowed")
            ctx.checkpoint("not now")
            saved.append("saved")
        return ctx.complete(ctx.now)

    definition = one(handler if is_async else plain)
    due = memory.clock.now() + timedelta(hours=1)
    await memory.begin(definition)
    assert (await memory.step()).not_before == due
    await memory.work(definition, after=HOUR)

    assert (await memory.step()).output == due
    assert "saved" not in saved


async def test_wrappers_of_an_iteration_see_a_sleep_as_its_end_and_not_as_an_error(memory: World) -> None:
    seen: list[str] = []

    class Wrapper:
        async def wrap_iteration(self, call_next: Any, payload: Any) -> Any:
            verdict = await call_next()
            seen.append(type(verdict).__name__)
            return verdict

    async def handler(ctx: Any) -> Any:
        await ctx.sleep(HOUR)
        return ctx.complete()

    definition = one(handler)
    await start(memory.store, definition, run_id="run")
    for seconds in (0, HOUR):
        memory.clock.advance(seconds)
        await Worker(memory.store, definition, clock=memory.clock, hooks=[Wrapper()]).run(until_idle=True)

    assert seen == ["Suspended", "Complete"]


# -- in the journal -------------------------------------------------------------------------------


async def test_pause_and_outcome_hold_the_due_time_in_one_write(world: World) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(HOUR)
        return ctx.complete()

    due = world.clock.now() + timedelta(hours=1)
    await world.begin(one(handler))
    entries = [entry.body for entry in await world.store.read("run/s")]

    sleep, left, pause = entries[-3:]
    assert isinstance(sleep, Outcome)
    assert (str(sleep.step_id), sleep.value) == ("0/sleep/0", due)
    assert isinstance(left, Outcome)
    assert (left.step_id.node, left.value) == ("suspended", due)
    assert isinstance(pause, Paused)
    assert (pause.kind, pause.not_before) == ("yielded", due)
    assert await world.store.next_ready(due - timedelta(seconds=1)) is None
    assert await world.store.next_ready(due) == "run/s"


async def test_fork_and_copy_of_a_step_that_sleeps_sleep_until_the_same_time(world: World) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(HOUR)
        return ctx.complete()

    due = world.clock.now() + timedelta(hours=1)
    await world.begin(one(handler))
    entries = [entry.body for entry in await world.store.read("run/s")]
    await world.store.fork("run/s", len(entries), "fork")
    await world.store.submit("copy", entries, queue="other")

    known = await read_step(world.store, "run", "s")
    for thread in ("fork", "copy"):
        host = await JournalHost.peek(world.store, thread)
        assert host is not None
        assert host.due == due
        assert StepRecord.of(host) == known


async def test_sleeps_write_the_same_however_many_there_were_before(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        for _ in range(20):
            await ctx.sleep(HOUR)
        return ctx.complete()

    definition = one(handler)
    await memory.begin(definition)
    heads = []
    for _ in range(19):
        heads.append(len(await memory.store.read("run/s")))
        await memory.work(definition, after=HOUR)
    await memory.work(definition, after=HOUR)

    assert {later - sooner for sooner, later in pairwise(heads)} == {4}
    assert (await memory.step()).status == "completed"
