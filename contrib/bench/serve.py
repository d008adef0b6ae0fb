"""What a request to `locus serve` costs its process, beside the same run without a server.

    nice -n 10 python -m contrib.bench.serve --requests 300

A turn has two model calls and one tool call; the model follows a script and answers at once. Requests come from another
process, over eight connections; beside it, as many tasks run the agent. CPU is that of the process, all of its threads
and its system calls included.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from locus import Agent, tool
from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

ROUNDS, CLIENTS = 3, 8
TICKS = os.sysconf("SC_CLK_TCK")
_ADDRESS = re.compile(r"http://\S+")


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


def make_agent(store: str) -> Agent[Any, Any]:
    script = [["Let me see what there is to pay.", call("charge", cents=5)], "It is all paid now, thank you very much."]
    model = ScriptedModel(script=lambda request: script, chunks=True, after="cycle")
    kept = MemoryStore() if store == "memory" else SqliteStore("runs.db", sync="normal")
    return Agent(model, name="shop", tools=[charge], checkpointer=kept)


async def run_bare(store: str, count: int) -> float:
    """CPU seconds of a run."""
    agent = make_agent(store)
    for n in range(20):
        await agent.run("Pay.", thread_id=f"warm-{n}")

    async def work(worker: int) -> None:
        for n in range(worker, count, CLIENTS):
            await agent.run("Pay.", thread_id=f"thread-{n}")

    before = time.process_time()
    await asyncio.gather(*map(work, range(CLIENTS)))
    return (time.process_time() - before) / count


def memory() -> Agent[Any, Any]:
    """What `locus serve` loads, with its threads in memory."""
    return make_agent("memory")


def sqlite() -> Agent[Any, Any]:
    """The same, with its threads in a file."""
    return make_agent("sqlite")


@contextmanager
def served(store: str, folder: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """The address of a server in a process of its own, and the CPU seconds of that process so far."""
    command = [
        sys.executable,
        "-m",
        "locus_plugin_cli",
        "serve",
        f"contrib.bench.serve:{store}",
        "--port=0",
        "--drain=0",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603  itself
    assert process.stderr is not None

    def cpu() -> float:
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    try:
        yield _ADDRESS.findall(process.stderr.readline())[0], cpu
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


CHAT = {"model": "shop", "messages": [{"role": "user", "content": "Pay."}]}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "POST /api/turns": ("/api/turns", {"prompt": "Pay."}),
    "the same, streamed": ("/api/turns", {"prompt": "Pay.", "stream": True}),
    "POST /v1/chat/completions": ("/v1/chat/completions", CHAT),
    "the same, streamed ": ("/v1/chat/completions", {**CHAT, "stream": True}),
}


def measure_served(store: str, way: str, count: int) -> float:
    """CPU seconds of the server for a request."""
    with tempfile.TemporaryDirectory() as folder, served(store, folder) as (url, cpu):
        asyncio.run(ask(url, way, 20))
        before = cpu()
        asyncio.run(ask(url, way, count))
        return (cpu() - before) / count


async def ask(url: str, way: str, count: int) -> None:
    """So many requests, over so many connections as there are clients."""
    path, body = WAYS[way]

    async def work(worker: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            for _ in range(worker, count, CLIENTS):
                (await client.post(path, json=body)).raise_for_status()

    await asyncio.gather(*map(work, range(CLIENTS)))


def measure_bare(store: str, count: int) -> float:
    command = [sys.executable, "-m", "contrib.bench.serve", "--bare", store, "--requests", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  itself
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--bare", metavar="STORE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        print(asyncio.run(run_bare(options.bare, options.requests)))
        return
    print("| CPU ms a request | store | bare run | served | ratio | goal |\n|---|---|---|---|---|---|")
    for store in ("memory", "sqlite"):
        for way in WAYS:
            pairs = [
                (measure_bare(store, options.requests), measure_served(store, way, options.requests))
                for _ in range(ROUNDS)
            ]
            bare, theirs = (1000 * statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"| {way.strip()} | {store} | {bare:.2f} | {theirs:.2f} | {theirs / bare:.2f} | 3 |", flush=True)


if __name__ == "__main__":
    main()
