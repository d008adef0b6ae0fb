"""The journal, in which runs are recorded: the store protocol, the kernel's stores, and the host that writes to one."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.journal.memory import MemoryStore
    from locus.journal.snapshots import SnapshotAdapter
    from locus.journal.store import Appended, Claim, JournalStore, ThreadInfo

__all__ = [
    "Appended",
    "Claim",
    "JournalStore",
    "MemoryStore",
    "SnapshotAdapter",
    "ThreadInfo",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Appended": "locus.journal.store",
        "Claim": "locus.journal.store",
        "JournalStore": "locus.journal.store",
        "MemoryStore": "locus.journal.memory",
        "SnapshotAdapter": "locus.journal.snapshots",
        "ThreadInfo": "locus.journal.store",
    },
)
