"""Six things that go wrong in engines of this kind, and what workers leave behind that die.

Each was found in the code of an engine that promises the opposite.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from locus.core.journal import Transition
from locus.journal import MemoryStore
from locus_plugin_workflow import RetryPolicy, Worker, Workflow, WorkflowDef, cancel, retry, show, start
from locus_plugin_workflow.iteration import Iteration
from locus_plugin_workflow.machine import settle
from locus_plugin_workflow.verdicts import Continue
from locus_testkit import FakeClock, is_crash
from locus_testkit.contracts import WorkerProcess

pytestmark = pytest.mark.anyio


def loop(handler: Any, n: int, **options: Any) -> WorkflowDef:
    wf = Workflow("w")
    step = wf.agent_loop("s", handler).with_max_iterations(n)
    for name, value in options.items():
        getattr(step, f"with_{name}")(value)
    return wf.build()


# -- 1: a nonce that saves a continue lost in a crash makes it a second one ---------------------------


class DiesBehindItsWrite(WorkerProcess):
    """Dies where the verdict is stored, and the offer is not ended yet."""

    def __init__(self, store: Any, p: float, seed: int) -> None:
        super().__init__(store=store)
        self.p, self.random = p, random.Random(seed)
        #: The threads whose last dispatch is made again.
        self.redelivered: set[str] = set()

    async def _end_of_offer(self, thread_id: str) -> None:
        if self.random.random() < self.p:
            self.dead, self.crashes = True, self.crashes + 1
            self.redelivered.add(thread_id)
            self._alive()

    async def take(self, queues: Any, worker: str, wait: float = 0.0) -> Any:
        found: Any = await super().take(queues, worker, wait)
        if found is None:
            return None
        done, back, process = found.done, found.back, self

        async def end() -> bool:
            await process._end_of_offer(found.thread_id)
            ended: bool = await done()
            return ended

        async def give_back(delay: float = 0.0, *, queue: str | None = None) -> bool:
            await process._end_of_offer(found.thread_id)
            ended: bool = await back(delay, queue=queue)
            return ended

        found.done, found.back = end, give_back
        return found


async def count_faults(seed: int) -> tuple[int, int, int]:
    """How many deaths there were in 16 loops of 20 and 16 of 7, how many faults, and how many continues too many.

    A fault is an iteration that ran twice, one that never ran, or a loop with another end. They are counted one
    by one: a sum of what ran has an iteration too many made up for by a skipped one.
    """
    ran: Counter[tuple[str, int]] = Counter()

    async def handler(ctx: Any) -> Any:
        ran[ctx.run_id, ctx.iteration] += 1
        done = ctx.run_id.startswith("to-20") and ctx.iteration == 19
        return ctx.complete() if done else ctx.continue_(ctx.iteration)

    process = DiesBehindItsWrite(MemoryStore(), 0.03, seed)
    of_20, of_7 = loop(handler, 20), loop(handler, 7)
    for n in range(16):
        await start(process, of_20, run_id=f"to-20-{n}")
        await start(process, of_7, run_id=f"to-7-{n}")
    while True:
        try:
            await Worker(process, [of_20], slots=3, stay=0).run(until_idle=True)
            break
        except BaseException as error:
            if not is_crash(error):
                raise
            await process.revive()
    faults = continues = 0
    for n in range(16):
        for run, bound, status in ((f"to-20-{n}", 20, "completed"), (f"to-7-{n}", 7, "failed")):
            entries = [entry.body for entry in await process.read(f"{run}/s")]
            continues += sum(isinstance(b, Transition) and b.why == "continue" for b in entries) - (bound - 1)
            faults += (await show(process, run)).steps["s"].status != status
            times = Counter({i: count for (name, i), count in ran.items() if name == run})
            once = Counter(range(bound))
            faults += (times - once).total() + (once - times).total()
    return process.crashes, faults, continues


async def test_defect_1_worker_that_dies_behind_continue_does_not_advance_the_loop_twice() -> None:
    deaths, faults, continues = await count_faults(seed=7)

    assert deaths > 5
    assert (faults, continues) == (0, 0)


async def test_defect_1_nonce_alone_would_advance_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redelivery whose continue has another id is accepted, as by an engine that goes by ids."""
    right = Iteration._advance

    async def advance(self: Iteration, journal: Any, record: Any, cut: Any) -> Any:
        redelivered = self.store.redelivered
        if journal.host.claim.thread_id in redelivered:
            redelivered.discard(journal.host.claim.thread_id)
            await journal.begin()
            again = settle(journal.state, record.definition, Continue(), self.effects.now())
            await self._move(journal, record, again)
            return None
        return await right(self, journal, record, cut)

    monkeypatch.setattr(Iteration, "_advance", advance)
    _, faults, _ = await count_faults(seed=7)

    assert faults > 0


# -- 2 to 6 -------------------------------------------------------------------------------------------


async def test_defect_2_output_of_an_iteration_is_not_dropped() -> None:
    inputs: list[Any] = []

    async def handler(ctx: Any) -> Any:
        inputs.append(ctx.input())
        return ctx.complete() if ctx.iteration == 2 else ctx.continue_(f"output {ctx.iteration}")

    await Worker(MemoryStore()).run_workflow(loop(handler, 3), "upstream")

    assert inputs == ["upstream", "output 0", "output 1"]


async def test_defect_3_time_out_of_one_iteration_does_not_act_on_the_next() -> None:
    """The time-out is that of an iteration: one that began late has all of its time."""
    clock = FakeClock()
    store, left = MemoryStore(clock=clock), list[int]()

    async def handler(ctx: Any) -> Any:
        clock.advance(4)
        left.append(ctx.iteration)
        return ctx.complete() if ctx.iteration == 3 else ctx.continue_()

    definition = loop(handler, 9, timeout=5)
    run = await start(store, definition)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    assert left == [0, 1, 2, 3]
    assert (await show(store, run)).status == "completed"


async def test_defect_4_delay_is_not_a_timer_of_a_process() -> None:
    clock = FakeClock()
    store, ran = MemoryStore(clock=clock), list[int]()

    async def handler(ctx: Any) -> Any:
        ran.append(ctx.iteration)
        return ctx.complete() if ctx.iteration else ctx.continue_()

    definition = loop(handler, 2, loop_delay=3_600)
    run = await start(store, definition)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    clock.advance(3_599)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    assert ran == [0]
    clock.advance(1)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    assert ran == [0, 1]
    assert (await show(store, run)).status == "completed"


async def test_defect_5_stale_worker_overwrites_neither_checkpoint_nor_state() -> None:
    process = WorkerProcess(store=MemoryStore())
    stale = anyio.Event()

    async def handler(ctx: Any) -> Any:
        if ctx.payload.redelivered:
            return ctx.complete(await ctx.load_checkpoint())
        await ctx.checkpoint("before")
        await process.take_over("r/s")
        try:
            await ctx.checkpoint("stale")
        finally:
            stale.set()
        return ctx.complete("stale")

    definition = loop(handler, 3)
    await start(process, definition, run_id="r")
    async with Worker(process, definition).at_work():
        await stale.wait()
    await process.revive()
    await Worker(process, definition).run(until_idle=True)

    assert (await show(process, "r")).output == "before"


async def test_defect_6_submitting_twice_is_submitting_once_however_much_later() -> None:
    clock = FakeClock()
    store, ran = MemoryStore(clock=clock), Counter[str]()

    async def handler(ctx: Any) -> Any:
        ran[ctx.payload.step] += 1
        return ctx.complete("done")

    definition = loop(handler, 3)
    for _ in range(3):
        assert await start(store, definition, "given", run_id="r") == "r"
        await Worker(store, definition, clock=clock).run(until_idle=True)
        clock.advance(30 * 86_400)

    assert ran == {"s": 1}
    assert (await show(store, "r")).output == "done"


# -- workers that die ---------------------------------------------------------------------------------


async def test_step_whose_workers_die_again_and_again_fails_as_a_dead_letter() -> None:
    process = WorkerProcess(store=MemoryStore())
    deaths: list[bool] = []

    async def handler(ctx: Any) -> Any:
        deaths.append(ctx.payload.redelivered)
        process.dead = True
        process._alive()

    definition = loop(handler, 3, retry=RetryPolicy(9))
    await start(process, definition, run_id="r")
    for _ in range(9):
        await outlive(process, Worker(process, definition).run)

    state = (await show(process.store, "r")).steps["s"]
    assert deaths == [False, True, True, True, True]
    assert (state.status, state.reason) == ("failed", "dead_letter")
    assert "5 workers in a row died or fell silent in iteration 0" in state.error


async def outlive(process: WorkerProcess, run: Callable[..., Awaitable[None]]) -> None:
    try:
        await run(until_idle=True)
    except BaseException as error:
        if not is_crash(error):
            raise
        await process.revive()


async def test_worker_that_leaves_is_not_one_that_died() -> None:
    store = MemoryStore()
    entered: list[bool] = []

    async def handler(ctx: Any) -> Any:
        entered.append(ctx.payload.redelivered)
        if len(entered) < 9:
            left.set()
            await anyio.sleep_forever()
        return ctx.complete()

    definition = loop(handler, 3)
    await start(store, definition, run_id="r")
    for _ in range(8):
        left = anyio.Event()
        async with Worker(store, definition).at_work():
            await left.wait()
    await Worker(store, definition).run(until_idle=True)

    assert (await show(store, "r")).status == "completed"
    assert len(entered) == 9


# -- runs that are cancelled --------------------------------------------------------------------------


async def test_run_is_cancelled_with_its_open_steps_and_can_be_begun_again() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)

    async def handler(ctx: Any) -> Any:
        return ctx.complete("done") if ctx.iteration == 2 else ctx.continue_()

    definition = loop(handler, 5, loop_delay=60)
    await start(store, definition, run_id="r")
    await Worker(store, definition, clock=clock).run(until_idle=True)
    assert await cancel(store, "r", "not needed")
    await Worker(store, definition, clock=clock).run(until_idle=True)

    run = await show(store, "r")
    assert (run.status, run.error) == ("failed", "cancelled: not needed")
    assert (run.steps["s"].status, run.steps["s"].reason, run.steps["s"].iteration) == ("failed", "cancelled", 1)
    assert not await cancel(store, "r")

    await retry(store, "r", "s")
    for _ in range(3):
        await Worker(store, definition, clock=clock).run(until_idle=True)
        clock.advance(60)
    assert (await show(store, "r")).output == "done"
