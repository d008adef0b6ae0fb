"""How a run is, in the words of those who wait for it, and what a queued one is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus.core.journal import Cancelled, Paused, Submitted
from locus.journal.listing import parent_thread
from locus_plugin_worker.presence import PREFIX

if TYPE_CHECKING:
    from datetime import datetime

    from locus.journal import JournalStore, ThreadInfo, ThreadQuery, ThreadStatus

__all__ = ["RETRY", "STATES", "describe_state", "read_due", "read_info", "read_runs", "read_submitted", "state_of"]

#: The body of a signal that only has a thread offered again: it is for no run, so it cancels none.
RETRY: Final = Cancelled(run_id="-", reason="retry")

#: State -> the statuses of threads that it covers.
STATES: Final[dict[str, tuple[ThreadStatus, ...]]] = {
    "queued": ("queued", "new"),
    "running": ("running",),
    "waiting": ("waiting",),
    "paused": ("paused",),
    "crashed": ("crashed",),
    "failed": ("failed",),
    "set-aside": ("dead_letter",),
    "ended": ("ended",),
    "damaged": ("damaged",),
}

_BY_STATUS: Final = {status: state for state, statuses in STATES.items() for status in statuses}


def state_of(info: ThreadInfo) -> str:
    """How the newest run of a thread is."""
    return _BY_STATUS.get(info.status, "unknown") if info.status is not None else "unknown"


def describe_state(state: str, due: datetime | None) -> str:
    """How a run is, for people: until when it sleeps, where it does."""
    return state if due is None else f"sleeps until {due.astimezone():%Y-%m-%d %H:%M:%S}"


async def read_runs(store: JournalStore, query: ThreadQuery, limit: int) -> list[dict[str, Any]]:
    """The runs that a query selects, the most recently changed first, as data; children are not runs of their own.

    Args:
        store: where they are.
        query: which.
        limit: the most runs; 0 = all.
    """
    rows: list[dict[str, Any]] = []
    for info in await store.threads(query):
        if not info.head or info.thread_id.startswith(PREFIX) or parent_thread(info.thread_id) is not None:
            continue
        turn = None if info.title else await read_submitted(store, info.thread_id)
        due = await read_due(store, info)
        rows.append(
            {
                "thread_id": info.thread_id,
                "state": state_of(info),
                "agent": info.agent_id or (turn.agent if turn is not None else ""),
                "title": info.title or (turn.prompt.text if turn is not None else ""),
                "not_before": None if due is None else due.isoformat(),
                "node": info.node,
                "holder": info.holder,
                "created_at": None if info.created_at is None else info.created_at.isoformat(),
                "updated_at": None if info.updated_at is None else info.updated_at.isoformat(),
            }
        )
        if len(rows) == limit:
            break
    return rows


async def read_info(store: JournalStore, thread_id: str) -> ThreadInfo:
    """What a listing says about a thread that is there."""
    return next(each for each in await store.threads() if each.thread_id == thread_id)


async def read_due(store: JournalStore, info: ThreadInfo) -> datetime | None:
    """Until when the run of a thread sleeps, or None: its newest entry says it."""
    if info.status != "paused":
        return None
    newest = await store.read(info.thread_id, info.head - 1)
    body = newest[-1].body if newest else None
    return body.not_before if isinstance(body, Paused) else None


async def read_submitted(store: JournalStore, thread_id: str) -> Submitted | None:
    """The newest turn that was handed in for a thread, as far as a claim of it would show."""
    found = await store.peek(thread_id)
    entries = () if found is None else found.entries
    return next((each.body for each in reversed(entries) if isinstance(each.body, Submitted)), None)
