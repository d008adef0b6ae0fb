"""How threads are, from what the store's listing says: no thread is read for it, however long it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import evolve

from locus.core.errors import JournalError, LocusError, StoreError
from locus.core.journal import FORK, Asked, Body, Paused
from locus.core.messages import Role
from locus.journal import JournalHost, JournalStore, ThreadInfo, ThreadQuery
from locus.journal.listing import about, about_state, page, parent_thread, progress, status_of
from locus_plugin_cli.text import format_time, one_line

__all__ = [
    "as_json",
    "describe_status",
    "detail_of",
    "find_resumable",
    "is_resumable",
    "list_threads",
    "search_threads",
]

#: The statuses of threads that ``resume`` goes on with.
_RESUMABLE = ("waiting", "crashed", "paused", "dead_letter")

#: Status -> what a person reads; where there is a detail, it follows.
_SENTENCES = {
    "new": "empty",
    "waiting": "waits for an answer",
    "crashed": "stopped in the middle, can be resumed",
    "paused": "paused, can be resumed",
    "dead_letter": "set aside, can be resumed",
    "ended": "ended",
    "failed": "failed",
    "damaged": "damaged, cannot be read",
    None: "cannot be read",
}


async def list_threads(store: JournalStore, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
    """The threads that a query selects, the most recently changed first, each with its status.

    Where the store does not record how a thread is, each is read; the status of one that cannot be read is None.

    Raises:
        StoreError: the store cannot be used.
    """
    try:
        infos = await store.threads(query)
        if all(info.status is not None for info in infos):
            return infos
    except StoreError:
        raise
    except JournalError:  # it cannot answer the query
        pass
    read = [await _read_status(store, info) for info in await store.threads()]
    return page(read if query is None else [info for info in read if info.status is not None], query)


async def _read_status(store: JournalStore, info: ThreadInfo) -> ThreadInfo:
    is_held = info.holder is not None
    try:
        found = await store.peek(info.thread_id)
    except LocusError:
        return info
    if found is None:
        return evolve(info, status="running" if is_held else "new")
    bodies: list[Body] = [entry.body for entry in found.entries]
    if found.snapshot is None:
        known, moved = about(bodies), progress(bodies)
    else:
        known, moved = about_state(found.snapshot.state), progress([found.snapshot.last, *bodies])
    return evolve(
        info,
        status=status_of(moved.status, is_held=is_held),
        node=moved.node,
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        metadata=known.metadata,
    )


async def search_threads(
    store: JournalStore, infos: Sequence[ThreadInfo], text: str
) -> tuple[tuple[ThreadInfo, ...], int]:
    """The threads that have all words of a text, and how many could not be read.

    A word is looked for in the id and the title, which the listing has, and then in what was said, for which the thread
    is read.

    Raises:
        StoreError: the store cannot be used.
    """
    words = text.casefold().split()
    found, unread = [], 0
    for info in infos:
        known = f"{info.thread_id}\n{info.title}".casefold()
        if missing := [word for word in words if word not in known]:
            try:
                host = await JournalHost.peek(store, info.thread_id)
            except StoreError:
                raise
            except LocusError:
                unread += 1
                continue
            said = [] if host is None else [m.text.casefold() for m in host.state.messages if m.role is not Role.SYSTEM]
            if not all(any(word in each for each in said) for word in missing):
                continue
        found.append(info)
    return tuple(found), unread


def is_resumable(info: ThreadInfo) -> bool:
    """Whether ``resume`` goes on with a thread."""
    return info.status in _RESUMABLE


async def find_resumable(store: JournalStore, *, answered: bool) -> str | None:
    """The newest thread that can be resumed, or None. What kills its workers is left to a person who names it.

    Args:
        store: where to look.
        answered: there is an answer: the newest that waits for one.
    """
    found = await list_threads(store, ThreadQuery(status=("waiting", "crashed", "paused")))
    infos = [info for info in found if parent_thread(info.thread_id) is None]
    waiting = [info.thread_id for info in infos if info.status == "waiting"]
    ready = [] if answered else [info.thread_id for info in infos if info.status != "waiting"]
    return next(iter([*ready, *waiting]), None)


def describe_status(info: ThreadInfo, detail: str = "") -> str:
    """How a thread is, on one line.

    Args:
        info: the thread.
        detail: see `detail_of`.
    """
    if info.status == "running":
        since = f" since {format_time(info.since)}" if info.since is not None else ""
        return f"running: {one_line(info.holder or '')}{since}"
    if not detail:
        return _SENTENCES[info.status]
    text, _, more = _SENTENCES[info.status].partition(",")
    return f"{text}: {one_line(detail)}{',' if more else ''}{more}"


def detail_of(host: JournalHost, questions: Sequence[Asked]) -> str:
    """What its newest entries say about a thread: what it asks, why it was paused or set aside, or why it ended."""
    last = host.last
    if questions:
        return "; ".join(question.question for question in questions)
    newest = host.claim.entries[-1].body if host.claim.entries else last
    if isinstance(newest, Paused):
        if newest.not_before is not None:
            return f"sleeps until {format_time(newest.not_before)}"
        return f"cancelled ({newest.reason})" if newest.kind == "cancelled" and newest.reason else newest.reason
    if last is None or newest is not last or (host.open_node is not None and last.node != FORK):
        return ""
    return last.why if last.error is None else f"{last.why}, {last.error}"


def as_json(info: ThreadInfo) -> dict[str, Any]:
    """A thread for programs."""
    return {
        "thread_id": info.thread_id,
        "status": info.status,
        "resumable": is_resumable(info),
        "title": info.title,
        "model": info.model,
        "agent_id": info.agent_id,
        "forked_from": info.forked_from,
        "node": info.node,
        "entries": info.head,
        "holder": info.holder,
        "since": _iso(info.since),
        "created_at": _iso(info.created_at),
        "updated_at": _iso(info.updated_at),
        "metadata": dict(info.metadata),
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
