"""A workflow in processes that are killed at every write; run as ``python -m`` with a folder, a stride and its name."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from locus.core.errors import OutcomeUnknown
from locus.core.journal import Outcome, Paused, Transition
from locus_plugin_sqlite import SqliteStore
from locus_plugin_workflow import Worker, Workflow, start, wait
from locus_testkit.kills import Killed, every_kill, let_die

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


def build_sleeper(ledger: Path) -> Any:
    """A step that sleeps between two things that may happen once; what becomes of them is in the ledger."""

    def note(text: str) -> None:
        with ledger.open("a") as file:
            file.write(f"{text}\n")

    async def do(ctx: Any, name: str) -> None:
        async def effect() -> None:
            note(name)

        try:
            await ctx.step(name, effect)
        except OutcomeUnknown:
            note(f"{name} unknown")

    async def handler(ctx: Any) -> Any:
        await do(ctx, "pay")
        await ctx.sleep(0.1)
        note(f"woke {ctx.now.isoformat()}")
        await do(ctx, "ship")
        return ctx.complete()

    wf = Workflow("sleeper")
    wf.step("rest", handler)
    return wf.build()


async def go_to_sleep(folder: Path) -> dict[str, Any]:
    definition = build_sleeper(folder / "ledger")
    async with Dying(folder / "runs.db", sync="normal", lease=LEASE) as store:
        await start(store, definition, run_id="run")
        async with Worker(store, definition, slots=1, short_sleep=0).at_work():
            run = await wait(store, "run", timeout=60, poll=0.02)
        entries = [entry.body for entry in await store.read("run/rest")]
    due = [b.value for b in entries if isinstance(b, Outcome) and b.step_id.node == "sleep"]
    (folder / "due").write_text("\n".join(each.isoformat() for each in due))
    # After a death its time may be over before there is another worker: then the handler is not left.
    left = any(isinstance(b, Paused) and b.not_before is not None for b in entries)
    (folder / "left").write_text(str(left))
    return {"status": run.status, "sleeps": len(due)}


def check_sleeper(killed: Killed) -> Iterator[str]:
    """What became of one death: nothing twice, nothing unknown but what the death came in the middle of."""
    lines = (killed.folder / "ledger").read_text().splitlines()
    woken = [datetime.fromisoformat(line.split()[1]) for line in lines if line.startswith("woke")]
    due = datetime.fromisoformat((killed.folder / "due").read_text())
    if min(woken) < due:
        yield f"woken at {woken}, due at {due}"
    for name in ("pay", "ship"):
        if lines.count(name) > 1 or not (lines.count(name) or f"{name} unknown" in lines):
            yield f"{name}: {lines}"


def put_to_sleep(folder: Path, stride: int) -> None:
    """Kill the process of the sleeper at its writes."""
    found, deaths, wanted, unknown = [], 0, None, Counter[str]()
    for killed in every_kill(folder, go_to_sleep, stride=stride):
        where = f"write {killed.at} {'after' if killed.stored else 'before'}"
        deaths, wanted = deaths + killed.died, killed.wanted
        if killed.result != killed.wanted:
            found.append(f"{where}: {killed.result}")
        found += [f"{where}: {each}" for each in check_sleeper(killed)]
        unknown.update({line for line in (killed.folder / "ledger").read_text().splitlines() if "unknown" in line})
    came = {"found": found, "deaths": deaths, "wanted": wanted, "unknown": unknown}
    json.dump(came | {"left": (folder / "whole" / "left").read_text()}, sys.stdout)


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
    {"look": main, "sleep": put_to_sleep}[sys.argv[3]](Path(sys.argv[1]), int(sys.argv[2]))
