"""What an iteration costs does not grow with the iterations before it; other workers may run steps, too."""

from __future__ import annotations

from typing import Any

import pytest

from locus.journal import Claim, MemoryStore
from locus_plugin_worker import Worker as QueueWorker
from locus_plugin_workflow import Worker, Workflow, show, start

pytestmark = pytest.mark.anyio


class Watched(MemoryStore):
    """Notes how many entries each claim shows."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[int] = []

    async def claim(self, thread_id: str, worker: str) -> Claim:
        found = await super().claim(thread_id, worker)
        self.shown.append(len(found.entries))
        return found


async def test_claim_of_a_long_loop_shows_few_entries_and_its_old_checkpoint_is_found() -> None:
    seen: list[Any] = []

    async def handler(ctx: Any) -> Any:
        if ctx.iteration == 0:
            await ctx.checkpoint({"plan": "old"})
        if ctx.iteration < 199:
            return ctx.continue_(ctx.iteration)
        seen.append((await ctx.load_checkpoint(), ctx.input()))
        return ctx.complete()

    wf = Workflow("long")
    wf.agent_loop("s", handler).with_max_iterations(200)
    store = Watched()
    run = await Worker(store).run_workflow(wf.build())

    assert run.status == "completed"
    assert seen == [({"plan": "old"}, 198)]
    assert max(store.shown) < 50
    assert len(await store.read(f"{run.run_id}/s")) > 600


async def test_steps_are_run_by_a_worker_of_queues_beside_agents() -> None:
    async def handler(ctx: Any) -> Any:
        return ctx.complete(ctx.iteration) if ctx.iteration == 2 else ctx.continue_()

    def last(ctx: Any) -> Any:
        return ctx.complete([ctx.input(), "done"])

    wf = Workflow("queues")
    wf.agent_loop("s", handler).with_max_iterations(3).with_loop_delay(0.01)
    wf.step("last", last, depends_on="s")
    store, definition = MemoryStore(), wf.build()
    await start(store, definition, run_id="r")
    worker = QueueWorker(Worker(store, definition).jobs(), store)
    for _ in range(100):
        await worker.run(until_idle=True)
        run = await show(store, "r")
        if run.has_ended:
            break
        worker = QueueWorker(Worker(store, definition).jobs(), store)

    assert (run.status, run.output) == ("completed", [2, "done"])
