"""The journal, in which runs are recorded: the store protocol, the kernel's stores, and the host that writes to one."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.journal.history import History, HistoryEntry, read_history, recorded_entries
    from locus.journal.memory import MemoryStore
    from locus.journal.snapshots import SnapshotAdapter
    from locus.journal.store import Appended, Claim, JournalStore, ThreadInfo

__all__ = [
    "Appended",
    "Claim",
    "History",
    "HistoryEntry",
    "JournalStore",
    "MemoryStore",
    "SnapshotAdapter",
    "ThreadInfo",
    "read_history",
    "recorded_entries",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Appended": "locus.journal.store",
        "Claim": "locus.journal.store",
        "History": "locus.journal.history",
        "HistoryEntry": "locus.journal.history",
        "JournalStore": "locus.journal.store",
        "MemoryStore": "locus.journal.memory",
        "SnapshotAdapter": "locus.journal.snapshots",
        "ThreadInfo": "locus.journal.store",
        "read_history": "locus.journal.history",
        "recorded_entries": "locus.journal.history",
    },
)
