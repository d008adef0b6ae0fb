"""Which stores a worker can use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from locus.core import has_all_of
from locus.core.errors import ConfigError
from locus.journal import JournalStore, QueueDepth, QueueStore

__all__ = ["WorkerStore", "add_up", "keeps_queues", "queue_store"]


class WorkerStore(JournalStore, QueueStore, Protocol):
    """Keeps threads, and hands them to workers."""


def keeps_queues(store: Any) -> bool:
    """Whether a store keeps queues, and the history that a run in another process needs."""
    return has_all_of(store, QueueStore) and bool(store.keeps_history)


def queue_store(store: Any) -> WorkerStore:
    """The store.

    Raises:
        ConfigError: the store is missing, or keeps no queues.
    """
    if store is None:
        raise ConfigError("expected a store with queues, got None; pass store=, or give the agent a checkpointer=")
    if not keeps_queues(store):
        raise ConfigError(f"{type(store).__name__} keeps no queues; use a store that does, such as MemoryStore()")
    found: WorkerStore = store
    return found


def add_up(depths: Sequence[QueueDepth]) -> QueueDepth:
    """What is in several queues."""
    return QueueDepth(
        ready=sum(each.ready for each in depths),
        held=sum(each.held for each in depths),
        sleeping=sum(each.sleeping for each in depths),
        oldest=min((each.oldest for each in depths if each.oldest is not None), default=None),
        redelivered=sum(each.redelivered for each in depths),
    )
