"""What the tests share: clients, processes of workers, and what of a run must be equal."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from locus.core.state import AgentState
from locus_plugin_temporal import LocusPlugin

from .shop import Both, Sell

#: Of the checkout, whose folders are packages for the tests.
_TOP = Path(__file__).parents[3]

#: Seconds within which everything ends that does end.
PATIENCE = 120.0


def ending(state: AgentState) -> Any:
    """What of a run does not depend on when and where it ran."""
    calls = [(e.tool_name, e.arguments, e.result, e.error, e.iteration, e.label) for e in state.tool_executions]
    usage = state.usage
    return state.messages, calls, usage, state.iteration, state.label, state.confidence, state.errors


@asynccontextmanager
async def working(address: str, queue: str, plugin: LocusPlugin, **options: Any) -> AsyncIterator[Client]:
    """A worker in this process; gives a client that knows the same agents."""
    client = await Client.connect(address, plugins=[plugin])
    async with Worker(client, task_queue=queue, workflows=[Sell, Both], **options):
        yield client


@contextmanager
def supervised_worker(address: str, queue: str, folder: Path) -> Iterator[list[int]]:
    """A worker in a process, begun again whenever it dies; gives the exit codes so far."""
    died: list[int] = []
    over = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def supervise() -> None:
        while not over.is_set():
            command = [sys.executable, "-m", "plugins.temporal.tests.worker", address, queue, str(folder)]
            process = subprocess.Popen(command, cwd=_TOP)
            running[:] = [process]
            if over.is_set():
                process.kill()
            died.append(process.wait())

    thread = threading.Thread(target=supervise, name="supervisor")
    thread.start()
    try:
        yield died
    finally:
        over.set()
        for process in running:
            process.kill()
        thread.join(PATIENCE)
