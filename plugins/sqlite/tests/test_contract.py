"""The store keeps the laws."""

from __future__ import annotations

from pathlib import Path

from locus_plugin_sqlite import SqliteStore
from locus_testkit import JournalStoreContract, StoreFeatures


class TestSqliteStore(JournalStoreContract):
    """Journals in a file."""

    features = StoreFeatures(persistent=True, shared=True)

    def make_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "runs.db")
