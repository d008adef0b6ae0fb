"""What `locus view` costs: its pages over a file of many threads and of a long run, its memory, and many who look.

``python -m contrib.bench.viewer`` makes the file, starts the command in a process of its own, and prints the table for
RESULTS.md; ``--quick`` makes a smaller file. Times are those of a client on the same machine: of the first request, and
the median of those behind it; CPU is what the process of the viewer used for a request, which other programs change
less. Memory is the resident set of the process, with that of a viewer of one short thread.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from attrs import frozen

from locus import Agent, tool
from locus.core.journal import Entry, Transition
from locus.core.termination import MaxIterations
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call


@tool(effect="pure")
def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}: two desk lamps"


def agent(store: SqliteStore, iterations: int) -> Agent[Any, Any]:
    """An agent that calls a tool in each iteration but the last."""
    script = [*([call("find_order", number=n)] for n in range(iterations - 1)), "All of them have lamps."]
    return Agent(
        ScriptedModel(script=lambda request: script, after="cycle"),
        tools=[find_order],
        name="shop",
        checkpointer=store,
        max_iterations=iterations + 1,
        termination=MaxIterations(iterations + 1),
    )


async def fill(path: Path, threads: int, iterations: int) -> int:
    """The file; gives how many entries the long thread has."""
    async with SqliteStore(path, sync="normal") as store:
        await agent(store, iterations).run("Look up every order.", thread_id="long")
        for number in range(threads - 1):
            await agent(store, 2).run(f"Look up order {number}.", thread_id=f"thread-{number}")
        return await store.head("long")


@contextmanager
def viewing(path: Path) -> Iterator[tuple[int, httpx.Client]]:
    """The process of a viewer, and a browser that was given its token."""
    command = [sys.executable, "-m", "locus_plugin_cli", "view", "--checkpointer", f"sqlite:{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603 - as above
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with httpx.Client(base_url=address.partition("/?")[0], timeout=120) as client:
            client.get(address)
            try:
                yield process.pid, client
            finally:
                process.send_signal(signal.SIGTERM)


@frozen
class Timed:
    """Milliseconds of the first request and the median of the others, the same of CPU, and the bytes of the answer."""

    first: float
    usual: float
    first_cpu: float
    usual_cpu: float
    size: int

    def row(self, what: str, goal: str = "") -> tuple[str, ...]:
        """A row of the table."""
        first, usual = f"{self.first:.0f} ms", f"**{self.usual:.0f} ms**"
        cpu = f"{self.first_cpu:.0f} ms, then {self.usual_cpu:.0f} ms"
        return what, first, usual, cpu, f"{self.size / 1000:.0f} kB", goal


def timed(client: httpx.Client, pid: int, path: str, times: int = 9) -> Timed:
    """Ask for a page some times."""
    taken, used = [], []
    for _ in range(times):
        begun, before = time.perf_counter(), threads_cpu(pid)
        answer = client.get(path)
        taken.append((time.perf_counter() - begun) * 1000)
        used.append(threads_cpu(pid) - before)
        assert answer.status_code == 200, answer.text
    return Timed(taken[0], median(taken[1:]), used[0], median(used[1:]), len(answer.content))


def threads_cpu(pid: int) -> float:
    """Milliseconds of CPU that the threads of a process have used, as the scheduler counts them."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += int((thread / "schedstat").read_text(encoding="utf-8").split()[0])
    return found / 1e6


def memory(pid: int) -> float:
    """The resident set of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1000


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def follow(client: httpx.Client, viewers: int, path: Path, pid: int) -> tuple[float, float, int]:
    """CPU of the viewer while a run goes on that so many follow: seconds, of how many, and the events that came."""
    cookies, base = dict(client.cookies), str(client.base_url)
    events = 0

    async def look(browser: httpx.AsyncClient) -> None:
        nonlocal events
        async with browser.stream("GET", "/thread/events", params={"id": "live"}) as answer:
            async for line in answer.aiter_lines():
                events += line.startswith("id: ")

    limits = httpx.Limits(max_connections=None)
    asking = httpx.AsyncClient(base_url=base, cookies=cookies, timeout=None, limits=limits)  # noqa: S113 - they wait
    async with asking as browser, SqliteStore(path) as store:
        run = agent(store, 40)
        await run.run("Begin.", thread_id="live")
        looking = [asyncio.create_task(look(browser)) for _ in range(viewers)]
        await asyncio.sleep(3)
        before, begun = cpu(pid), time.perf_counter()
        for turn in range(10):
            await run.run(f"Turn {turn}.", thread_id="live")
            await asyncio.sleep(1)
        used, passed = cpu(pid) - before, time.perf_counter() - begun
        for each in looking:
            each.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
    return used, passed, events


def entries_of_a_run(path: Path) -> tuple[Entry, ...]:
    """What the long thread has at its end, for the check that it is one."""

    async def read() -> tuple[Entry, ...]:
        async with SqliteStore(path) as store:
            head = await store.head("long")
            return await store.read("long", head - 1)

    return asyncio.run(read())


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="500 threads and 1,000 iterations")
    quick = parser.parse_args().quick
    threads, iterations = (500, 1_000) if quick else (5_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        path, empty = Path(folder) / "many.db", Path(folder) / "empty.db"
        head = asyncio.run(fill(path, threads, iterations))
        (last,) = entries_of_a_run(path)
        assert isinstance(last.body, Transition), last
        asyncio.run(fill(empty, 1, 1))
        with viewing(empty) as (pid, client):
            timed(client, pid, "/")
            timed(client, pid, "/thread?id=long")
            anchor = memory(pid)
        rows = []
        with viewing(path) as (pid, client):
            middle = (head // 120) // 2
            for what, where, goal in (
                (f"list, first page of {threads:,} threads", "/", "300 ms"),
                ("list, a word that one thread has", f"/?q=order+{threads // 2}.", ""),
                (f"timeline of {iterations:,} iterations, newest part", "/thread?id=long", "500 ms"),
                ("the same, a part in the middle", f"/thread?id=long&window={middle}", "500 ms"),
                ("the same, its first part", "/thread?id=long&window=0", "500 ms"),
            ):
                rows.append(timed(client, pid, where).row(what, goal))
            rows.append(("memory after these", f"{anchor:.0f} MB", f"**{memory(pid):.0f} MB**", "", "", "150 MB"))
            used, passed, events = asyncio.run(follow(client, 50, path, pid))
            share = f"{100 * used / passed:.0f} %"
            rows.append(
                (f"CPU, 50 follow a run: {events:,} events in {passed:.0f} s", "", "", f"**{share}**", "", "5 %")
            )
            # Each is far from those before: what is usual is not a state that is kept.
            for what, part in (
                ("state in the middle of the long run", 2),
                ("near its end", 1.1),
                ("near its beginning", 9),
            ):
                n = (int(head / part) - 1) // 4 * 4 + 1
                rows.append(timed(client, pid, f"/thread/state?id=long&n={n}", 3).row(what))
            rows.append(
                timed(client, pid, f"/thread/request?id=long&n={head // 8 * 4 + 2}", 3).row("request in the middle")
            )
            rows.append(("memory after that", "", f"{memory(pid):.0f} MB", "", "", "150 MB"))
        print("| what | first, or anchor | usual | CPU | size | goal |\n|---|---|---|---|---|---|")
        for row in rows:
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
