"""The store keeps the laws."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from locus.journal.store import Claim, JournalStore
from locus_plugin_postgres import PostgresStore
from locus_testkit import JournalStoreContract, PluginContract, StoreFeatures

from .server import Server


class TestPostgresStore(JournalStoreContract):
    """Journals on a server."""

    features = StoreFeatures(
        persistent=True, shared=True, leases=True, post=True, queue=True, signals=True, pages=True, states=True
    )

    @pytest.fixture(autouse=True)
    def _place(self, server: Server, schema: str) -> None:
        self.server, self.schema = server, schema

    def make_store(self, folder: Path) -> PostgresStore:
        return PostgresStore(self.server.url(), schema=self.schema, sync="normal")

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        self.server.sql(f"UPDATE {self.schema}.threads SET lease = '0' WHERE token = $1 RETURNING id", claim.token)

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        self.server.sql(
            f"UPDATE {self.schema}.queue SET due = due - $1::interval RETURNING 1", timedelta(seconds=seconds)
        )


class TestPostgres(PluginContract):
    """The promises of any plugin."""

    name = "postgres"
    settings: ClassVar = {"lease": 10.0}
