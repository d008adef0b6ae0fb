"""The store keeps the laws, and the plugin those of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus.journal import Claim, JournalStore
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_testkit import JournalStoreContract, PluginContract, StoreFeatures

from .streams import expire_lease, set_ahead


class TestNatsStore(JournalStoreContract):
    """Journals on a server."""

    features = StoreFeatures(persistent=True, shared=True, leases=True, post=True, queue=True, signals=True, pages=True)

    @pytest.fixture(autouse=True)
    def streams(self, server: DevServer, prefix: str) -> None:
        """Where the handles of one test are."""
        self.begin(server.url, prefix)

    def begin(self, url: str, prefix: str) -> None:
        """Where handles are from now on, and how far their clocks are ahead."""
        self.url, self.prefix = url, prefix
        self.handles_made: list[NatsStore] = []
        self.ahead = 0

    def make_store(self, folder: Path) -> NatsStore:
        self.handles_made.append(NatsStore(self.url, NatsSettings(prefix=self.prefix)))
        return self.handles_made[-1]

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        # The time of offers, that is: the server's own clock cannot be moved.
        self.ahead += round(seconds * 1e6)
        for each in self.handles_made:
            await set_ahead(each, self.ahead)

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        assert isinstance(store, NatsStore)
        await expire_lease(store)


class TestNatsPlugin(PluginContract):
    """The installed plugin."""

    name = "nats"
