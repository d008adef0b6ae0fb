"""What a run that waits for its stream holds: kB a run, through one instance of a provider, against a local server.

`python contrib/bench/providers.py [RUNS] [CONNECTIONS]`. The server is a process of its own: only the runs count.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import anyio

from locus import Agent
from locus.core.events import ModelChunkEvent
from locus_plugin_openai import OpenAIModel, OpenAISettings
from locus_testkit.localserver import Answer, LocalServer

_PIECE = {"choices": [{"delta": {"content": "word "}}]}


def serve() -> None:
    """Begin an answer to each request, and say nothing more."""
    with LocalServer(lambda _: Answer.events(_PIECE, done="").with_fields(ending="silent")) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def resident() -> int:
    """The memory of this process, in kB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


async def measure(url: str, runs: int, connections: int) -> float:
    """Begin runs, and see what they hold while all wait."""
    agent = Agent(OpenAIModel("m", OpenAISettings(base_url=f"{url}/v1", connections=connections)))
    heard = 0

    async def one() -> None:
        nonlocal heard
        async for event in agent.run("Say something."):
            heard += isinstance(event, ModelChunkEvent)

    async def waiting(count: int) -> None:
        while heard < min(count, connections):  # noqa: ASYNC110 - a poll costs the runs nothing
            await anyio.sleep(0.05)
        await anyio.sleep(0.5)

    async with anyio.create_task_group() as group:
        group.start_soon(one)  # what is loaded once is not counted for any run
        await waiting(1)
        before = resident()
        for _ in range(runs):
            group.start_soon(one)
        await waiting(runs + 1)
        held = resident() - before
        group.cancel_scope.cancel()
    return held / runs


def main(runs: int, connections: int) -> None:
    """Measure, and print one line."""
    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=-1, stdout=-1, text=True) as server:  # noqa: S603
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        held = anyio.run(measure, url, runs, connections)
        server.stdin.close()
    print(f"{runs} runs at a time, {connections} connections: {held:.0f} kB a run")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        given = [int(each) for each in sys.argv[1:]]
        main(*given, *(200, 256)[len(given) :])
