"""`JournalStoreContract`: the laws of a journal store, one test each.

A store keeps what a run is made of. It is right when the state after any crash, hand-over or restart is the
fold of what was accepted, and when of two workers that believe they own a thread only the newer can write.
"""

from __future__ import annotations

from locus_testkit.contracts._store import OpenStore, StoreFeatures
from locus_testkit.contracts._store_claims import ClaimLaws
from locus_testkit.contracts._store_entries import EntryLaws
from locus_testkit.contracts._store_threads import ThreadLaws

__all__ = ["JournalStoreContract", "OpenStore", "StoreFeatures"]


class JournalStoreContract(EntryLaws, ClaimLaws, ThreadLaws):
    """The laws of a journal store. Subclass it and say how yours is made.

    Example::

        class TestMyStore(JournalStoreContract):
            features = StoreFeatures(persistent=True, shared=True)

            def make_store(self, folder):
                return MyStore(folder / "runs.db")
    """
