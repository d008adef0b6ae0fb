"""`MemoryStore`: journals in this process's memory, under the same laws as a store on disk.

With a history it is a checkpointer for tests, notebooks and short-lived services. Without one it keeps the newest
state of each thread and the steps since: what a run without a checkpointer needs to be resumed in the same process, at
the price of its state alone, and the base of every store that cannot keep a journal.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
from attrs import define, evolve, field

from locus.core.errors import JournalError, NothingToResume, ThreadBusy
from locus.core.frozen import frozen
from locus.core.journal import Body, Entry, Transition
from locus.journal.effects import Clock, SystemClock
from locus.journal.listing import about, about_state, page, progress, progress_of_fork, status_of
from locus.journal.memory_queue import Places
from locus.journal.store import Appended, Claim, Snapshot, ThreadInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from locus.core.state import AgentState
    from locus.journal.queue import Offer, QueueDepth
    from locus.journal.signals import Signal, Watch
    from locus.journal.store import ThreadQuery

#: Seconds between two looks of a worker that waits for an offer: the first two, and at most.
_SOON, _POLL = 0.0002, 0.02
_OK = Appended.OK


@frozen
class Holder:
    """Who holds a thread."""

    token: str
    worker: str
    since: datetime
    watch: Watch


@define(slots=True)
class Thread:
    """One thread: its newest snapshot, its entries, and who holds it."""

    #: The arguments of the newest `Snapshot`, which is made when it is asked for: not twice an iteration.
    newest: tuple[int, AgentState, Transition] | None = None
    bodies: list[Body] = field(factory=list)
    #: How many entries came before `bodies`: 0 where every entry is kept.
    dropped: int = 0
    #: (number of the first entry, writer) per claim that wrote: an append costs no object of its own.
    writers: list[tuple[int, str]] = field(factory=list)
    held: Holder | None = None
    not_before: datetime | None = None
    #: When it was claimed, released or forked last.
    moved_at: datetime | None = None
    created_at: datetime | None = None
    #: The thread that it is a fork of, and its head when it was made.
    forked_from: str | None = None
    forked_at: int = 0
    #: Which change of the store was the newest of this thread.
    changed: int = 0

    @property
    def head(self) -> int:
        """Number of the newest entry."""
        return self.dropped + len(self.bodies)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, or None."""
        return None if self.newest is None else Snapshot(*self.newest)

    @property
    def updated_at(self) -> datetime | None:
        """When it was claimed, written to or released last; a transition records when it was committed."""
        last = next((body for body in reversed(self.bodies) if isinstance(body, Transition)), None)
        written = None if last is None else last.delta.changed.get("updated_at")
        times = (self.moved_at, None if self.newest is None else self.newest[1].updated_at, written)
        return max((at for at in times if at is not None), default=None)

    def entries(self, after: int) -> tuple[Entry, ...]:
        """The entries after a number that are kept."""
        made: list[Entry] = []
        start = max(after, self.dropped) + 1
        parent = ""
        # A run that yields often has many writers: begin with the one before that which wrote the first of these.
        begin = max(0, bisect_right(self.writers, start, key=itemgetter(0)) - 2)
        for (first, writer), (stop, _) in pairwise([*self.writers[begin:], (self.head + 1, "")]):
            if first >= stop:  # a claim that wrote nothing
                continue
            for n in range(max(first, start), stop):
                made.append(
                    Entry(n, writer, parent if n == first else f"{n - 1}:{writer}", self.bodies[n - 1 - self.dropped])
                )
            parent = f"{stop - 1}:{writer}"
        return tuple(made)


class MemoryStore:
    """Keeps journals as long as it lives. Safe to share between threads, tasks and agents.

    Args:
        history: False to keep the newest state of each thread only: no replay, no time travel, no fork.
        clock: tells from when a thread may be offered to a worker; the machine's when None.
        lease: seconds after which an offer is made again whose worker says nothing.
    """

    #: Memory folds as fast as it reads.
    snapshot_every = None

    def __init__(self, *, history: bool = True, clock: Clock | None = None, lease: float = 30.0) -> None:
        self.keeps_history = history
        self._places = Places((clock or SystemClock()).now, lease)
        self._threads: dict[str, Thread] = {}
        self._lock = Lock()
        self._changes = 0
        self._changed: Thread | None = None

    def _change(self, thread: Thread) -> None:
        """Make this thread the one that was changed last."""
        self._changed = thread
        self._changes += 1
        thread.changed = self._changes

    def _thread_of(self, claim: Claim) -> Thread | None:
        """The thread of a claim that was neither released nor followed by another one."""
        thread = self._threads.get(claim.thread_id)
        return None if thread is None or thread.held is None or thread.held.token != claim.token else thread

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread.

        Raises:
            ThreadBusy: a run of this process holds it (a run always gives its thread back when it ends).
        """
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                thread = self._threads[thread_id] = Thread()
            if thread.held is not None:
                raise ThreadBusy(thread_id, thread.held.worker, thread.held.since.isoformat())
            shown = evolve(_show(thread_id, thread, uuid4().hex), signals=self._places.signals(thread_id))
            thread.held = Holder(shown.token, worker, datetime.now(UTC), shown.watch)
            thread.moved_at = thread.held.since
            thread.created_at = thread.created_at or thread.moved_at
            self._change(thread)
            return shown

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none."""
        with self._lock:
            thread = self._threads.get(claim.thread_id)
            if thread is None or thread.held is None or thread.held.token != claim.token:
                return Appended.FENCED
            if bodies and (not thread.writers or thread.writers[-1][1] != claim.token):
                thread.writers.append((thread.head + 1, claim.token))
            thread.bodies.extend(bodies)
            if thread is not self._changed:
                self._change(thread)
            return _OK

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold; without a history this is the newest state, and the steps before it are dropped."""
        with self._lock:
            thread = self._thread_of(claim)
            if thread is None or (self.keeps_history and at > len(thread.bodies)):
                return False
            thread.newest = at, state, last
            if not self.keeps_history:
                thread.dropped = at
                thread.writers = [(at, claim.token)]
                if thread.bodies:
                    thread.bodies = []
                if thread is not self._changed:
                    self._change(thread)
            return True

    def keep_fold(self, claim: Claim, fold: Snapshot) -> None:
        """Show it to the next claim: what it consists of is in memory anyway."""
        with self._lock:
            thread = self._thread_of(claim)
            if thread is not None and self.keeps_history:
                thread.newest = fold.at, fold.state, fold.last

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim is still valid; memory needs no lease."""
        return self._thread_of(claim) is not None

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back."""
        with self._lock:
            thread = self._thread_of(claim)
            if thread is not None:
                thread.held, thread.not_before, thread.moved_at = None, not_before, datetime.now(UTC)
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
        """The entries of a thread; empty for an unknown one. Without a history: the steps since the newest state."""
        with self._lock:
            thread = self._threads.get(thread_id)
            return thread.entries(after) if thread is not None else ()

    async def peek(self, thread_id: str) -> Claim | None:
        """What a claim would show, without taking the thread."""
        with self._lock:
            thread = self._threads.get(thread_id)
            return None if thread is None or not thread.head else _show(thread_id, thread, "")

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first: claimed, written to or released."""
        with self._lock:
            rows = sorted(self._threads.items(), key=lambda row: -row[1].changed)
            return page([_list(thread_id, thread) for thread_id, thread in rows], query)

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """A new thread that begins with the first entries of another; the entries themselves are shared.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, ``at`` is not the number of an entry, or no history is kept.
        """
        if not self.keeps_history:
            raise JournalError(
                f"cannot fork {thread_id!r}: {type(self).__name__} keeps the newest state of a thread and no history; "
                "give the agent a checkpointer that does, such as MemoryStore()"
            )
        with self._lock:
            thread, taken = self._threads.get(thread_id), self._threads.get(into)
            if thread is None or not thread.bodies:
                raise NothingToResume(f"thread {thread_id!r} does not exist, so it cannot be forked")
            if taken is not None and (taken.bodies or taken.held is not None):
                raise JournalError(
                    f"cannot fork {thread_id!r} into {into!r}: that thread exists already; choose another name"
                )
            if not 1 <= at <= len(thread.bodies):
                raise JournalError(
                    f"cannot fork {thread_id!r} after entry {at}: it has the entries 1 to {len(thread.bodies)}"
                )
            made = self._threads[into] = Thread(bodies=thread.bodies[:at])
            self._change(made)
            made.writers = [(first, writer) for first, writer in thread.writers if first <= at]
            made.created_at = made.moved_at = datetime.now(UTC)
            made.forked_from, made.forked_at = thread_id, at
            if thread.newest is not None and thread.newest[0] <= at:
                made.newest = thread.newest
            if bodies:
                made.writers.append((at + 1, uuid4().hex))
                made.bodies.extend(bodies)

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread, while this is the number of its newest entry."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                return False
            if thread.held is not None:
                raise ThreadBusy(thread_id, thread.held.worker, thread.held.since.isoformat())
            if head is not None and thread.head != head:
                return False
            del self._threads[thread_id]
            self._places.forget(thread_id)
            for other in self._threads.values():
                if other.forked_from == thread_id:
                    other.forked_from = thread.forked_from
            self._changed = None
            return True

    # -- the queue --------------------------------------------------------------------------------

    async def submit(
        self,
        thread_id: str,
        bodies: Sequence[Body],
        *,
        queue: str,
        priority: int = 0,
        not_before: datetime | None = None,
    ) -> bool:
        """Begin a thread, and put it into a queue."""
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is not None and (thread.head or thread.held is not None):
                return False
            thread = self._threads[thread_id] = Thread(bodies=list(bodies), writers=[(1, uuid4().hex)])
            thread.created_at = thread.moved_at = datetime.now(UTC)
            self._change(thread)
            self._places.submit(thread_id, queue, priority, not_before)
            return True

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer of these queues; looks again after 0.2 ms, and later and later, to every 20 ms."""
        until, pause = anyio.current_time() + wait, _SOON
        while (found := self._places.take(queues)) is None:
            left = until - anyio.current_time()
            if left <= 0:
                break
            await anyio.sleep(min(left, pause))
            pause = min(1.4 * pause, _POLL)
        return found

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal at a thread; the run that holds it is shown it at once."""
        with self._lock:
            thread = self._threads.get(thread_id)
            kept = None if thread is None else self._places.signal(thread_id, signal)
            if kept is not None and thread is not None and thread.held is not None:
                thread.held.watch.signal(kept)
            return kept is not None

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread that were not forgotten."""
        return self._places.signals(thread_id)

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget some of them."""
        with self._lock:
            is_held = self._thread_of(claim) is not None
            if is_held:
                self._places.signals(claim.thread_id, forget=numbers)
            return is_held

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue."""
        return self._places.depth(queue)

    async def queues(self) -> tuple[str, ...]:
        """The queues with something in them."""
        return self._places.queues()


def _show(thread_id: str, thread: Thread, token: str) -> Claim:
    """What a claim shows."""
    snapshot = thread.snapshot
    entries = thread.entries(snapshot.at if snapshot else 0)
    return Claim(thread_id=thread_id, token=token, head=thread.head, snapshot=snapshot, entries=entries)


def _list(thread_id: str, thread: Thread) -> ThreadInfo:
    """What a listing shows."""
    if thread.newest is not None and thread.dropped:
        _, state, last = thread.newest
        found, known = progress([last, *thread.bodies]), about_state(state)
    else:
        found, known = progress(thread.bodies), about(thread.bodies)
        if thread.head == thread.forked_at:
            found = progress_of_fork(found)
    return ThreadInfo(
        thread_id=thread_id,
        head=thread.head,
        holder=thread.held.worker if thread.held else None,
        updated_at=thread.updated_at,
        since=thread.held.since if thread.held else None,
        status=status_of(found.status, is_held=thread.held is not None),
        node=found.node,
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        forked_from=thread.forked_from,
        created_at=thread.created_at,
        metadata=known.metadata,
    )
