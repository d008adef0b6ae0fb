"""A store, a clock, and workers that come when they are called, for the tests of `ctx.sleep`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_workflow import StepEvent, StepState, Worker, Workflow, WorkflowDef, show, start
from locus_testkit import FakeClock

HOUR = 3_600


def one(handler: Any, **options: Any) -> WorkflowDef:
    """A workflow of one loop, which is dispatched in the queue ``workflow.handler``."""
    wf = Workflow("w")
    step = wf.agent_loop("s", handler).with_max_iterations(3)
    for name, value in options.items():
        getattr(step, f"with_{name}")(value)
    return wf.build()


class World:
    """A store, a clock, and workers that come when they are called."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.events: list[StepEvent] = []

    async def begin(self, definition: WorkflowDef, run_id: str = "run") -> None:
        await start(self.store, definition, run_id=run_id)
        await self.work(definition)

    async def work(self, definition: WorkflowDef, after: float = 0.0, **options: Any) -> None:
        """Let time pass, and have another worker do what is due."""
        self.clock.advance(after)
        worker = Worker(self.store, definition, clock=self.clock, hooks=[self.events.append], **options)
        with anyio.fail_after(30):
            await worker.run(until_idle=True)

    async def step(self, name: str = "s") -> StepState:
        return (await show(self.store, "run")).steps[name]


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[World]:
    clock = FakeClock()
    if kind == "memory":
        yield World(MemoryStore(clock=clock), clock)
    else:
        async with SqliteStore(folder / "runs.db", sync="normal", clock=clock) as store:
            yield World(store, clock)


@pytest.fixture(name="world", params=["memory", "sqlite"])
async def make_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with opened(request.param, tmp_path) as made:
        yield made


@pytest.fixture(name="memory")
def make_memory() -> World:
    clock = FakeClock()
    return World(MemoryStore(clock=clock), clock)
