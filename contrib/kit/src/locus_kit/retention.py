"""Which threads of a store may be forgotten, and forgetting them: for any journal store that lists statuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime

from locus.core.errors import JournalError, ThreadBusy
from locus.journal import JournalStore, ThreadInfo, ThreadStatus
from locus.journal.listing import parent_thread

__all__ = ["ENDED", "forget", "prunable", "prune"]

#: How a thread is whose newest run is over.
ENDED: frozenset[ThreadStatus] = frozenset({"ended", "failed"})


async def prune(
    store: JournalStore,
    ended_before: datetime,
    *,
    status: Iterable[ThreadStatus] = ENDED,
    dry_run: bool = False,
) -> tuple[ThreadInfo, ...]:
    """Forget the threads whose newest run ended before a moment, and that nothing else needs, see `prunable`.

    A thread that is resumed between the listing and its deletion is kept.

    Args:
        store: where they are kept.
        ended_before: threads that were changed since are kept.
        status: ``"ended"``, ``"failed"`` or both.
        dry_run: True to delete nothing.

    Returns:
        The threads that were forgotten, or with ``dry_run`` would be; the most recently changed first.

    Raises:
        ValueError: another status is given.
        JournalError: the store does not record the status of threads.
    """
    chosen = prunable(await store.threads(), ended_before, status)
    return chosen if dry_run else await forget(store, chosen)


async def forget(store: JournalStore, infos: Iterable[ThreadInfo]) -> tuple[ThreadInfo, ...]:
    """Delete threads in the state in which they were listed; gives those that were deleted.

    Args:
        store: where they are kept.
        infos: the threads, as the store listed them; one that went on since, or that a worker holds, is kept.
    """
    gone: list[ThreadInfo] = []
    for info in infos:
        with contextlib.suppress(ThreadBusy):
            if await store.delete(info.thread_id, head=info.head):
                gone.append(info)
    return tuple(gone)


def prunable(
    infos: Iterable[ThreadInfo], ended_before: datetime, status: Iterable[ThreadStatus] = ENDED
) -> tuple[ThreadInfo, ...]:
    """The threads that may be forgotten.

    A thread is kept where its run is open, waits for an answer or was set aside, where a worker holds it, where a fork
    that is kept shares its entries, and where it is that of a child run whose parent is kept.

    Args:
        infos: all the threads of a store.
        ended_before: threads that were changed since are kept.
        status: ``"ended"``, ``"failed"`` or both.

    Raises:
        ValueError: another status is given; such a run is open, or was never begun.
        JournalError: the store does not record the status of threads.
    """
    wanted = frozenset(status)
    if not wanted <= ENDED:
        raise ValueError(f"status must hold only 'ended' and 'failed', got {sorted(wanted)}; other runs are open")
    every = {info.thread_id: info for info in infos}
    if any(info.status is None for info in every.values()):
        raise JournalError("this store does not record the status of threads, so they cannot be pruned")
    chosen = {name: info for name, info in every.items() if _has_ended(info, wanted, ended_before)}
    while True:
        kept = {name: info for name, info in every.items() if name not in chosen}
        shared = {info.forked_from for info in kept.values()}
        needed = [name for name in chosen if name in shared or parent_thread(name) in kept]
        if not needed:
            return tuple(chosen.values())
        for name in needed:  # which may need others
            del chosen[name]


def _has_ended(info: ThreadInfo, status: frozenset[ThreadStatus], before: datetime) -> bool:
    is_old = info.updated_at is not None and info.updated_at < before
    return is_old and info.holder is None and info.status in status
