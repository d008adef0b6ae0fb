"""`JournalStoreContract`: the laws of a journal store, one test each.

A store keeps what a run is made of. It is right when the state after any crash, hand-over or restart is the
fold of what was accepted, and when of two workers that believe they own a thread only the newer can write.
"""

from __future__ import annotations

from locus_testkit.contracts._law_1_fold import FoldLaws
from locus_testkit.contracts._law_2_commit import CommitLaws
from locus_testkit.contracts._law_3_fencing import FencingLaws
from locus_testkit.contracts._law_4_effects import EffectLaws
from locus_testkit.contracts._law_5_models import ModelCallLaws
from locus_testkit.contracts._law_6_size import SizeLaws
from locus_testkit.contracts._law_7_steps import StepLaws
from locus_testkit.contracts._law_8_time import TimeLaws
from locus_testkit.contracts._law_9_bounds import BoundLaws
from locus_testkit.contracts._law_10_ack import AckLaws
from locus_testkit.contracts._posts import PostLaws
from locus_testkit.contracts._queue import QueueLaws
from locus_testkit.contracts._signals import SignalLaws
from locus_testkit.contracts._store import OpenStore, StoreFeatures
from locus_testkit.contracts._store_forks import ForkLaws
from locus_testkit.contracts._store_listing import ListingLaws
from locus_testkit.contracts._store_pages import PageLaws
from locus_testkit.contracts._store_retention import RetentionLaws
from locus_testkit.contracts._store_threads import ThreadLaws

__all__ = ["JournalStoreContract", "OpenStore", "StoreFeatures"]


# pytest collects from the last base to the first: the report lists the laws in their order.
class JournalStoreContract(
    SignalLaws,
    QueueLaws,
    RetentionLaws,
    ForkLaws,
    ListingLaws,
    ThreadLaws,
    AckLaws,
    BoundLaws,
    TimeLaws,
    StepLaws,
    SizeLaws,
    ModelCallLaws,
    EffectLaws,
    PostLaws,
    FencingLaws,
    CommitLaws,
    PageLaws,
    FoldLaws,
):
    """The laws of a journal store. Subclass it and say how yours is made.

    Example::

        class TestMyStore(JournalStoreContract):
            features = StoreFeatures(persistent=True, shared=True)

            def make_store(self, folder):
                return MyStore(folder / "runs.db")
    """
