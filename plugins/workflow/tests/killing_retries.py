"""A step that fails and is begun again, in processes that are killed at every write; run as ``python -m``."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from locus.core.errors import JournalError
from locus.core.journal import Transition
from locus_plugin_workflow import Worker, Workflow, retry, show, start, wait
from locus_testkit.kills import every_kill

from .killing import LEASE, Dying


def build(folder: Path) -> Any:
    """A loop whose second iteration fails until the file ``mended`` is there."""

    async def look(ctx: Any) -> Any:
        kept = await ctx.load_checkpoint()
        assert ctx.iteration == 0 or kept in (f"of {ctx.iteration - 1}", f"of {ctx.iteration}")
        if ctx.iteration == 1 and not (folder / "mended").exists():
            raise OSError("the printer is on fire")
        await ctx.checkpoint(f"of {ctx.iteration}")
        return ctx.complete(ctx.input()) if ctx.iteration == 2 else ctx.continue_(ctx.iteration)

    def publish(ctx: Any) -> Any:
        return ctx.complete(["published", ctx.input()])

    wf = Workflow("broken")
    wf.agent_loop("look", look).with_max_iterations(3)
    wf.step("publish", publish, depends_on="look")
    return wf.build()


async def go(folder: Path) -> dict[str, Any]:
    """Start the run, begin it again when it has failed, and see it end."""
    definition = build(folder)
    async with Dying(folder / "runs.db", sync="normal", lease=LEASE) as store:
        await start(store, definition, "hello", run_id="run")
        with anyio.fail_after(60):
            async with Worker(store, definition, slots=1).at_work():
                run = await wait(store, "run", poll=0.02)
                if run.status == "failed":
                    (folder / "mended").touch()
                    with suppress(JournalError):  # it was begun again already, by the process that died
                        await retry(store, "run", "look")
                while run.status != "completed":
                    await anyio.sleep(0.02)
                    run = await show(store, "run")
        entries = [entry.body for entry in await store.read("run/look")]
    why = [body.why for body in entries if isinstance(body, Transition)]
    return {"status": run.status, "output": run.output, "why": why}


def main(folder: Path, stride: int) -> None:
    found, deaths, wanted = [], 0, None
    for killed in every_kill(folder, go, stride=stride):
        deaths, wanted = deaths + killed.died, killed.wanted
        if killed.result != killed.wanted:
            found.append(f"write {killed.at} {'after' if killed.stored else 'before'}: {killed.result}")
    json.dump({"found": found, "deaths": deaths, "wanted": wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
