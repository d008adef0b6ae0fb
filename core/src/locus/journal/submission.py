"""Turns that are handed in for a worker to run: where they wait, and that no queue takes more than it may."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from locus.core.errors import ConfigError, QueueFull
from locus.journal.host import JournalHost
from locus.journal.queue import QueueStore, pinned_queue
from locus.journal.recovery import REQUEST_IDS
from locus.journal.signals import Signal
from locus.journal.store import JournalStore

if TYPE_CHECKING:
    from datetime import datetime

    from locus.core.journal import Submitted


class _Store(JournalStore, QueueStore, Protocol):
    """Keeps threads, and hands them to workers."""


def choose_queue(agent: str, version: str, queue: str | None, *, pin: bool) -> str:
    """Where a turn for an agent is to wait.

    Raises:
        ConfigError: it is to be bound to a version, and the agent has none, or another queue was asked for.
    """
    if not pin:
        return queue or agent or "default"
    if not agent or not version:
        missing = "version" if agent else "name"
        raise ConfigError(f"pin=True binds a run to the version of its agent; give the agent a {missing}=")
    if queue is not None:
        raise ConfigError(f"pin=True chooses the queue, and queue={queue!r} another one; give one of both")
    return pinned_queue(agent, version)


async def submit_turn(
    store: _Store, thread_id: str, turn: Submitted, *, priority: int, not_before: datetime | None, max_depth: int | None
) -> None:
    """Put a turn into its queue: as a new thread, or as a signal to one that is there.

    Raises:
        QueueFull: as many threads wait there as may.
    """
    if max_depth is not None:
        depth = await store.depth(turn.queue)
        waiting = depth.ready + depth.sleeping
        if waiting >= max_depth and not await _was_submitted(store, thread_id, turn.request_id):
            raise QueueFull(turn.queue, waiting, max_depth)
    begin = partial(store.submit, thread_id, (turn,), queue=turn.queue, priority=priority, not_before=not_before)
    signal = Signal(body=turn, id=turn.request_id or turn.run_id)
    # A thread that is there gets it as a signal; one that is deleted in between is begun again.
    _ = await begin() or await store.signal(thread_id, signal) or await begin()


async def _was_submitted(store: _Store, thread_id: str, request_id: str) -> bool:
    """Whether this turn is there already: to ask for it again takes no place."""
    host = await JournalHost.peek(store, thread_id) if request_id else None
    if host is None:
        return False
    had = {*host.state.metadata.get(REQUEST_IDS, ()), "" if host.submitted is None else host.submitted.request_id}
    return request_id in had.union(each.id for each in await store.signals(thread_id))
