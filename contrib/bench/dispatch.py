"""What it costs that each iteration of a workflow's agent is dispatched by itself, on every store that keeps queues.

`python -m contrib.bench.dispatch` at the top of a checkout starts its own servers of NATS and PostgreSQL, whose commits
reach the disk. Both ways to dispatch take turns on one store, so that a busy machine slows both; what is printed are
medians, of wall time and of CPU time of this process, which does not contain the servers'.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import anyio
from contrib.bench.taking import agent
from plugins.postgres.tests.server import Server

from locus.journal import MemoryStore
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_postgres import PostgresStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_workflow import StepEvent, Worker, Workflow, WorkflowDef

FIELDS = ("store", "what", "anchor", "ours", "ratio", "anchor, CPU", "ours, CPU", "ratio, CPU", "load", "goal")

#: Makes an empty store.
Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]

#: Wall time and CPU time, in seconds.
Took: TypeAlias = tuple[float, float]

_numbers = count()


@asynccontextmanager
async def open_memory() -> AsyncIterator[MemoryStore]:
    """A store in memory."""
    yield MemoryStore()


def row(store: str, what: str, anchor: Iterable[Took], ours: Iterable[Took], goal: str) -> tuple[str, ...]:
    """One line of the table."""
    cells: list[str] = []
    for before, after in zip(zip(*anchor, strict=True), zip(*ours, strict=True), strict=True):
        left, right = median(before), median(after)
        cells += [f"{left * 1e3:.2f} ms", f"{right * 1e3:.2f} ms", f"{right / left:.2f}"]
    return (store, what, *cells, f"{os.getloadavg()[0]:.1f}", goal)


def review(store: Any, calls: int, dispatch: Any) -> WorkflowDef:
    """A workflow of one agent, which calls a tool so many times."""
    wf = Workflow("bench")
    wf.agent_loop("review", agent(store, calls)).with_max_iterations(calls + 5).with_dispatch(dispatch)
    return wf.build()


async def run(store: Any, calls: int, dispatch: str, hooks: Iterable[Any] = (), **options: Any) -> Took:
    """What one iteration took."""
    started = time.perf_counter(), time.process_time()
    done = await Worker(store, hooks=hooks, **options).run_workflow(review(store, calls, dispatch), "x")
    assert done.status == "completed", done.error
    return (time.perf_counter() - started[0]) / calls, (time.process_time() - started[1]) / calls


async def dispatches(name: str, make: Opening, calls: int, rounds: int, **options: Any) -> tuple[str, ...]:
    """An agent that is dispatched for each iteration, against one that is dispatched once."""
    took: dict[str, list[Took]] = {"run": [], "iteration": []}
    for _ in range(rounds + 1):
        for dispatch, into in took.items():
            async with make() as store:
                await store.threads()
                into.append(await run(store, calls, dispatch, **options))
    what = f"iteration of {calls}, dispatched by itself against all at once"
    what += "".join(f", {name}={value}" for name, value in options.items())
    return row(name, what, took["run"][1:], took["iteration"][1:], "3")


async def growth(name: str, make: Opening, calls: int, rounds: int) -> tuple[str, ...]:
    """The last tenth of the iterations, each dispatched by itself, against the first."""
    first, last = list[Took](), list[Took]()
    for _ in range(rounds):
        began: list[Took] = []

        def note(event: StepEvent, began: list[Took] = began) -> None:
            if event.type == "step.started":
                began.append((time.perf_counter(), time.process_time()))

        async with make() as store:
            await run(store, calls, "iteration", [note])
        took = [(there[0] - here[0], there[1] - here[1]) for here, there in pairwise(began)]
        first += took[5 : 5 + calls // 10]
        last += took[-calls // 10 :]
    return row(name, f"last {calls // 10} iterations of {calls} against the first", first, last, "1.2")


async def measure(makes: dict[str, Opening], *, quick: bool) -> list[tuple[str, ...]]:
    """All of it."""
    rounds = 3 if quick else 9
    rows = [await dispatches(name, make, 100, rounds) for name, make in makes.items()]
    rows += [await dispatches(name, make, 40, rounds, stay=0) for name, make in makes.items()]
    return rows + [await growth(name, make, 400, 1 if quick else 3) for name, make in makes.items()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What it costs to dispatch each iteration by itself.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the data lies meanwhile; the disk is measured, too")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.folder)))
        nats, postgres = stack.enter_context(DevServer(folder / "nats")), Server(fsync="on", autovacuum="on")
        stack.callback(postgres.close)
        postgres.start()
        makes: dict[str, Opening] = {
            "memory": open_memory,
            "sqlite, normal": lambda: SqliteStore(folder / f"{next(_numbers)}.db", sync="normal"),
            "sqlite, full": lambda: SqliteStore(folder / f"{next(_numbers)}.db", sync="full"),
            "nats": lambda: NatsStore(nats.url, NatsSettings(prefix=f"bench{next(_numbers)}")),
            "postgres": lambda: PostgresStore(postgres.url(), schema="bench"),
        }
        rows = anyio.run(lambda: measure(makes, quick=given.quick))
    widths = [max(len(name), *(len(each[n]) for each in rows)) for n, name in enumerate(FIELDS)]
    for each in (FIELDS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
