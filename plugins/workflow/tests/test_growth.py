"""What an iteration costs does not grow with those before it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from locus.journal import Claim, MemoryStore
from locus_plugin_workflow import Worker, Workflow

pytestmark = pytest.mark.anyio


class Watched(MemoryStore):
    """Counts the entries that claims and looks show, by thread."""

    def __init__(self) -> None:
        super().__init__()
        self.claimed: list[int] = []
        self.looks: Counter[str] = Counter()

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Note how much it shows of a step."""
        made = await super().claim(thread_id, worker)
        if "/" in thread_id:
            self.claimed.append(len(made.entries))
        return made

    async def peek(self, thread_id: str) -> Claim | None:
        """Note which thread was looked at."""
        self.looks["step" if "/" in thread_id else "run"] += 1
        return await super().peek(thread_id)


async def run_loop(store: Watched, count: int, **options: Any) -> None:
    async def again(ctx: Any) -> Any:
        return ctx.complete() if ctx.iteration == count - 1 else ctx.continue_(ctx.iteration)

    wf = Workflow("growth")
    wf.agent_loop("again", again).with_max_iterations(count)
    run = await Worker(store, **options).run_workflow(wf.build(), "x")
    assert run.status == "completed"


async def test_claim_of_a_step_shows_what_came_since_its_last_iteration() -> None:
    store = Watched()
    await run_loop(store, 60, stay=0)
    assert len(store.claimed) == 60
    assert max(store.claimed) <= 3


async def test_waiting_for_a_run_reads_its_own_thread_and_not_those_of_its_steps() -> None:
    short, long = Watched(), Watched()
    await run_loop(short, 2, stay=0)
    await run_loop(long, 40, stay=0)
    assert short.looks["step"] == long.looks["step"]
