"""What journals on an engine cost, as ratios to what the same machine does beside it, in the same minutes.

`python contrib/bench/engines.py` needs the kernel, the test kit and the plugins sqlite and nats, and starts its own
server on this machine. Anchors and subjects take turns, so that a busy machine slows both; what is printed are medians.
`--quick` takes a tenth of the time, `--queued 100000` makes the long queue longer, `--json` is for programs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import nats

from locus import Agent, tool
from locus.core.errors import ThreadBusy
from locus.core.journal import Body, Submitted
from locus.core.messages import Message, Role
from locus.journal import Appended, Claim, MemoryStore, Offer
from locus_kit.entry_json import to_json
from locus_kit.packing import pack
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

FIELDS = ("what", "anchor", "ours", "ratio", "goal")

#: What a message of the store has in its header, about.
_HEADER = "x" * 500


class Recording(MemoryStore):
    """Keeps the batches that a run appends."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[Body, ...]] = []

    async def append(self, claim: Any, bodies: Sequence[Body]) -> Any:
        self.batches.append(tuple(bodies))
        return await super().append(claim, bodies)


def agent(store: Any, count: int) -> Agent[None, str]:
    """An agent with one tool, whose body may happen once only, and which it calls so many times."""

    @tool(effect="once")
    async def read(n: int) -> str:
        """Read an item."""
        return "x" * 100

    turns = [*(call("read", n=n) for n in range(count)), "done"]
    model = ScriptedModel(script=lambda request: turns, after="repeat")
    return Agent(model, tools=[read], checkpointer=store, max_iterations=10**6)


def row(what: str, anchor: Sequence[float], ours: Sequence[float], goal: str) -> dict[str, str]:
    """One line of the table, from seconds."""
    left, right = statistics.median(anchor), statistics.median(ours)
    shown = (what, f"{left * 1e3:.2f} ms", f"{right * 1e3:.2f} ms", f"{right / left:.2f}", goal)
    return dict(zip(FIELDS, shown, strict=True))


def single(what: str, ours: str, goal: str) -> dict[str, str]:
    """One line of the table that has no anchor."""
    return dict(zip(FIELDS, (what, "", ours, "", goal), strict=True))


async def appends(server: DevServer, what: str, rounds: int) -> dict[str, str]:
    """One append after another, against a publish with the same condition and as many bytes."""
    recording = Recording()
    await agent(recording, 50).run("x")
    batches = recording.batches[3:-3]
    bodies = [pack(to_json(batch)).body for batch in batches]
    anchor: list[float] = []
    ours: list[float] = []
    client = await nats.connect(server.url)
    stream = {"name": "RAW", "subjects": ["raw.>"], "storage": "file"}
    await client.request("$JS.API.STREAM.CREATE.RAW", json.dumps(stream).encode())
    seq = 0
    async with NatsStore(server.url, NatsSettings(prefix="bench")) as store:
        claim = await store.claim("t", "bench")
        for n in range(rounds):
            headers = {
                "Locus": _HEADER,
                "Nats-Expected-Last-Subject-Sequence": str(seq),
                "Nats-Expected-Last-Subject-Sequence-Subject": "raw.t.>",
            }
            started = time.perf_counter()
            answer = await client.request("raw.t.e", bodies[n % len(bodies)], headers=headers)
            anchor.append(time.perf_counter() - started)
            seq = json.loads(answer.data)["seq"]
            started = time.perf_counter()
            assert await store.append(claim, batches[n % len(batches)]) is Appended.OK
            ours.append(time.perf_counter() - started)
    await client.close()
    return row(f"nats, append, {what}, p50, against a publish", anchor, ours, "2.0")


async def iterations(server: DevServer, folder: Path, sync: Any, rounds: int, count: int) -> dict[str, str]:
    """An iteration of an agent, against one on SQLite, from start to end of a run."""
    anchor: list[float] = []
    ours: list[float] = []
    async with (
        SqliteStore(folder / f"{sync}.db", sync=sync) as beside,
        NatsStore(server.url, NatsSettings(prefix="bench")) as store,
    ):
        for n in range(rounds + 1):
            for kept, into in ((beside, anchor), (store, ours)):
                one = agent(kept, count)
                started = time.perf_counter()
                await one.run("x", thread_id=f"{sync} {n}")
                into.append((time.perf_counter() - started) / count)
    goal = "2.5" if sync == "normal" else "3"
    return row(f"nats, iteration of an agent, against sqlite with sync={sync}", anchor[1:], ours[1:], goal)


async def growth(server: DevServer, rounds: int) -> dict[str, str]:
    """An iteration of a run of 400, against one of a run of 100."""
    taken: dict[int, list[float]] = {100: [], 400: []}
    async with NatsStore(server.url, NatsSettings(prefix="bench")) as store:
        for n in range(rounds):
            for count, into in taken.items():
                started = time.perf_counter()
                await agent(store, count).run("x", thread_id=f"growth {count} {n}")
                into.append((time.perf_counter() - started) / count)
    return row("nats, iteration of 400 against of 100", taken[100], taken[400], "1.2")


def resident(server: DevServer) -> int:
    """Bytes of memory that the server's process has."""
    assert server.process is not None
    found = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return 1024 * next(int(line.split()[1]) for line in found.splitlines() if line.startswith("VmRSS"))


async def at_once(count: int, tasks: int, do: Callable[[int], Awaitable[object]]) -> float:
    """Seconds in which so many tasks have done something so many times in all."""
    numbers = iter(range(count))

    async def work() -> None:
        for n in numbers:
            await do(n)

    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(tasks):
            group.start_soon(work)
    return time.perf_counter() - started


def submission(n: int) -> Submitted:
    """A turn that is handed in."""
    return Submitted(run_id=f"run-{n}", prompt=Message(Role.USER, "Check the order."), queue="q")


async def fill(server: DevServer, store: NatsStore, count: int) -> list[dict[str, str]]:
    """Submit so many runs, against publishes of as many bytes; what each takes of the server's memory and disk."""
    client = await nats.connect(server.url)
    await client.request("$JS.API.STREAM.CREATE.FILL", b'{"name": "FILL", "subjects": ["fill.>"], "storage": "file"}')
    body = pack(to_json([submission(0)])).body
    await store.threads()
    before = resident(server)

    async def publish(n: int) -> None:
        await client.request(f"fill.{n}", body, headers={"Locus": _HEADER})

    async def submit(n: int) -> None:
        assert await store.submit(f"t{n}", [submission(n)], queue="q")

    raw = await at_once(5_000, 64, publish) / 5_000
    await client.request("$JS.API.STREAM.DELETE.FILL")
    ours = await at_once(count, 64, submit) / count
    info = json.loads((await client.request("$JS.API.STREAM.INFO.MANY", b"")).data)
    await client.close()
    memory, disk = (resident(server) - before) / count, info["state"]["bytes"] / count - len(body)
    return [
        row(f"nats, submit of {count}, 64 at a time, against publishes", [raw], [ours], "2.0"),
        single(f"nats, memory of the server for a queued run of {count}", f"{memory:.0f} B", "1000 B"),
        single(f"nats, disk for a queued run of {count}, overhead", f"{disk:.0f} B", "500 B"),
    ]


async def takes(server: DevServer, rounds: int, many: int) -> list[dict[str, str]]:
    """A take, a claim and their ends with many threads in the queue, against the same with few."""
    few = 1_000
    taken: dict[int, list[float]] = {few: [], many: []}
    async with NatsStore(server.url, NatsSettings(prefix="many")) as store:
        rows = await fill(server, store, many)
    async with (
        NatsStore(server.url, NatsSettings(prefix="few")) as one,
        NatsStore(server.url, NatsSettings(prefix="many")) as other,
    ):
        for n in range(few):
            await one.submit(f"t{n}", [submission(n)], queue="q")
        started = time.perf_counter()
        assert (await other.depth("q")).ready == many
        rows.append(single(f"nats, first look at {many} queued", f"{time.perf_counter() - started:.1f} s", ""))

        async def take(store: NatsStore) -> None:
            offer = await store.take(["q"], "bench", 10)
            assert offer is not None
            await store.release(await store.claim(offer.thread_id, "bench"))
            assert await offer.done()

        for n in range(min(rounds, few // 2)):
            for count, store in ((few, one), (many, other))[:: 1 if n % 2 else -1]:
                started = time.perf_counter()
                await take(store)
                taken[count].append(time.perf_counter() - started)
        rows.append(row(f"nats, take and its end, of {many} against of {few}", taken[few], taken[many], "1.25"))
        left = min(2_000, many // 2)
        together = await at_once(left, 64, lambda n: take(other)) / left
        rows.append(row("nats, the same of 64 tasks at a time, against of one", taken[many], [together], "0.2"))
    return rows


async def recovery(server: DevServer, rounds: int) -> list[dict[str, str]]:
    """How long a thread waits when its worker dies, beyond the lease; and an append, once its server listens again."""
    lease, settings = 2.0, NatsSettings(prefix="recovery", lease=2.0)
    beyond: list[float] = []
    after: list[float] = []
    for n in range(rounds):
        dead = NatsStore(server.url, settings)
        async with NatsStore(server.url, settings) as other:
            await other.submit(f"t{n}", [submission(n)], queue="q")
            offer = await dead.take(["q"], "dead", 10)
            assert offer is not None
            await dead.claim(offer.thread_id, "dead")
            await other.depth("q")
            started = time.perf_counter()
            dead._worker._loop.call_soon_threadsafe(time.sleep, 3 * lease)  # noqa: SLF001 - it dies
            while (made := await _take_over(other, lease)) is None:
                pass
            beyond.append(time.perf_counter() - started - lease)
            server.kill()
            server.start()
            started = time.perf_counter()
            assert await other.append(made[0], [submission(n)]) is Appended.OK
            after.append(time.perf_counter() - started)
            await made[1].done()
        await dead.aclose()
    return [
        single("nats, take-over from a dead worker, beyond the lease", f"{statistics.median(beyond):.2f} s", "0.5 s"),
        single("nats, append once a killed server listens again", f"{statistics.median(after):.2f} s", "1 s"),
    ]


async def _take_over(store: NatsStore, lease: float) -> tuple[Claim, Offer] | None:
    """A claim of what is offered, as a worker makes it."""
    offer = await store.take(["q"], "other", 10)
    assert offer is not None
    try:
        return await store.claim(offer.thread_id, "other"), offer
    except ThreadBusy:
        await offer.back(lease / 4)
        return None


async def measure(folder: Path, queued: int, *, quick: bool) -> list[dict[str, str]]:
    """All of it."""
    rounds = 200 if quick else 2000
    rows: list[dict[str, str]] = []
    for name, always in (("default", False), ("always", True)):
        with DevServer(folder / name, sync=always) as server:
            rows.append(await appends(server, f"sync_interval {name}", rounds))
            sync = "full" if always else "normal"
            rows.append(await iterations(server, folder, sync, max(3, rounds // 100), 20))
            if not always:
                rows.append(await growth(server, max(1, rounds // 500)))
                rows += await takes(server, rounds, queued)
                rows += await recovery(server, 3 if quick else 9)
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What journals on an engine cost.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--queued", type=int, default=5_000, help="threads in the long queue")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the data lies meanwhile; the disk is measured, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rows = anyio.run(lambda: measure(Path(folder), given.queued, quick=given.quick))
    if given.json:
        print(json.dumps(rows))
        return
    widths = [max(len(name), *(len(each[name]) for each in rows)) for name in FIELDS]
    for each in (dict(zip(FIELDS, FIELDS, strict=True)), *rows):
        print("  ".join(each[name].ljust(width) for name, width in zip(FIELDS, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
