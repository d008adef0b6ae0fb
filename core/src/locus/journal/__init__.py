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
        "Appended": "locus.journal.store",
        "Claim": "locus.journal.store",
        "Clock": "locus.journal.effects",
        "Effects": "locus.journal.effects",
        "History": "locus.journal.history",
        "HistoryEntry": "locus.journal.history",
        "InProcess": "locus.journal.effects",
        "JournalHost": "locus.journal.host",
        "JournalStore": "locus.journal.store",
        "MemoryStore": "locus.journal.memory",
        "Posted": "locus.journal.store",
        "PostingStore": "locus.journal.store",
        "Snapshot": "locus.journal.store",
        "SnapshotAdapter": "locus.journal.snapshots",
        "SystemClock": "locus.journal.effects",
        "ThreadInfo": "locus.journal.store",
        "read_history": "locus.journal.history",
        "read_entries": "locus.journal.history",
        "ThreadQuery": "locus.journal.store",
        "ThreadStatus": "locus.journal.store",
    },
)
