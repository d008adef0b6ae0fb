"""The journal, in which runs are recorded: the store protocol, the kernel's stores, and the host that writes to one."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.journal.effects import Clock, Effects, InProcess, SystemClock
    from locus.journal.history import History, HistoryEntry, read_entries, read_history
    from locus.journal.host import JournalHost
    from locus.journal.memory import MemoryStore
    from locus.journal.snapshots import SnapshotAdapter
    from locus.journal.store import (
        Appended,
        Claim,
        JournalStore,
        Posted,
        PostingStore,
        Snapshot,
        ThreadInfo,
        ThreadQuery,
        ThreadStatus,
    )

__all__ = [
    "Appended",
    "Claim",
    "Clock",
    "Effects",
    "History",
    "HistoryEntry",
    "InProcess",
    "JournalHost",
    "JournalStore",
    "MemoryStore",
    "Posted",
    "PostingStore",
    "Snapshot",
    "SnapshotAdapter",
    "SystemClock",
    "ThreadInfo",
    "ThreadQuery",
    "ThreadStatus",
    "read_entries",
    "read_history",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.journal.effects": ("Clock", "Effects", "InProcess", "SystemClock"),
        "locus.journal.history": ("History", "HistoryEntry", "read_entries", "read_history"),
        "locus.journal.host": ("JournalHost",),
        "locus.journal.memory": ("MemoryStore",),
        "locus.journal.snapshots": ("SnapshotAdapter",),
        "locus.journal.store": (
            "Appended",
            "Claim",
            "JournalStore",
            "Posted",
            "PostingStore",
            "Snapshot",
            "ThreadInfo",
            "ThreadQuery",
            "ThreadStatus",
        ),
    },
)
