"""Memory: where journals are kept, and what of a long conversation a model gets to see."""

from locus.memory.conversation import (
    ConversationManager,
    LLMCompactor,
    SlidingWindowManager,
    SummarizingManager,
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
]
