"""`history` and `state_at`, of an agent's thread or a store's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from locus import Agent
from locus.journal import History, JournalStore, read_history

if TYPE_CHECKING:
    from locus.core.state import AgentState

__all__ = ["Source", "history", "state_at", "store_of"]

#: Where a thread is kept: an agent with a checkpointer, or the store itself.
Source: TypeAlias = Agent[Any, Any] | JournalStore


def store_of(source: Source) -> JournalStore:
    """The store of an agent, or the store that was given.

    Raises:
        ConfigError: the agent has no checkpointer.
    """
    return source.threads.store if isinstance(source, Agent) else source


async def history(source: Source, thread_id: str) -> History:
    """What happened on a thread.

    Args:
        source: the agent, or the store where the thread is kept.
        thread_id: the thread; a run may hold it meanwhile.

    Raises:
        ConfigError: the agent has no checkpointer.
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    return await read_history(store_of(source), thread_id)


async def state_at(source: Source, thread_id: str, n: int) -> AgentState:
    """The state that a thread's n-th transition committed.

    Raises:
        JournalError: the transition does not exist; otherwise as for `history`.
    """
    return (await history(source, thread_id)).at(n).state
