"""What a journal on disk costs, as ratios to what the same machine does beside it, in the same run.

`python contrib/bench/journal.py` needs the kernel, the test kit and the sqlite plugin. Anchors and subjects take turns,
so that a busy machine slows both; what is printed are medians. `--quick` takes a tenth of the time, `--json` is for
programs.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from locus import Agent, tool
from locus.core.journal import Body
from locus.journal import MemoryStore
from locus_kit.entry_json import to_bytes, to_json
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.blobs import unpack
from locus_testkit import ScriptedModel, call, never

FIELDS = ("what", "anchor", "ours", "ratio", "goal")


def agent(store: Any, script: Sequence[Any], results: Sequence[str] = ("x" * 100,)) -> Agent[None, str]:
    """An agent with one tool, whose body may happen once only."""

    @tool
    async def read(n: int) -> str:
        """Read an item."""
        return results[n % len(results)]

    return Agent(ScriptedModel(*script), tools=[read], checkpointer=store, max_iterations=10**6)


def calls(count: int) -> list[Any]:
    return [call("read", n=n) for n in range(count)]


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"


def row(what: str, anchor: float, ours: float, goal: str, show: Any = us) -> dict[str, str]:
    return dict(zip(FIELDS, (what, show(anchor), show(ours), f"{ours / anchor:.2f}", goal), strict=True))


class Recording(MemoryStore):
    """Keeps the batches that a run appends."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[Body, ...]] = []

    async def append(self, claim: Any, bodies: Sequence[Body]) -> Any:
        self.batches.append(tuple(bodies))
        return await super().append(claim, bodies)


def bare(path: Path, sync: str) -> sqlite3.Connection:
    """The same format and durability, without the seam."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(f"PRAGMA synchronous={sync}")
    db.execute("PRAGMA wal_autocheckpoint=256")
    db.execute("CREATE TABLE m (n INTEGER PRIMARY KEY, body BLOB)")
    return db


async def batches() -> tuple[list[tuple[Body, ...]], list[bytes]]:
    """What the iterations of a run append, and their JSON."""
    recording = Recording()
    await agent(recording, [*calls(50), "done"]).run("x")
    made = recording.batches[3:-3]
    return made, [to_bytes(to_json(batch)) for batch in made]


async def append(folder: Path, sync: Any, rounds: int) -> list[dict[str, str]]:
    """One append after another: an INSERT of JSON that is encoded already, against the seam."""
    made, texts = await batches()
    db = bare(folder / f"bare-{sync}.db", sync)
    anchor: list[float] = []
    ours: list[float] = []
    async with SqliteStore(folder / f"seam-{sync}.db", sync=sync) as store:
        claim = await store.claim("t", "bench")
        for n in range(rounds):
            started = time.perf_counter()
            db.execute("INSERT INTO m VALUES (?, ?)", (n, texts[n % len(texts)]))
            anchor.append(time.perf_counter() - started)
            started = time.perf_counter()
            await store.append(claim, made[n % len(made)])
            ours.append(time.perf_counter() - started)
    db.close()
    goal = "2.5" if sync == "full" else ""
    last = [statistics.quantiles(each, n=20)[-1] for each in (anchor, ours)]
    return [
        row(f"append, sync={sync}, p50", statistics.median(anchor), statistics.median(ours), goal),
        row(f"append, sync={sync}, p95", last[0], last[1], ""),
    ]


async def together(folder: Path, sync: Any, writers: int, each: int) -> dict[str, str]:
    """Appends of many threads at once, against as many INSERTs one after another; seconds for all."""
    made, texts = await batches()
    db = bare(folder / f"alone-{sync}.db", sync)
    started = time.perf_counter()
    for n in range(writers * each):
        db.execute("INSERT INTO m VALUES (?, ?)", (n, texts[n % len(texts)]))
    anchor = time.perf_counter() - started
    db.close()
    async with SqliteStore(folder / f"together-{sync}.db", sync=sync) as store:
        claims = [await store.claim(str(n), "bench") for n in range(writers)]

        async def write(claim: Any) -> None:
            for n in range(each):
                await store.append(claim, made[n % len(made)])

        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for claim in claims:
                group.start_soon(write, claim)
        ours = time.perf_counter() - started
    count = writers * each
    return row(f"append, sync={sync}, {writers} threads at once", anchor / count, ours / count, "")


async def iterations(folder: Path, sync: Any, rounds: int) -> list[dict[str, str]]:
    """CPU of an iteration, every transition committed, by the length of the run."""
    found: dict[int, float] = {}
    for count in (10, 100, 1000):
        taken: list[float] = []
        for n in range(max(1, rounds // count)):
            async with SqliteStore(folder / f"run-{sync}-{count}-{n}.db", sync=sync) as store:
                one = agent(store, ["warm", *calls(count), "done"])
                await one.run("x")
                gc.collect()
                started = time.process_time()
                await one.run("x")
                taken.append((time.process_time() - started) / count)
        found[count] = statistics.median(taken)
    what = f"CPU of an iteration, sync={sync}, of"
    return [
        row(f"{what} 100 against of 10", found[10], found[100], ""),
        row(f"{what} 1,000 against of 100", found[100], found[1000], "1.2"),
    ]


async def disk(folder: Path) -> list[dict[str, str]]:
    """Bytes for iterations whose tool returns 2,000 bytes that do not compress beyond their digits."""
    sizes = []
    for count in (200, 400):
        path = folder / f"disk-{count}.db"
        async with SqliteStore(path, sync="normal") as store:
            await agent(store, [*calls(count), "done"], [os.urandom(1000).hex() for _ in range(count)]).run("x")
        sizes.append(path.stat().st_size)

    def show(size: float) -> str:
        return f"{size / 1e6:.2f} MB"

    return [
        row("disk, 400 iterations of 2 KB against 3 MB", 3e6, sizes[1], "1", show),
        row("disk, 400 iterations against 200", sizes[0], sizes[1], "2", show),
    ]


async def resume(folder: Path, rounds: int) -> list[dict[str, str]]:
    """From `resume` of a thread with 1,000 iterations to its model call, against two ways to read the thread."""
    path, reached = folder / "resume.db", anyio.Event()

    def stuck(_: Any) -> Any:
        reached.set()
        return never

    async with SqliteStore(path, sync="normal") as store:
        async with anyio.create_task_group() as group:
            group.start_soon(_run, agent(store, [*calls(1000), stuck]))
            await reached.wait()
            group.cancel_scope.cancel()
        head = (await store.threads())[0].head
    parsing: list[float] = []
    reading: list[float] = []
    ours: list[float] = []
    asked: list[float] = []

    def answer(_: Any) -> Any:
        asked.append(time.perf_counter())
        return "done"

    db = sqlite3.connect(path)
    for n in range(rounds):
        gc.collect()
        started = time.perf_counter()
        for (body,) in db.execute("SELECT body FROM journal WHERE thread='t'"):
            unpack(body, {})
        parsing.append(time.perf_counter() - started)
        async with SqliteStore(path, sync="normal") as store:
            started = time.perf_counter()
            await store.read("t")
            reading.append(time.perf_counter() - started)
            await store.fork("t", head, f"again {n}")
            one = agent(store, [answer])
            gc.collect()
            started = time.perf_counter()
            await one.resume(f"again {n}")
            ours.append(asked[-1] - started)
    db.close()

    def show(seconds: float) -> str:
        return f"{seconds * 1e3:.1f} ms"

    what = "resume of 1,000 iterations against"
    return [
        row(f"{what} parsing their JSON", statistics.median(parsing), statistics.median(ours), "2", show),
        row(f"{what} reading their entries", statistics.median(reading), statistics.median(ours), "2", show),
    ]


async def _run(one: Agent[None, str]) -> None:
    await one.run("x", thread_id="t")


async def measure(folder: Path, *, quick: bool) -> list[dict[str, str]]:
    """All of it."""
    rounds = 200 if quick else 2000
    rows: list[dict[str, str]] = []
    for sync in ("full", "normal"):
        rows += await append(folder, sync, rounds)
        rows.append(await together(folder, sync, 50, rounds // 50))
        rows += await iterations(folder, sync, rounds // 2)
    rows += await disk(folder)
    rows += await resume(folder, 3 if quick else 9)
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a journal on disk costs.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the files lie meanwhile; the disk is what is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rows = anyio.run(lambda: measure(Path(folder), quick=given.quick))
    if given.json:
        print(json.dumps(rows))
        return
    widths = [max(len(name), *(len(each[name]) for each in rows)) for name in FIELDS]
    for each in (dict(zip(FIELDS, FIELDS, strict=True)), *rows):
        print("  ".join(each[name].ljust(width) for name, width in zip(FIELDS, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
