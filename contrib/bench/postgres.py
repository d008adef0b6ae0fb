"""What journals and queues in PostgreSQL cost, as ratios to what the same server does in the same minutes.

`python -m contrib.bench.postgres` at the top of a checkout starts a server of its own, whose commits reach the disk.
Anchors and subjects take turns; what is printed are medians.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import anyio
import asyncpg
from contrib.bench.engines import FIELDS, Recording, agent, row, single
from plugins.postgres.tests.server import Server

from locus.core.journal import Submitted
from locus.core.messages import Message, Role
from locus.journal import Appended
from locus_kit.entry_json import to_json
from locus_kit.packing import pack
from locus_plugin_postgres import PostgresStore

#: As many threads as are wanted, each like the one that was submitted.
_COPIES = """
INSERT INTO {s}.threads (key, name, born, token, abandoned, created, updated, head, tip, status, node, about)
SELECT sha256(n::text::bytea), name, born, token, abandoned, created, updated, head, tip, status, node, about
FROM {s}.threads, generate_series(2, {count}) n;
INSERT INTO {s}.queue SELECT t.id, queue, priority, due, '', '', 0, false
FROM {s}.queue, {s}.threads t WHERE t.id <> thread;
ANALYZE
"""


async def appends(server: Server, rounds: int) -> dict[str, str]:
    """One append after another, against an insert of as many bytes."""
    recording = Recording()
    await agent(recording, 50).run("x")
    batches = recording.batches[3:-3]
    bodies = [pack(to_json(batch)).body for batch in batches]
    anchor: list[float] = []
    ours: list[float] = []
    db = await asyncpg.connect(server.url())
    await db.execute("CREATE TABLE raw (n bigint PRIMARY KEY, body bytea NOT NULL)")
    async with PostgresStore(server.url(), schema="bench") as store:
        claim = await store.claim("t", "bench")
        for n in range(rounds):
            started = time.perf_counter()
            await db.execute("INSERT INTO raw VALUES ($1, $2)", n, bodies[n % len(bodies)])
            anchor.append(time.perf_counter() - started)
            started = time.perf_counter()
            assert await store.append(claim, batches[n % len(batches)]) is Appended.OK
            ours.append(time.perf_counter() - started)
    await db.close()
    return row("postgres, append, p50, against an insert", anchor, ours, "3")


async def takes(server: Server, rounds: int, few: int, many: int) -> dict[str, str]:
    """A take and its end with many threads in the queue, against the same with few."""
    taken: dict[int, list[float]] = {few: [], many: []}
    turn = Submitted(run_id="run", prompt=Message(Role.USER, "Do it."), queue="q")
    async with PostgresStore(server.url(), schema="few") as one, PostgresStore(server.url(), schema="many") as other:
        for count, store in ((few, one), (many, other)):
            await store.submit("first", [turn], queue="q")
            server.sql(_COPIES.replace("{s}", store.settings.schema).replace("{count}", str(count)))
        for _ in range(rounds):
            for count, store in ((few, one), (many, other)):
                started = time.perf_counter()
                offer = await store.take(["q"], "bench")
                assert offer is not None
                assert await offer.back()
                taken[count].append(time.perf_counter() - started)
    return row(f"postgres, take and give back, of {many} against of {few}", taken[few], taken[many], "1.25")


async def recoveries(server: Server, rounds: int, lease: float) -> list[dict[str, str]]:
    """From the last sign of life of a worker to the next claim; and from a server that answers to an append."""
    late, back = [], []
    turn = Submitted(run_id="run", prompt=Message(Role.USER, "Do it."), queue="q")
    for n in range(rounds):
        schema = f"recovery_{n}"
        dies = PostgresStore(server.url(), schema=schema, lease=lease)
        async with dies, PostgresStore(server.url(), schema=schema, lease=lease) as follows:
            await dies.submit("t", [turn], queue="q")
            assert await dies.take(["q"], "dies") is not None
            await dies.claim("t", "dies")
            dies.renew_while(lambda: False)
            started = time.perf_counter()
            assert await follows.take(["q"], "follows", lease + 60) is not None
            claim = await follows.claim("t", "follows")
            late.append(time.perf_counter() - started - lease)
            await anyio.to_thread.run_sync(server.stop)
            came: list[float] = []

            async def append(claim: Any = claim, store: PostgresStore = follows, came: list[float] = came) -> None:
                assert await store.append(claim, [turn]) is Appended.OK
                came.append(time.perf_counter())

            async with anyio.create_task_group() as group:
                group.start_soon(append)
                await anyio.to_thread.run_sync(server.start)
                answers = time.perf_counter()
            back.append(max(came[0] - answers, 0.0))
    return [
        single("postgres, recovery beyond the lease, worst", f"{max(late):.2f} s", "0.5 s"),
        single("postgres, append after a restarted server answers, worst", f"{max(back):.2f} s", "1 s"),
    ]


async def measure(server: Server, *, quick: bool) -> list[dict[str, str]]:
    """All of it."""
    rounds = 200 if quick else 2000
    rows = [await appends(server, rounds), await takes(server, rounds // 2, 1_000, 100_000)]
    return [*rows, *await recoveries(server, 3 if quick else 10, 1.0)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What journals and queues in PostgreSQL cost.")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    server = Server(fsync="on", autovacuum="on")
    try:
        server.start()
        rows = anyio.run(lambda: measure(server, quick=quick))
    finally:
        server.close()
    widths = [max(len(name), *(len(each[name]) for each in rows)) for name in FIELDS]
    for each in (dict(zip(FIELDS, FIELDS, strict=True)), *rows):
        print("  ".join(each[name].ljust(width) for name, width in zip(FIELDS, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
