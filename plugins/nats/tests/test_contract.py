"""The store keeps the laws, and the plugin those of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus.journal import Claim, JournalStore
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_testkit import JournalStoreContract, PluginContract, StoreFeatures

from .streams import expire_lease


class TestNatsStore(JournalStoreContract):
    """Journals on a server."""

    features = StoreFeatures(persistent=True, shared=True, leases=True, post=True)

    @pytest.fixture(autouse=True)
    def streams(self, server: DevServer, prefix: str) -> None:
        """Where the handles of one test are."""
        self.url, self.prefix = server.url, prefix

    def make_store(self, folder: Path) -> NatsStore:
        return NatsStore(self.url, NatsSettings(prefix=self.prefix))

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        assert isinstance(store, NatsStore)
        await expire_lease(store)


class TestNatsPlugin(PluginContract):
    """The installed plugin."""

    name = "nats"
