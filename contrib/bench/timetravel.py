"""What time travel costs on a long thread: in seconds of CPU, and as ratios to parsing the thread's JSON.

`python contrib/bench/timetravel.py` needs the kernel, the test kit and the plugins sqlite and timetravel. A fork and a
what-if at iteration 50 must cost the same whether the thread has 1,000 iterations or 10,000; an export and an import
cost at most four times what parsing the exported lines costs. `--iterations N` takes another length.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from locus import Agent, tool
from locus.core.termination import MaxIterations
from locus_plugin_sqlite import SqliteStore
from locus_plugin_timetravel import export_thread, fork, history, import_thread, what_if
from locus_testkit import ScriptedModel, call

AT = 50


@tool
async def read(n: int) -> str:
    """Read an item."""
    return "x" * 100


async def written(store: SqliteStore, iterations: int) -> Agent[None, str]:
    """A thread of that many iterations, and the agent that made it."""
    script: list[Any] = [call("read", n=n) for n in range(iterations - 1)]
    agent: Agent[None, str] = Agent(
        ScriptedModel(*script, "done"), tools=[read], checkpointer=store, max_iterations=10**6
    )
    await agent.run("Read them all.", thread_id="t")
    return agent


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Seconds of CPU, those of the store's thread included, and result.

    What the process holds from before is taken out of the garbage collector's sight, as if each were a command.
    """
    gc.collect()
    gc.freeze()
    began = time.process_time()
    result = await work()
    return time.process_time() - began, result


def parse(lines: list[str]) -> float:
    """Seconds of CPU to parse the lines, each for itself."""
    began = time.process_time()
    for line in lines:
        json.loads(line)
    return time.process_time() - began


async def measured(iterations: int, folder: Path) -> dict[str, float]:
    """Seconds by what was done, on a thread of that many iterations; each store is opened again, as a command does."""
    path = folder / f"{iterations}.db"
    async with SqliteStore(path) as store:
        agent = await written(store, iterations)
        found: dict[str, float] = {}

        async def claim() -> None:
            held = await store.claim("t", "bench")
            await store.release(held)

        async def export() -> list[str]:
            return list(await export_thread(store, "t"))

        found["claim"], _ = await timed(claim)
        found[f"fork at {AT}"], _ = await timed(lambda: fork(store, "t", at=3 * AT))
        found["fork at the end"], _ = await timed(lambda: fork(store, "t"))
        found[f"what_if({AT})"], answer = await timed(lambda: what_if(agent, "t", termination=MaxIterations(AT)))
        assert answer.verdict == "earlier", answer
        found["history"], past = await timed(lambda: history(store, "t"))
        assert len(past) == 2 * iterations + 1, len(past)
        found["export"], lines = await timed(export)
        found["parse"] = min(parse(lines) for _ in range(3))
        found["import"], _ = await timed(lambda: import_thread(store, lines, into="again"))

        async def claim_again() -> None:
            held = await store.claim("again", "bench")
            await store.release(held)

        found["claim of the import"], _ = await timed(claim_again)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10_000, help="of the long thread; the short one has a tenth")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        short = anyio.run(measured, options.iterations // 10, Path(folder))
        long = anyio.run(measured, options.iterations, Path(folder))
    if options.json:
        print(json.dumps({"short": short, "long": long}))
        return
    print(f"{'':22}{options.iterations // 10:>10} iterations {options.iterations:>10} iterations    / parse")
    for name in long:
        print(f"{name:22}{short[name]:>19.3f} s{long[name]:>20.3f} s{long[name] / long['parse']:>12.1f}")


if __name__ == "__main__":
    main()
