"""The store keeps the laws, and what graphs need, against an emulator that is as strict as the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus.journal.store import Claim, JournalStore
from locus_plugin_oci import OCIBucketBackend
from locus_testkit import GraphContract, JournalStoreContract, StoreFeatures

from .within import InBucket


@pytest.mark.proof  # some 16,000 requests
class TestOCIBucketBackend(InBucket, JournalStoreContract):
    """Journals in a bucket."""

    features = StoreFeatures(persistent=True, shared=True, leases=True, post=True, queries=False)

    def make_store(self, folder: Path) -> OCIBucketBackend:
        return self.make()

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        self.bucket.advance(61)


@pytest.mark.proof
class TestGraphs(InBucket, GraphContract):
    """Threads of graphs in a bucket."""

    def open_store(self, folder: Path) -> OCIBucketBackend:
        self.bucket.objects.clear()  # the store is empty, whatever this test has opened before
        return self.make()
