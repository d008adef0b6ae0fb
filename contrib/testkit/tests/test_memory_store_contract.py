"""The stores of the kernel keep the laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.lowlevel

from locus.journal import JournalStore, MemoryStore
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import FakeClock, JournalStoreContract, StoreFeatures


class TestMemoryStore(JournalStoreContract):
    """Journals in memory."""

    features = StoreFeatures(queue=True, signals=True)
    clock = FakeClock()

    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore(clock=self.clock)

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        self.clock.advance(seconds)


class TestLatestStore(JournalStoreContract):
    """The newest state of each thread, in memory."""

    features = StoreFeatures(history=False)

    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore(history=False)


class TestSnapshotAdapter(JournalStoreContract):
    """A backend that saves and loads files becomes a store without history."""

    features = StoreFeatures(history=False, delete=False, persistent=True, lists=False)

    def make_store(self, folder: Path) -> SnapshotAdapter:
        async def save(thread_id: str, checkpoint: dict[str, Any]) -> None:
            await anyio.lowlevel.checkpoint()
            (folder / thread_id.encode().hex()[:200]).write_text(json.dumps(checkpoint))

        async def load(thread_id: str) -> dict[str, Any] | None:
            await anyio.lowlevel.checkpoint()
            place = folder / thread_id.encode().hex()[:200]
            return json.loads(place.read_text()) if place.exists() else None

        return SnapshotAdapter(save, load)
