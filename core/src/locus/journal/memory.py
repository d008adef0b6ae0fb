"""`MemoryStore`: journals in this process's memory, under the same laws as a store on disk."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4

from attrs import define, field, frozen

from locus.core.errors import JournalError, NothingToResume, ThreadBusy
from locus.core.journal import Body, Entry, Transition
from locus.journal.store import Appended, Claim, Snapshot, ThreadInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus.core.state import AgentState

__all__ = ["MemoryStore"]


@frozen
class _Held:
    token: str
    worker: str
    since: datetime


@define(slots=True)
class _Thread:
    bodies: list[Body] = field(factory=list)
    # (number of the first entry, writer) for each claim that wrote: an append costs no object of its own.
    writers: list[tuple[int, str]] = field(factory=list)
    held: _Held | None = None
    snapshot: Snapshot | None = None
    not_before: datetime | None = None
    changed: int = 0
    updated_at: datetime | None = None


class MemoryStore:
    """Keeps journals as long as it lives. Safe to share between threads, tasks and agents."""

    keeps_history = True
    #: Memory folds as fast as it reads.
    snapshot_every = None

    def __init__(self) -> None:
        self._threads: dict[str, _Thread] = {}
        self._lock = Lock()
        self._changes = 0
        self._changed: _Thread | None = None

    def _change(self, thread: _Thread) -> None:
        """This thread was changed last."""
        self._changed = thread
        self._changes += 1
        thread.changed = self._changes

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread.

        Raises:
            ThreadBusy: a run of this process holds it (a run always gives its thread back when it ends).
        """
        token = uuid4().hex
        with self._lock:
            thread = self._threads.setdefault(thread_id, _Thread())
            if thread.held is not None:
                raise ThreadBusy(thread_id, thread.held.worker, thread.held.since.isoformat())
            thread.held = _Held(token, worker, datetime.now(UTC))
            self._change(thread)
            snapshot = thread.snapshot
            return Claim(
                thread_id=thread_id,
                token=token,
                head=len(thread.bodies),
                snapshot=snapshot,
                entries=self._entries(thread, snapshot.at if snapshot else 0),
            )

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none."""
        with self._lock:
            thread = self._threads.get(claim.thread_id)
            if thread is None or thread.held is None or thread.held.token != claim.token:
                return Appended.FENCED
            if not thread.writers or thread.writers[-1][1] != claim.token:
                thread.writers.append((len(thread.bodies) + 1, claim.token))
            thread.bodies.extend(bodies)
            if thread is not self._changed:
                self._change(thread)
            return Appended.OK

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold."""
        with self._lock:
            thread = self._threads.get(claim.thread_id)
            if thread is None or thread.held is None or thread.held.token != claim.token or at > len(thread.bodies):
                return False
            thread.snapshot = Snapshot(at, state, last)
            return True

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim still stands; memory needs no lease."""
        thread = self._threads.get(claim.thread_id)
        return thread is not None and thread.held is not None and thread.held.token == claim.token

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back."""
        with self._lock:
            thread = self._threads.get(claim.thread_id)
            if thread is None or thread.held is None or thread.held.token != claim.token:
                return
            thread.held, thread.not_before, thread.updated_at = None, not_before, datetime.now(UTC)
            self._change(thread)

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest for its time to come."""
        with self._lock:
            due = [
                (t.not_before, thread_id)
                for thread_id, t in self._threads.items()
                if t.held is None and t.not_before is not None and t.not_before <= now
            ]
        return min(due)[1] if due else None

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread; empty for an unknown one."""
        with self._lock:
            thread = self._threads.get(thread_id)
            return self._entries(thread, after) if thread is not None else ()

    async def peek(self, thread_id: str) -> Claim | None:
        """What stands in a thread, without taking it."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None or not thread.bodies:
                return None
            snapshot = thread.snapshot
            entries = self._entries(thread, snapshot.at if snapshot else 0)
            return Claim(thread_id=thread_id, token="", head=len(thread.bodies), snapshot=snapshot, entries=entries)

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """All threads, the most recently changed first: taken, written to or given back."""
        with self._lock:
            rows = sorted(self._threads.items(), key=lambda row: -row[1].changed)
            return tuple(
                ThreadInfo(
                    thread_id=thread_id,
                    head=len(t.bodies),
                    holder=t.held.worker if t.held else None,
                    updated_at=t.updated_at,
                    since=t.held.since if t.held else None,
                )
                for thread_id, t in rows
            )

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """A new thread that begins with the first entries of another; the entries themselves are shared.

        Raises:
            NothingToResume: no such thread.
            JournalError: ``into`` is taken, or ``at`` is no number of an entry.
        """
        with self._lock:
            thread, taken = self._threads.get(thread_id), self._threads.get(into)
            if thread is None or not thread.bodies:
                raise NothingToResume(f"there is no thread {thread_id!r} to fork")
            if taken is not None and (taken.bodies or taken.held is not None):
                raise JournalError(f"cannot fork {thread_id!r} into {into!r}: there is such a thread; name another")
            if not 1 <= at <= len(thread.bodies):
                raise JournalError(
                    f"cannot fork {thread_id!r} after entry {at}: it has the entries 1 to {len(thread.bodies)}"
                )
            made = self._threads[into] = _Thread(bodies=thread.bodies[:at])
            self._change(made)
            made.writers = [(first, writer) for first, writer in thread.writers if first <= at]
            made.updated_at = datetime.now(UTC)
            if thread.snapshot is not None and thread.snapshot.at <= at:
                made.snapshot = thread.snapshot
            if bodies:
                made.writers.append((at + 1, uuid4().hex))
                made.bodies.extend(bodies)

    async def delete(self, thread_id: str) -> bool:
        """Forget a thread."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                return False
            if thread.held is not None:
                raise ThreadBusy(thread_id, thread.held.worker, thread.held.since.isoformat())
            del self._threads[thread_id]
            self._changed = None
            return True

    @staticmethod
    def _entries(thread: _Thread, after: int) -> tuple[Entry, ...]:
        made: list[Entry] = []
        spans = [*thread.writers, (len(thread.bodies) + 1, "")]
        parent = ""
        for (first, writer), (stop, _) in pairwise(spans):
            for n in range(first, stop):
                if n > after:
                    made.append(Entry(n, writer, parent, thread.bodies[n - 1]))
                parent = f"{n}:{writer}"
        return tuple(made)
