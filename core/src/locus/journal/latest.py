"""`LatestStore`: the newest state of each thread, and the steps since.

What a run without a checkpointer needs to be resumed in the same process, at the price of its state alone; and the
base of every store that cannot keep a journal.
"""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4

from attrs import define, field

from locus.core.errors import JournalError, ThreadBusy
from locus.core.journal import Body, Entry, Transition
from locus.journal.store import Appended, Claim, Snapshot, ThreadInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus.core.state import AgentState

__all__ = ["LatestStore"]

_NEVER = datetime.min.replace(tzinfo=UTC)


@define(slots=True)
class Thread:
    """One thread: its newest state, the steps since, and who holds it."""

    # The arguments of a `Snapshot`, which is made when somebody claims the thread: twice an iteration nobody does.
    newest: tuple[int, AgentState, Transition] | None = None
    tail: list[Body] = field(factory=list)
    token: str = ""
    holder: str | None = None
    # When it was claimed, or given back.
    since: datetime | None = None
    not_before: datetime | None = None
    # When it was claimed last, in claims of this store.
    turn: int = 0

    @property
    def active(self) -> datetime | None:
        """When it was taken, written to or given back last; a state says itself when it was committed."""
        times = [self.since, None if self.newest is None else self.newest[1].updated_at]
        return max((at for at in times if at is not None), default=None)

    @property
    def head(self) -> int:
        """Number of the newest entry."""
        return (0 if self.newest is None else self.newest[0]) + len(self.tail)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest state, or None."""
        return None if self.newest is None else Snapshot(*self.newest)


class LatestStore:
    """Keeps the newest state of each thread. No history: no replay, no time travel, no fork."""

    keeps_history = False
    snapshot_every = None

    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}
        self._lock = Lock()
        self._turns = 0

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread.

        Raises:
            ThreadBusy: a run of this process holds it.
        """
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                thread = self._threads[thread_id] = Thread()
            if thread.holder is not None:
                raise ThreadBusy(thread_id, thread.holder, thread.since.isoformat() if thread.since else "")
            self._turns += 1
            thread.token, thread.holder, thread.since = uuid4().hex, worker, datetime.now(UTC)
            thread.turn = self._turns
            return Claim(
                thread_id=thread_id,
                token=thread.token,
                head=thread.head,
                snapshot=thread.snapshot,
                entries=_entries(thread, 0),
            )

    def _held(self, claim: Claim) -> Thread | None:
        thread = self._threads.get(claim.thread_id)
        if thread is None or thread.holder is None or thread.token != claim.token:
            return None
        return thread

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add steps."""
        # Without the lock: only the one holder writes, and `claim` gives a thread to nobody before it is released.
        thread = self._threads.get(claim.thread_id)
        if thread is None or thread.token != claim.token or thread.holder is None:
            return Appended.FENCED
        thread.tail.extend(bodies)
        return Appended.OK

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """The newest state; the steps before it are done with."""
        thread = self._threads.get(claim.thread_id)
        if thread is None or thread.token != claim.token or thread.holder is None:
            return False
        thread.newest = at, state, last
        if thread.tail:
            thread.tail = []
        return True

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim still stands."""
        return self._held(claim) is not None

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back."""
        with self._lock:
            thread = self._held(claim)
            if thread is not None:
                thread.holder, thread.not_before, thread.since = None, not_before, datetime.now(UTC)

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest for its time to come."""
        with self._lock:
            due = [
                (t.not_before, thread_id)
                for thread_id, t in self._threads.items()
                if t.holder is None and t.not_before is not None and t.not_before <= now
            ]
        return min(due)[1] if due else None

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The steps since the newest state; the state itself comes with a claim."""
        with self._lock:
            thread = self._threads.get(thread_id)
            return _entries(thread, after) if thread is not None else ()

    async def peek(self, thread_id: str) -> Claim | None:
        """What stands in a thread, without taking it."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None or not thread.head:
                return None
            return Claim(
                thread_id=thread_id, token="", head=thread.head, snapshot=thread.snapshot, entries=_entries(thread, 0)
            )

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """The threads that this process has used, the most recently changed first: taken, written to or given back."""
        with self._lock:
            rows = sorted(self._threads.items(), key=lambda row: (row[1].active or _NEVER, row[1].turn), reverse=True)
            return tuple(
                ThreadInfo(
                    thread_id=i,
                    head=t.head,
                    holder=t.holder,
                    updated_at=t.active,
                    since=t.since if t.holder is not None else None,
                )
                for i, t in rows
            )

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """There is nothing to go back to.

        Raises:
            JournalError: always.
        """
        raise JournalError(
            f"cannot fork {thread_id!r}: {type(self).__name__} keeps the newest state of a thread and no history; "
            "give the agent a checkpointer that does, such as MemoryStore()"
        )

    async def delete(self, thread_id: str) -> bool:
        """Forget a thread."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                return False
            if thread.holder is not None:
                raise ThreadBusy(thread_id, thread.holder, thread.since.isoformat() if thread.since else "")
            del self._threads[thread_id]
            return True


def _entries(thread: Thread, after: int) -> tuple[Entry, ...]:
    first = thread.head - len(thread.tail) + 1
    numbered = enumerate(thread.tail, first)
    return tuple(Entry(n, thread.token, f"{n - 1}:" if n > 1 else "", body) for n, body in numbered if n > after)
