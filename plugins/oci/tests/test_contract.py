"""The store keeps the laws, against an emulator that is as strict as the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from locus.memory.store import Claim, JournalStore
from locus_plugin_oci import OCIBucketBackend, OciSettings
from locus_testkit import JournalStoreContract, StoreFeatures
from locus_testkit.localserver import LocalServer

from .emulator import BUCKET, Bucket, served
from .verification import Keys, write_profile


@pytest.mark.proof  # some 16,000 requests
class TestOCIBucketBackend(JournalStoreContract):
    """Journals in a bucket."""

    features = StoreFeatures(persistent=True, shared=True, leases=True, post=True)

    @pytest.fixture(autouse=True)
    def service(self, keys: Keys, tmp_path: Path) -> Iterator[None]:
        """A bucket for each test."""
        self.bucket = Bucket(keys)
        self.config = write_profile(tmp_path, keys)
        with served(self.bucket) as self.server:
            yield
        assert self.bucket.refused == []

    bucket: Bucket
    server: LocalServer
    config: Path

    def make_store(self, folder: Path) -> OCIBucketBackend:
        settings = OciSettings(config_file=str(self.config), storage_endpoint=self.server.url)
        return OCIBucketBackend(BUCKET, settings=settings)

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        self.bucket.advance(61)
