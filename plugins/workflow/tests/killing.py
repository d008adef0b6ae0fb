"""A workflow in processes that are killed at every write; run as ``python -m`` with a folder and a stride."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from locus.core.journal import Transition
from locus_plugin_sqlite import SqliteStore
from locus_plugin_workflow import Worker, Workflow, start, wait
from locus_testkit.kills import every_kill, let_die

Dying = let_die(SqliteStore)

#: Seconds after which another process gets what a killed one was offered.
LEASE = 0.4


def build(ledger: Path) -> Any:
    async def look(ctx: Any) -> Any:
        history = await ctx.load_checkpoint() or [ctx.input()]

        async def note() -> str:
            with ledger.open("a") as file:
                file.write(f"{ctx.idempotency_key}\n")
            return f"turn {ctx.iteration}"

        said = await ctx.step("note", note, effect="keyed")
        if len(history) == ctx.iteration + 1:
            history.append(said)
            await ctx.checkpoint(history)
        return ctx.complete(history) if ctx.iteration == 2 else ctx.continue_(said)

    def publish(ctx: Any) -> Any:
        return ctx.complete([len(ctx.input()), "published"])

    wf = Workflow("killed")
    wf.agent_loop("look", look).with_max_iterations(3)
    wf.step("publish", publish, depends_on="look")
    return wf.build()


async def go(folder: Path) -> dict[str, Any]:
    definition = build(folder / "ledger")
    async with Dying(folder / "runs.db", sync="normal", lease=LEASE) as store:
        await start(store, definition, "hello", run_id="run")
        async with Worker(store, definition, slots=1).at_work():
            run = await wait(store, "run", timeout=60, poll=0.02)
        entries = [entry.body for entry in await store.read("run/look")]
    why = [body.why for body in entries if isinstance(body, Transition)]
    return {"status": run.status, "output": run.output, "look": list(run.steps["look"].output), "why": why}


def main(folder: Path, stride: int) -> None:
    found, deaths, wanted = [], 0, None
    for killed in every_kill(folder, go, stride=stride):
        where = f"write {killed.at} {'after' if killed.stored else 'before'}"
        deaths, wanted = deaths + killed.died, killed.wanted
        if killed.result != killed.wanted:
            found.append(f"{where}: {killed.result}")
        done = Counter((killed.folder / "ledger").read_text().split())
        if len(done) != 3 or sum(done.values()) > 3 + killed.died:
            found.append(f"{where}: {done}")
    json.dump({"found": found, "deaths": deaths, "wanted": wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
