"""What a worker is given: agents, what runs the offers of queues, and the store of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from locus import Agent
from locus.core.errors import ConfigError
from locus_plugin_worker.jobs import Handler
from locus_plugin_worker.stores import WorkerStore, queue_store

if TYPE_CHECKING:
    from locus.journal import JournalStore

__all__ = ["Work", "agents_of", "store_of"]

#: An agent, several, or what runs the offers of each queue.
Work = Agent[Any, Any] | Iterable[Agent[Any, Any]] | Mapping[str, Agent[Any, Any] | Handler]


def agents_of(given: Work) -> list[Agent[Any, Any]]:
    """The agents in it.

    Raises:
        ConfigError: there is something else in it.
    """
    if isinstance(given, Agent):
        return [given]
    if isinstance(given, Mapping):
        return [each for each in given.values() if isinstance(each, Agent)]
    agents = list(given)
    for each in agents:
        if not isinstance(each, Agent):
            raise ConfigError(f"expected agents, or a mapping from queues to handlers, got {each!r:.80}")
    return agents


def store_of(agents: list[Agent[Any, Any]], store: JournalStore | None) -> WorkerStore:
    """The one store.

    Raises:
        ConfigError: the agents have several or none, or it keeps no queues.
    """
    stores = {id(each.runtime.store): each.runtime.store for each in agents if each.runtime.store is not None}
    if store is None and len(stores) > 1:
        raise ConfigError(f"the agents have {len(stores)} checkpointers; give the worker store=, or one to all of them")
    return queue_store(store if store is not None else next(iter(stores.values()), None))
