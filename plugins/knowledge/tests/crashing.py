"""Scans in processes that are killed in the third of five items; run as ``python -m`` with a folder.

Each process is forked from one that has imported everything. It appends a line to a ledger before whatever the provider
and the model are asked, and what it comes to is written to a file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from locus_plugin_knowledge import ScanItemEvent, SqliteCatalog, scan
from locus_plugin_sqlite import SqliteStore

from .kit import AsyncElements, ElementRow, Elements, model_of

#: At which line of the ledger a process dies; the second request is the one after the tool.
POINTS = ("ground iron", "model iron", "model iron again", "merge iron", "close")


def noting(folder: Path, die_at: str) -> Any:
    seen: set[str] = set()

    def note(line: str) -> None:
        with (folder / "ledger").open("a") as file:
            file.write(f"{line}\n")
        if die_at and die_at == (f"{line} again" if line in seen and line.startswith("model") else line):
            os.kill(os.getpid(), signal.SIGKILL)
        seen.add(line)

    return note


async def go(folder: Path, concurrency: int, die_at: str) -> dict[str, Any]:
    note = noting(folder, die_at)
    provider = (Elements if concurrency == 1 else AsyncElements)(note)
    async with SqliteStore(folder / "runs.db", sync="full") as store:
        run = scan(
            provider,
            "How dense are metals?",
            model=model_of(note),
            concurrency=concurrency,
            checkpointer=store,
            thread_id="t",
            catalog=SqliteCatalog(folder / "catalog.db", row_type=ElementRow),
        )
        told = [[event.done, event.total] async for event in run if isinstance(event, ScanItemEvent)]
        result = run.result
    catalog = SqliteCatalog(folder / "catalog.db", row_type=ElementRow)
    rows = [[row.name, getattr(row, "density", None), row.prompt_hash, list(row.facts)] for row in result.rows]
    kinds = sorted({type(row).__name__ for row in result.rows})
    return {"rows": rows, "kinds": kinds, "errors": dict(result.errors), "kept": await catalog.count(), "told": told}


def forked(folder: Path, concurrency: int, die_at: str) -> Any:
    """What a process of its own comes to; None where it was killed."""
    out = folder / "out.json"
    out.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            out.write_text(json.dumps(anyio.run(go, folder, concurrency, die_at)))
            status = 0
        finally:
            os._exit(status)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()) if out.exists() else None


async def warm_up() -> None:
    await scan(AsyncElements(lambda line: None), "Warm?", model=model_of())


def main(folder: Path, points: list[str]) -> None:
    """Print what came of each: the ledger of the process that died, of the one that went on, and its result."""
    # What is imported late is imported now, and not by each process.
    anyio.run(warm_up)
    came = {}
    for concurrency in (1, 4):
        for die_at in ("", *points):
            place = folder / f"{concurrency}-{die_at}"
            place.mkdir()
            died = forked(place, concurrency, die_at) is None
            before = (place / "ledger").read_text().splitlines()
            (place / "ledger").unlink()
            ended = forked(place, concurrency, "")
            ledger = place / "ledger"
            after = ledger.read_text().splitlines() if ledger.exists() else []
            came[f"{concurrency} {die_at}"] = {"died": died, "before": before, "after": after, "ended": ended}
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
