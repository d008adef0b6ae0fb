"""Filling the disk below a store, and deleting what filled it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from locus.core.journal import Outcome, StepId
from locus.journal import Claim
from locus_plugin_sqlite import DiskFull, SqliteStore

__all__ = ["fill", "fill_and_delete", "outcome"]


def outcome(n: int) -> Outcome:
    """An entry of about 4,000 characters that no compression makes shorter."""
    return Outcome(run_id="run", step_id=StepId(0, "s", n), value=os.urandom(2000).hex())


async def fill(store: SqliteStore, claim: Claim) -> int:
    """Append until the disk is full; returns how many entries were stored."""
    for n in range(100_000):
        try:
            await store.append(claim, [outcome(n)])
        except DiskFull:
            return n
    raise AssertionError("the disk was never full")


async def fill_and_delete(path: Path, *, rounds: int, reopens: bool, check: Callable[[int, int], None]) -> None:
    """Fill the disk with one thread and delete it, several times, beside a thread that is kept.

    Args:
        path: of the store.
        rounds: how often.
        reopens: delete with another store on the same file.
        check: gets how many entries the store accepted, and how many it reads back.
    """
    store = SqliteStore(path)
    for _ in range(rounds):
        kept = await store.claim("kept", "w")
        await store.append(kept, [outcome(0)])
        await store.release(kept)
        claim = await store.claim("large", "w")
        stored = await fill(store, claim)
        check(stored, len(await store.read("large")))
        await store.release(claim)
        if reopens:
            await store.aclose()
            store = SqliteStore(path)

        assert await store.delete("large") is True
    assert [info.thread_id for info in await store.threads()] == ["kept"]
    assert len(await store.read("kept")) == rounds
    await store.aclose()
