"""What the event loop of a program waits while the embedded model is loaded: the largest gap of a 50 ms heartbeat.

    python contrib/bench/loading.py [model] [rounds]

Each round is a process of its own. It beats for two seconds beside nothing, then beside the first run of an agent,
which loads the model and answers, and last beside a load in a thread of the process itself, as a comparison.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from locus import Agent
from locus_plugin_llamacpp.model import make
from locus_plugin_llamacpp.runtime import start

BEAT = 0.05


async def gap_beside(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The largest gap between two beats, and how long the work took; both in seconds."""
    largest = 0.0

    async def beat() -> None:
        nonlocal largest
        last = time.monotonic()
        while True:
            await anyio.sleep(BEAT)
            now = time.monotonic()
            largest, last = max(largest, now - last), now

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        began = time.monotonic()
        await work()
        took = time.monotonic() - began
        group.cancel_scope.cancel()
    return largest, took


async def measure(model: str) -> dict[str, float]:
    """One round."""
    idle, _ = await gap_beside(lambda: anyio.sleep(2))
    agent = Agent(f"llamacpp:{model}")
    gap, took = await gap_beside(lambda: agent.run("Say hello."))
    embedded = make(model)
    path, options = embedded.engine._find(lambda done, total: None), embedded._options()  # noqa: SLF001
    inside, _ = await gap_beside(lambda: to_thread.run_sync(start, path, options))
    return {"beside nothing": idle, "beside the first run": gap, "the first run": took, "beside a thread": inside}


def main() -> None:
    """Print the table."""
    model = sys.argv[1] if len(sys.argv) > 1 else "qwen2.5-coder-1.5b"
    if model == "--round":
        print(json.dumps(anyio.run(measure, sys.argv[2])), flush=True)
        os._exit(0)
    rounds = []
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        done = subprocess.run(  # noqa: S603  this program
            [sys.executable, __file__, "--round", model], capture_output=True, text=True, check=True
        )
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{model}, {len(rounds)} rounds, load {os.getloadavg()[0]:.1f}: median, largest")
    for name in rounds[0]:
        found = sorted(each[name] for each in rounds)
        print(f"  {name}: {found[len(found) // 2] * 1000:,.0f} ms, {found[-1] * 1000:,.0f} ms")


if __name__ == "__main__":
    main()
