"""What queues cost: with much in them, and for runs that yield after each iteration.

`python -m contrib.bench.taking` at the top of a checkout needs the kernel and the plugin sqlite. What is compared takes
turns, so that a busy machine slows both; what is printed are medians.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from locus import Agent, Message, ModelRequest, ModelResponse, Role, tool
from locus.core.journal import Submitted
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore

FIELDS = ("what", "anchor", "ours", "ratio", "goal")


class Calling:
    """Calls a tool so many times, then answers; it costs the same however long the conversation is."""

    name = "bench:calling"

    def __init__(self, calls: int) -> None:
        self._left = calls

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        """The next answer."""
        if not self._left:
            return ModelResponse(message=Message(Role.ASSISTANT, "done"))
        self._left -= 1
        asked = ToolCall(f"c{self._left}", "read", {"n": self._left})
        return ModelResponse(message=Message(Role.ASSISTANT, (asked,)), stop_reason="tool_calls")


@tool(effect="once")
async def read(n: int) -> str:
    """Read an item."""
    return "x" * 100


def agent(store: Any, calls: int) -> Agent[None, str]:
    """An agent that works so many iterations, and one to answer."""
    return Agent(Calling(calls), tools=[read], checkpointer=store, name="bench", max_iterations=10**6)


def row(what: str, anchor: Sequence[float], ours: Sequence[float], goal: str) -> tuple[str, ...]:
    """One line of the table, from seconds."""
    left, right = median(anchor), median(ours)
    return what, f"{left * 1e3:.2f} ms", f"{right * 1e3:.2f} ms", f"{right / left:.2f}", goal


async def takes(folder: Path, rounds: int, few: int, many: int) -> tuple[str, ...]:
    """Take, claim, release and done with many threads in the queue, against the same with few."""
    turn = Submitted(run_id="run", prompt=Message(Role.USER, "Do it."), queue="q")
    taken: dict[int, list[float]] = {few: [], many: []}
    stores = {}
    for count in taken:
        path = folder / f"{count}.db"
        stores[count] = store = SqliteStore(path, sync="normal")
        begun = 0
        while begun < count + rounds:
            async with anyio.create_task_group() as group:
                for n in range(begun, min(begun + 1000, count + rounds)):
                    group.start_soon(partial(store.submit, f"t{n}", [turn], queue="q"))
            begun += 1000
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for _ in range(rounds):
        for count, store in stores.items():
            started = time.perf_counter()
            offer = await store.take(["q"], "bench")
            assert offer is not None
            await store.release(await store.claim(offer.thread_id, "bench"))
            assert await offer.done()
            taken[count].append(time.perf_counter() - started)
    for store in stores.values():
        await store.aclose()
    return row(f"sqlite, take, claim and done, of {many} against of {few}", taken[few], taken[many], "1.25")


async def yields(name: str, store: Any, calls: int, part: int) -> tuple[str, ...]:
    """The last segments of a run that yields after each iteration, against its first."""
    one, took = agent(store, calls), list[float]()
    await one.submit("x", thread_id="t")
    is_open = True
    while is_open:
        started = time.perf_counter()
        is_open = (await one.resume("t", yield_after=1, max_attempts=5)).is_open
        took.append(time.perf_counter() - started)
    what = f"{name}, segment of one iteration, last {part} of {calls} against the first"
    return row(what, took[5 : 5 + part], took[-part - 1 : -1], "1.2")


async def measure(folder: Path, *, quick: bool) -> list[tuple[str, ...]]:
    """All of it."""
    calls, part = (120, 20) if quick else (400, 40)
    rows = [await takes(folder, 100 if quick else 500, 1_000, 10_000 if quick else 100_000)]
    rows.append(await yields("memory", MemoryStore(), calls, part))
    async with SqliteStore(folder / "yields.db", sync="normal") as store:
        rows.append(await yields("sqlite", store, calls, part))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What queues cost.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the data lies meanwhile; the disk is measured, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rows = anyio.run(lambda: measure(Path(folder), quick=given.quick))
    widths = [max(len(name), *(len(each[n]) for each in rows)) for n, name in enumerate(FIELDS)]
    for each in (FIELDS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
