"""The journal, in which runs are recorded: the store protocol, the kernel's stores, and the host that writes to one."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.journal.effects import Clock as Clock
    from locus.journal.effects import Effects as Effects
    from locus.journal.effects import InProcess as InProcess
    from locus.journal.effects import SystemClock as SystemClock
    from locus.journal.history import History as History
    from locus.journal.history import HistoryEntry as HistoryEntry
    from locus.journal.history import read_entries as read_entries
    from locus.journal.history import read_history as read_history
    from locus.journal.host import JournalHost as JournalHost
    from locus.journal.memory import MemoryStore as MemoryStore
    from locus.journal.queue import PRIORITIES as PRIORITIES
    from locus.journal.queue import Offer as Offer
    from locus.journal.queue import PriorityTurns as PriorityTurns
    from locus.journal.queue import QueueDepth as QueueDepth
    from locus.journal.queue import QueueStore as QueueStore
    from locus.journal.queue import pinned_queue as pinned_queue
    from locus.journal.recovery import LIMITS as LIMITS
    from locus.journal.signals import Signal as Signal
    from locus.journal.signals import Watch as Watch
    from locus.journal.store import Appended as Appended
    from locus.journal.store import Claim as Claim
    from locus.journal.store import FoldingStore as FoldingStore
    from locus.journal.store import JournalStore as JournalStore
    from locus.journal.store import Posted as Posted
    from locus.journal.store import PostingStore as PostingStore
    from locus.journal.store import Snapshot as Snapshot
    from locus.journal.store import ThreadInfo as ThreadInfo
    from locus.journal.store import ThreadQuery as ThreadQuery
    from locus.journal.store import ThreadStatus as ThreadStatus

_MODULES = {
    "locus.journal.effects": ("Clock", "Effects", "InProcess", "SystemClock"),
    "locus.journal.history": ("History", "HistoryEntry", "read_entries", "read_history"),
    "locus.journal.host": ("JournalHost",),
    "locus.journal.memory": ("MemoryStore",),
    "locus.journal.recovery": ("LIMITS",),
    "locus.journal.queue": ("PRIORITIES", "Offer", "PriorityTurns", "QueueDepth", "QueueStore", "pinned_queue"),
    "locus.journal.signals": ("Signal", "Watch"),
    "locus.journal.store": (
        "Appended",
        "Claim",
        "FoldingStore",
        "JournalStore",
        "Posted",
        "PostingStore",
        "Snapshot",
        "ThreadInfo",
        "ThreadQuery",
        "ThreadStatus",
    ),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
