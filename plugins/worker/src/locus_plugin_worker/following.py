"""`follow`: what happens on a thread, while another process works on it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import anyio

from locus.core.errors import JournalError, NothingToResume
from locus_plugin_worker.moments import Moment, read_moments

if TYPE_CHECKING:
    from locus.journal import JournalStore

__all__ = ["follow"]

#: Seconds between two looks: from the first after something has happened, to the most where nothing does.
_SOON, _LATER = 0.05, 0.5


async def follow(store: JournalStore, thread_id: str, *, after: int = 0) -> AsyncGenerator[Moment, None]:
    """Every moment of a thread, from its first entry on, and those that come; without end, until the caller leaves.

    Nothing is claimed, so the worker is not disturbed. Each entry is read once.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        after: begin behind the entry with this number.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    if not store.keeps_history:
        raise JournalError(f"thread {thread_id!r} cannot be watched: {type(store).__name__} keeps no history")
    wait, seen = _SOON, after
    entries = await store.read(thread_id, after)
    if not entries and await store.peek(thread_id) is None:
        raise NothingToResume(f"thread {thread_id!r} does not exist in this {type(store).__name__}")
    while True:
        for entry in entries:
            seen = entry.n
            for moment in read_moments(entry):
                yield moment
        wait = _SOON if entries else min(2 * wait, _LATER)
        await anyio.sleep(wait)
        entries = await store.read(thread_id, seen)
