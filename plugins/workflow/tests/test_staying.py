"""A worker stays with a step for a while: what that saves, and what ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from locus import Agent, tool
from locus.core.journal import Body, Outcome
from locus.journal import Appended, Claim, MemoryStore, Offer
from locus_plugin_workflow import Worker, Workflow, WorkflowDef, cancel, iteration, show, start
from locus_testkit import ScriptedModel, call, is_crash
from locus_testkit.contracts import WorkerProcess

pytestmark = pytest.mark.anyio

#: Seconds: longer than any of these tests takes.
LONG = 600


class Counting(MemoryStore):
    """Counts what is asked of it, by thread."""

    def __init__(self) -> None:
        super().__init__()
        self.did: Counter[tuple[str, str]] = Counter()

    async def claim(self, thread_id: str, worker: str) -> Claim:
        self.did["claim", thread_id] += 1
        return await super().claim(thread_id, worker)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        self.did["append", claim.thread_id] += 1
        return await super().append(claim, bodies)

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        found = await super().take(queues, worker, wait)
        if found is not None:
            self.did["take", found.thread_id] += 1
        return found


def loop(handler: Any, n: int, dispatch: Any = "iteration") -> WorkflowDef:
    wf = Workflow("w")
    wf.agent_loop("s", handler).with_max_iterations(n).with_dispatch(dispatch)
    return wf.build()


async def count(ctx: Any) -> Any:
    return ctx.complete() if ctx.iteration == 9 else ctx.continue_(ctx.iteration)


async def test_worker_that_stays_takes_a_step_once_and_writes_once_for_each_iteration() -> None:
    store = Counting()

    run = await Worker(store, stay=LONG).run_workflow(loop(count, 10), run_id="r")

    assert run.status == "completed"
    assert store.did["take", "r/s"] == store.did["claim", "r/s"] == 1
    assert store.did["append", "r/s"] == 11


async def test_worker_that_does_not_stay_takes_each_iteration_from_the_queue() -> None:
    store = Counting()

    run = await Worker(store, stay=0).run_workflow(loop(count, 10), run_id="r")

    assert run.status == "completed"
    assert store.did["take", "r/s"] == store.did["claim", "r/s"] == 10


async def test_stay_that_is_over_lets_what_waits_in_the_queue_go_first() -> None:
    store, went = MemoryStore(), list[str]()

    async def handler(ctx: Any) -> Any:
        went.append(ctx.run_id)
        await anyio.sleep(0.02)
        return ctx.complete() if ctx.iteration == 3 else ctx.continue_()

    definition = loop(handler, 4)
    for name in "ab":
        await start(store, definition, run_id=name)
    await Worker(store, definition, slots=1, stay=0.01).run(until_idle=True)

    assert went == ["a", "b"] * 4


async def test_steps_of_one_worker_go_on_beside_each_other_while_it_stays() -> None:
    store, went = MemoryStore(), list[str]()

    async def handler(ctx: Any) -> Any:
        went.append(ctx.run_id)
        return ctx.complete() if {*went} == {"a", "b"} else ctx.continue_()

    definition = loop(handler, 10**6)
    for name in "ab":
        await start(store, definition, run_id=name)
    with anyio.fail_after(60):
        await Worker(store, definition, stay=LONG).run(until_idle=True)

    assert {*went} == {"a", "b"}


@pytest.mark.parametrize("stay", [0, LONG])
async def test_entries_of_an_iteration_have_the_same_ids_whether_or_not_the_worker_stays(stay: float) -> None:
    """Another worker that takes the step over counts on from what it finds of the iteration."""
    store = MemoryStore()

    async def handler(ctx: Any) -> Any:
        for _ in range(2):
            await ctx.step("look", nothing)
            await ctx.checkpoint(ctx.iteration)
        return ctx.complete() if ctx.iteration == 2 else ctx.continue_()

    async def nothing() -> None: ...

    await Worker(store, stay=stay).run_workflow(loop(handler, 3), run_id="r")

    bodies = [entry.body for entry in await store.read("r/s")]
    ids = [str(body.step_id) for body in bodies if isinstance(body, Outcome)]
    assert ids == [
        f"{n}/{what}"
        for n in range(3)
        for what in ("started/0", "step/0:look", "checkpoint/0", "step/1:look", "checkpoint/1")
    ]


@pytest.mark.parametrize("stay", [0, LONG])
async def test_cancel_reaches_a_step_whose_worker_stays(stay: float) -> None:
    store, reached = MemoryStore(), anyio.Event()

    async def endless(ctx: Any) -> Any:
        if ctx.iteration == 3:
            await cancel(store, "r", "enough")
            reached.set()
        return ctx.continue_()

    with anyio.fail_after(60):
        run = await Worker(store, stay=stay).run_workflow(loop(endless, 10**6), run_id="r")

    assert reached.is_set()
    assert (run.status, run.error) == ("failed", "cancelled: enough")


async def test_worker_that_leaves_does_not_stay() -> None:
    store, went = MemoryStore(), list[str]()

    async def handler(ctx: Any) -> Any:
        went.append(f"{current.name} {ctx.iteration}")
        if ctx.iteration == 2:
            current.drain()
        return await count(ctx)

    definition = loop(handler, 10)
    await start(store, definition, run_id="r")
    current = Worker(store, definition, name="first", stay=LONG)
    await current.run()
    current = Worker(store, definition, name="second", stay=LONG)
    await current.run(until_idle=True)

    assert went == [f"{'first' if n < 3 else 'second'} {n}" for n in range(10)]
    assert (await show(store, "r")).status == "completed"


async def test_time_out_is_that_of_one_iteration_of_many() -> None:
    store, tries = MemoryStore(), list[tuple[int, int]]()

    async def handler(ctx: Any) -> Any:
        tries.append((ctx.iteration, ctx.attempt))
        if tries[-1] == (2, 0):
            await anyio.sleep(LONG)
        return ctx.complete() if ctx.iteration == 3 else ctx.continue_()

    wf = Workflow("w")
    wf.agent_loop("s", handler).with_max_iterations(9).with_timeout(1).with_retry(2)
    with anyio.fail_after(60):
        run = await Worker(store, stay=LONG).run_workflow(wf.build())

    assert run.status == "completed"
    assert tries == [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)]


# -- agents -------------------------------------------------------------------------------------------


def agent(store: Any, did: list[int], calls: int = 4, **options: Any) -> Agent[None, str]:
    @tool(effect="once")
    async def look(n: int) -> str:
        """Look."""
        did.append(n)
        return f"seen {n}"

    def turns(request: Any) -> list[Any]:
        return [*(call("look", n=n) for n in range(calls)), "Done."]

    model = ScriptedModel(script=turns)
    return Agent(model, tools=[look], name="reviewer", checkpointer=store, **options)


async def test_agent_waits_between_its_iterations_with_its_thread_claimed() -> None:
    store, did = Counting(), list[int]()

    run = await Worker(store, stay=LONG).run_workflow(loop(agent(store, did), 9), "x", run_id="r")

    assert (run.status, run.output, did) == ("completed", "Done.", [0, 1, 2, 3])
    assert store.did["claim", "r/s"] == store.did["claim", "r/s/agent"] == 1
    assert run.steps["s"].iteration == 4


async def test_agent_is_left_where_it_waits_when_its_worker_leaves() -> None:
    store, did, begun = MemoryStore(), list[int](), list[str]()

    def see(event: Any) -> None:
        if event.type == "step.started":
            begun.append(current.name)
            if event.iteration == 1:
                current.drain()

    definition = loop(agent(store, did), 9)
    await start(store, definition, "x", run_id="r")
    for name in ("first", "second"):
        current = Worker(store, definition, name=name, hooks=[see], stay=LONG)
        await current.run(until_idle=True)

    run = await show(store, "r")
    assert (run.status, run.output, did) == ("completed", "Done.", [0, 1, 2, 3])
    assert begun == ["first"] * 2 + ["second"] * 3


async def test_agent_whose_worker_is_cancelled_goes_on_in_another_one() -> None:
    store, did, entered = MemoryStore(), list[int](), anyio.Event()

    async def hold(event: Any) -> None:
        if event.type == "step.started" and event.iteration == 2 and not entered.is_set():
            entered.set()
            await anyio.sleep_forever()

    definition = loop(agent(store, did), 9)
    await start(store, definition, "x", run_id="r")
    async with Worker(store, definition, hooks=[hold], stay=LONG).at_work():
        await entered.wait()
    await Worker(store, definition, stay=LONG).run(until_idle=True)

    run = await show(store, "r")
    assert (run.status, run.output, did) == ("completed", "Done.", [0, 1, 2, 3])


@pytest.mark.parametrize("stay", [0, LONG])
async def test_agent_ends_the_same_wherever_its_worker_dies(stay: float) -> None:
    """Whichever write is the last: no call twice, and the one that the death came in is said to be unknown."""
    at, deaths = 1, 1
    while deaths:
        deaths = 0
        for stored in (False, True):
            process, did = WorkerProcess(at, stored=stored, store=MemoryStore()), list[int]()
            definition = loop(agent(process, did, 2), 9)
            for _ in range(9):
                try:
                    await start(process, definition, "x", run_id="r")
                    await Worker(process, definition, slots=1, stay=stay).run(until_idle=True)
                except BaseException as error:
                    if not is_crash(error):
                        raise
                    await process.revive()
            run = await show(process.store, "r")
            assert (run.status, run.output) == ("completed", "Done."), (at, stored, run)
            assert len(did) == len({*did})
            assert len(did) >= 2 - process.crashes
            deaths += process.crashes
        at += 1
    assert at > 10


async def test_iterations_of_a_handler_go_through_the_queue_and_those_of_an_agent_need_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(iteration, "STAY", LONG)
    store, did = Counting(), list[int]()

    await Worker(store).run_workflow(loop(count, 10), run_id="h")
    run = await Worker(store).run_workflow(loop(agent(store, did), 9), "x", run_id="a")

    assert run.status == "completed"
    assert store.did["take", "h/s"] == 10
    assert store.did["take", "a/s"] == 1
