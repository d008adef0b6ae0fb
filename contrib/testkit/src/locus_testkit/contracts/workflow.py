"""`WorkflowContract`: what workflows need of the store that is their journal and their queue, one test a promise.

A store that keeps `JournalStoreContract`, with its features ``queue`` and ``signals``, keeps these; here they are shown
with the writes that a workflow makes: a thread for each step, iterations that are dispatched one by one, checkpoints,
two steps that end at the same moment, and workers that die in every one of their writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.core.errors import Fenced, OutcomeUnknown
from locus.core.journal import Body, Outcome, Transition
from locus.journal import QueueStore
from locus.plugin import Lazy
from locus_testkit.contracts._worker_process import WorkerProcess
from locus_testkit.contracts.base import Contract
from locus_testkit.crashes import is_crash

__all__ = ["WorkflowContract"]

workflows: Any = Lazy("locus.workflow")

#: How often a workflow of these tests is gone on with; more than any of them needs.
_LIVES = 6


@pytest.mark.anyio
class WorkflowContract(Contract):
    """The promises of a store to workflows. Subclass it and say how yours is opened; the plugin must be there.

    Example::

        class TestWorkflows(WorkflowContract):
            def open_store(self, folder):
                return MyStore(folder / "journal.db")
    """

    #: Kills at every which write; stores that are slow to open may leave some out of a quick run.
    stride = 1

    #: Seconds within which any workflow of these tests has ended, on the slowest machine.
    patience = 60.0

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[QueueStore]:
        """A store for one test, empty.

        Args:
            folder: an empty folder of the test's own.
        """
        raise NotImplementedError

    def make_worker(self, store: Any, **options: Any) -> Any:
        """A worker on a store."""
        return workflows.Worker(store, **options)

    # -- iterations -------------------------------------------------------------------------------

    async def test_row_90_each_iteration_is_a_dispatch_of_its_own(self, tmp_path: Path) -> None:
        """Each iteration has an offer, a payload with its number, and an entry with an id of its own."""
        payloads: list[Any] = []

        async def handler(ctx: Any) -> Any:
            payloads.append(ctx.payload)
            return ctx.complete("done") if ctx.iteration == 2 else ctx.continue_(ctx.iteration)

        async with self.open_store(tmp_path) as store:
            process = WorkerProcess(store=store)
            run = await self._run(process, _loop(handler, 5))
            entries = await store.read("run/loop")  # type: ignore[attr-defined]  # a journal store, too
        assert (run.status, run.output) == ("completed", "done")
        assert [(p.iteration, p.attempt, p.redelivered) for p in payloads] == [
            (0, 0, False),
            (1, 0, False),
            (2, 0, False),
        ]
        assert [(p.run_id, p.step) for p in payloads] == [("run", "loop")] * 3
        ids = [e.body.detail for e in entries if isinstance(e.body, Transition) and e.body.why == "continue"]
        assert [text.rpartition(".")[0] for text in ids] == ["run.loop.continue.0", "run.loop.continue.1"]
        assert len(set(ids)) == 2

    async def test_row_91_checkpoint_is_found_as_it_was_saved(self, tmp_path: Path) -> None:
        """Handlers that are awaited and plain ones find bytes and data as they were saved."""
        seen: list[Any] = []

        async def handler(ctx: Any) -> None:
            seen.append(await ctx.load_checkpoint())
            await ctx.checkpoint(b"\x00\xff" if ctx.iteration == 0 else {"history": [1, {"a": None}]})
            seen.append(await ctx.load_checkpoint())
            ctx.complete() if ctx.iteration == 1 else ctx.continue_()

        def plain(ctx: Any) -> Any:
            seen.append(ctx.load_checkpoint())
            ctx.checkpoint(b"\x00\xff" if ctx.iteration == 0 else {"history": [1, {"a": None}]})
            seen.append(ctx.load_checkpoint())
            return ctx.complete() if ctx.iteration == 1 else ctx.continue_()

        wanted = [None, b"\x00\xff", b"\x00\xff", {"history": [1, {"a": None}]}]
        async with self.open_store(tmp_path) as store:
            process = WorkerProcess(store=store)
            for name, each in (("run", handler), ("other", plain)):
                assert (await self._run(process, _loop(each, 2), run_id=name)).status == "completed"
                assert seen == wanted
                seen.clear()

    async def test_row_92_output_of_an_iteration_is_the_input_of_the_next(self, tmp_path: Path) -> None:
        """The first iteration gets what the run was started with, each other one what the one before gave."""
        inputs: list[Any] = []

        async def handler(ctx: Any) -> Any:
            inputs.append(ctx.input())
            return ctx.complete() if ctx.iteration == 3 else ctx.continue_({"n": ctx.iteration, "of": [ctx.input()]})

        async with self.open_store(tmp_path) as store:
            await self._run(WorkerProcess(store=store), _loop(handler, 9), given="first")
        assert inputs[0] == "first"
        assert inputs[1] == {"n": 0, "of": ["first"]}
        assert inputs[3]["n"] == 2

    async def test_row_92_delay_of_a_loop_survives_the_worker(self, tmp_path: Path) -> None:
        """The next iteration is not begun before its time, by whichever worker, and it is begun."""
        began: list[float] = []

        async def handler(ctx: Any) -> Any:
            began.append(anyio.current_time())
            return ctx.complete() if ctx.iteration else ctx.continue_()

        async with self.open_store(tmp_path) as store:
            definition = _loop(handler, 2, loop_delay=0.4)
            first = self.make_worker(store, workflows=definition)
            await workflows.start(store, definition, run_id="run")
            await first.run(until_idle=True)
            assert len(began) == 1
            state = (await workflows.show(store, "run")).steps["loop"]
            assert (state.status, state.iteration) == ("queued", 1)
            run = await self._finish(store, definition)
        assert run.status == "completed"
        assert began[1] - began[0] >= 0.35  # the clock of a server may be another one

    # -- ends -------------------------------------------------------------------------------------

    async def test_row_89_ends_are_final_against_a_worker_that_comes_too_late(self, tmp_path: Path) -> None:
        """A worker that lost its step is refused, whatever it writes, and the step ends once."""
        refused: list[str] = []
        async with self.open_store(tmp_path) as store:
            process = WorkerProcess(store=store)

            async def handler(ctx: Any) -> Any:
                if ctx.payload.redelivered:
                    assert await ctx.load_checkpoint() == "mine"
                    return ctx.complete("second")
                await ctx.checkpoint("mine")
                await process.take_over("run/loop")
                try:
                    await ctx.checkpoint("stale")
                except Fenced as e:
                    refused.append(type(e).__name__)
                return ctx.complete("first")

            definition = _loop(handler, 3)
            await workflows.start(process, definition, run_id="run")
            with anyio.move_on_after(0.5):
                await self.make_worker(process, workflows=definition).run()
            await process.revive()
            run = await self._finish(process, definition)
            ends = [e for e in await store.read("run/loop") if _is_end(e.body)]  # type: ignore[attr-defined]
        assert refused == ["Fenced"]
        assert (run.status, run.output) == ("completed", "second")
        assert len(ends) == 1

    async def test_row_93_output_goes_downstream_once_with_two_parents_at_the_same_moment(self, tmp_path: Path) -> None:
        """Two steps that end beside each other make the one behind them once, with the outputs of both."""
        ran: Counter[str] = Counter()
        ends = 0

        async def work(ctx: Any) -> Any:
            nonlocal ends
            ran[ctx.payload.step] += 1
            if ctx.payload.step in ("left", "right"):
                ends += 1
                with anyio.move_on_after(5):
                    while ends % 2:
                        await anyio.lowlevel.checkpoint()
            return ctx.complete([ctx.payload.step, ctx.input()])

        async with self.open_store(tmp_path) as store:
            for n in range(5):
                ran.clear()
                run = await self._run(WorkerProcess(store=store), _diamond(work), run_id=f"run{n}", given=n)
                assert run.status == "completed"
                assert ran == {"plan": 1, "left": 1, "right": 1, "join": 1}
                planned = ["plan", n]
                wanted = {"left": ["left", planned], "right": ["right", planned]}
                assert run.output == ["join", wanted]

    async def test_row_93_failed_step_fails_the_run(self, tmp_path: Path) -> None:
        """What depends on a failed step does not begin; the retry policy was used up before."""
        attempts: list[int] = []

        async def work(ctx: Any) -> Any:
            if ctx.payload.step != "left":
                return ctx.complete()
            attempts.append(ctx.attempt)
            return ctx.fail("no")

        async with self.open_store(tmp_path) as store:
            run = await self._run(WorkerProcess(store=store), _diamond(work, retry=workflows.RetryPolicy(3, initial=0)))
        assert attempts == [0, 1, 2]
        assert (run.status, run.error) == ("failed", "step 'left' failed: no")
        assert "join" not in run.steps

    async def test_failed_step_is_begun_again_when_a_person_asks(self, tmp_path: Path) -> None:
        """It goes on at the iteration that failed, with its checkpoint, and so does the run."""
        broken = True

        async def handler(ctx: Any) -> Any:
            found = await ctx.load_checkpoint()
            if ctx.iteration == 0:
                await ctx.checkpoint("kept")
                return ctx.continue_("input")
            if broken:
                raise OSError("not now")
            return ctx.complete([found, ctx.input()])

        async with self.open_store(tmp_path) as store:
            definition = _loop(handler, 3)
            assert (await self._run(WorkerProcess(store=store), definition)).status == "failed"
            broken = False
            await workflows.retry(store, "run", "loop")
            run = await self._finish(store, definition, until="completed")
        assert (run.status, run.output) == ("completed", ["kept", "input"])

    # -- crashes ----------------------------------------------------------------------------------

    async def test_row_94_bound_is_exact_wherever_a_worker_dies(self, tmp_path: Path) -> None:
        """A loop of three iterations is one of three, and each is continued once, after a death in any write."""
        ran: Counter[int] = Counter()

        async def handler(ctx: Any) -> Any:
            ran[ctx.iteration] += 1
            return ctx.continue_(ctx.iteration)

        async def check(store: Any, run: Any, deaths: int) -> None:
            state = run.steps["loop"]
            assert (run.status, state.reason, state.iteration) == ("failed", "max_iterations", 2)
            entries = [entry.body for entry in await store.read("run/loop")]
            assert [b.why for b in entries if isinstance(b, Transition)] == ["", "continue", "continue", "failed"]
            assert set(ran) == {0, 1, 2}
            assert sum(ran.values()) <= 3 + deaths
            ran.clear()

        await self._die_everywhere(tmp_path, _loop(handler, 3), check)

    async def test_row_95_checkpoint_is_found_wherever_a_worker_dies(self, tmp_path: Path) -> None:
        """A conversation that lives in the checkpoint is that of a run that was not disturbed."""

        async def handler(ctx: Any) -> Any:
            history = await ctx.load_checkpoint() or [ctx.input()]
            if len(history) == ctx.iteration + 1:  # else the checkpoint of this iteration was saved by a worker before
                history.append(f"turn {ctx.iteration}")
                await ctx.checkpoint(history)
            return ctx.complete(history) if ctx.iteration == 2 else ctx.continue_()

        async def check(_: Any, run: Any, __: int) -> None:
            assert (run.status, run.output) == ("completed", ["hello", "turn 0", "turn 1", "turn 2"])

        await self._die_everywhere(tmp_path, _loop(handler, 3), check)

    async def test_sleep_is_slept_once_wherever_a_worker_dies(self, tmp_path: Path) -> None:
        """It lasts until the time that is recorded first, and what may happen once is neither repeated nor lost."""
        did: Counter[str] = Counter()
        woken: list[Any] = []

        async def handler(ctx: Any) -> Any:
            async def do() -> None:
                did[ctx.payload.step] += 1

            try:
                await ctx.step("do", do)
            except OutcomeUnknown:
                did["unknown"] += 1
            await ctx.sleep(0.02)
            woken.append(ctx.now)
            return ctx.complete()

        async def check(store: Any, run: Any, deaths: int) -> None:
            assert run.status == "completed"
            entries = [entry.body for entry in await store.read("run/loop")]
            slept = [b.value for b in entries if isinstance(b, Outcome) and b.step_id.node == "sleep"]
            assert len(slept) == 1
            assert min(woken) >= slept[0]
            # Only a death between its intent and its outcome leaves it unknown.
            ended = any(isinstance(b, Outcome) and b.step_id.name == "do" for b in entries)
            assert did["loop"] <= 1
            assert (did["loop"] == 1 and not did["unknown"]) if ended else deaths and did["unknown"]
            did.clear()
            woken.clear()

        await self._die_everywhere(tmp_path, _loop(handler, 3), check, short_sleep=0)

    async def test_graph_of_steps_ends_the_same_wherever_a_worker_dies(self, tmp_path: Path) -> None:
        """Every step is completed once, and what a step does in ``ctx.step`` is not repeated once it is recorded."""
        did: Counter[str] = Counter()

        async def work(ctx: Any) -> Any:
            name = ctx.payload.step

            async def once() -> Any:
                did[name] += 1
                return name

            return ctx.complete([await ctx.step("do", once, effect="keyed"), ctx.input()])

        async def check(store: Any, run: Any, deaths: int) -> None:
            wanted = {"left": ["left", ["plan", "hello"]], "right": ["right", ["plan", "hello"]]}
            assert (run.status, run.output) == ("completed", ["join", wanted])
            for step in ("plan", "left", "right", "join"):
                entries = [entry.body for entry in await store.read(f"run/{step}")]
                assert sum(map(_is_end, entries)) == 1
                assert sum(isinstance(b, Outcome) and b.step_id.name == "do" for b in entries) == 1
            assert sum(did.values()) <= 4 + 2 * deaths
            did.clear()

        await self._die_everywhere(tmp_path, _diamond(work), check, slots=1)

    async def _die_everywhere(
        self, folder: Path, definition: Any, check: Callable[[Any, Any, int], Awaitable[None]], **options: Any
    ) -> None:
        """Run a workflow once for each of its writes, with a death before it and one behind it."""
        at, deaths = 1, 1
        while deaths:
            deaths = 0
            for stored in (False, True):
                place = folder / f"{at}-{stored}"
                place.mkdir()
                async with self.open_store(place) as store:
                    process = WorkerProcess(at, stored=stored, store=store)
                    run = await self._outlive(process, definition, **options)
                    await check(store, run, process.crashes)
                deaths += process.crashes
            at += self.stride
        assert at > 10

    async def _outlive(self, process: WorkerProcess, definition: Any, **options: Any) -> Any:
        with anyio.fail_after(self.patience):
            lives = 0
            while lives < _LIVES:
                lives += 1
                try:
                    await workflows.start(process, definition, "hello", run_id="run")
                    worker = self.make_worker(process, workflows=definition, **options)
                    await worker.run(until_idle=True)
                except BaseException as error:
                    if not is_crash(error):
                        raise
                    await process.revive()
                    continue
                run = await workflows.show(process.store, "run")
                if run.has_ended:
                    return run
                if any(state.not_before is not None for state in run.steps.values()):
                    lives -= 1  # it sleeps
                    await anyio.sleep(0.01)
        raise AssertionError(f"the run does not end; it is {run}")

    async def _run(self, process: Any, definition: Any, *, run_id: str = "run", given: Any = None) -> Any:
        with anyio.fail_after(self.patience):
            return await self.make_worker(process).run_workflow(definition, given, run_id=run_id)

    async def _finish(self, store: Any, definition: Any, *, until: str = "") -> Any:
        """Go on with a run until it has ended, or is what is said."""
        with anyio.fail_after(self.patience):
            async with self.make_worker(store, workflows=definition).at_work():
                while True:
                    run = await workflows.show(store, "run")
                    if run.status == until if until else run.has_ended:
                        return run
                    await anyio.sleep(0.02)


def _is_end(body: Body) -> bool:
    return isinstance(body, Transition) and body.next_node == "end"


def _loop(handler: Any, n: int, **options: Any) -> Any:
    """A workflow of one loop."""
    wf = workflows.Workflow("contract")
    step = wf.agent_loop("loop", handler).with_max_iterations(n)
    for name, value in options.items():
        getattr(step, f"with_{name}")(value)
    return wf.build()


def _diamond(handler: Any, **options: Any) -> Any:
    """A workflow of four steps: one, two beside each other, and one behind both."""
    wf = workflows.Workflow("contract")
    for name, needs in (("plan", ()), ("left", ("plan",)), ("right", ("plan",)), ("join", ("left", "right"))):
        step = wf.step(name, handler, depends_on=needs)
        for option, value in options.items():
            getattr(step, f"with_{option}")(value)
    return wf.build()
