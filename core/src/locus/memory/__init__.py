"""Memory: where journals are kept, and what of a long conversation a model gets to see."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.memory.conversation import (
        ConversationManager,
        LLMCompactor,
        SlidingWindowManager,
        SummarizingManager,
        View,
    )
    from locus.memory.inmemory import MemoryStore
    from locus.memory.latest import LatestStore
    from locus.memory.snapshots import SnapshotAdapter
    from locus.memory.store import Appended, Claim, JournalStore, ThreadInfo

__all__ = [
    "Appended",
    "Claim",
    "ConversationManager",
    "JournalStore",
    "LLMCompactor",
    "LatestStore",
    "MemoryStore",
    "SlidingWindowManager",
    "SnapshotAdapter",
    "SummarizingManager",
    "ThreadInfo",
    "View",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Appended": "locus.memory.store",
        "Claim": "locus.memory.store",
        "ConversationManager": "locus.memory.conversation",
        "JournalStore": "locus.memory.store",
        "LLMCompactor": "locus.memory.conversation",
        "LatestStore": "locus.memory.latest",
        "MemoryStore": "locus.memory.inmemory",
        "SlidingWindowManager": "locus.memory.conversation",
        "SnapshotAdapter": "locus.memory.snapshots",
        "SummarizingManager": "locus.memory.conversation",
        "ThreadInfo": "locus.memory.store",
        "View": "locus.memory.conversation",
    },
)
