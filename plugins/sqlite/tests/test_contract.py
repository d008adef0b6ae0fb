"""The store keeps the laws."""

from __future__ import annotations

from pathlib import Path

from locus.journal.store import Claim, JournalStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import FakeClock, JournalStoreContract, StoreFeatures


class TestSqliteStore(JournalStoreContract):
    """Journals in a file."""

    features = StoreFeatures(
        persistent=True, shared=True, leases=True, post=True, queue=True, signals=True, pages=True, states=True
    )
    clock = FakeClock()

    def make_store(self, folder: Path) -> SqliteStore:
        # The laws say nothing of power cuts, and a busy disk takes its time.
        return SqliteStore(folder / "runs.db", sync="normal", clock=self.clock)

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        self.clock.advance(31)

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        self.clock.advance(seconds)
