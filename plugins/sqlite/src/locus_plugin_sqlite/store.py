"""`SqliteStore`: what ``checkpointer="sqlite:runs.db"`` is.

Each call becomes an operation for one thread of the store's own, which alone touches the connection. For all of them:

1. They are done in the order in which they were queued. Those that wait at the same time share one transaction, and so
   one sync of the disk; no task is woken before it is committed.
2. An append is stored whole or not at all. A transaction that fails is undone, and each of its operations is tried
   again alone, so that the error goes to the task that caused it.
3. A claim writes a new token in the transaction that looks at who holds the thread, and an append is stored only where
   its token is still there. Leases decide who may try to claim; no clock decides whether an append is stored.
4. A task that is cancelled waits until its operation is done, so it always knows whether its append was stored.
5. A row names the checksum of the row before it, and the thread's row that of the newest: what is missing or changed is
   an error when it is read.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from locus.core.errors import ConfigError
from locus.journal import Appended, Claim, Clock, Snapshot, SystemClock, ThreadInfo, ThreadQuery
from locus_kit.waiters import make_waiter
from locus_plugin_sqlite.claims import Claiming, Peeking, Releasing, Renewing
from locus_plugin_sqlite.entries import (
    Appending,
    EntryBatch,
    Reading,
    ReadingForms,
    ReadingHead,
    Snapping,
    Storing,
)
from locus_plugin_sqlite.errors import FileDamaged, FileUnusable, StoreClosed
from locus_plugin_sqlite.maintenance import Damage, Salvaged, Verified, readable, verify
from locus_plugin_sqlite.queue import (
    Counting,
    Forgetting,
    Looking,
    Moving,
    Naming,
    Offered,
    ReadingSignals,
    Signalling,
    Submitting,
    Taking,
)
from locus_plugin_sqlite.session import Session
from locus_plugin_sqlite.settings import SqliteSettings, Sync
from locus_plugin_sqlite.states import ReadingState
from locus_plugin_sqlite.threads import BackingUp, Deleting, Forking, Listing, NextReady, Vacuuming
from locus_plugin_sqlite.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import TracebackType

    from locus.core.journal import Body, Entry, Transition
    from locus.core.state import AgentState
    from locus.journal import Offer, Posted, QueueDepth, Signal
    from locus_plugin_sqlite.operation import Operation

__all__ = ["SqliteStore", "make"]

T = TypeVar("T")

#: Entries in one row of a file that was salvaged.
_SALVAGED_AT_ONCE = 64

#: Seconds between two looks of a worker that waits for an offer: the first two, and at most. A run that yields is given
#: back within milliseconds, to be taken again by the same worker.
_SOON, _POLL = 0.001, 0.1

#: After how many entries the loop offers a snapshot: what a resume reads beyond one takes some 5 ms.
_SNAPSHOT_EVERY = 256


class SqliteStore:
    """Journals in an SQLite file, which may be shared by any number of stores, threads and processes.

    The file is opened by the first call, and created with access for its owner alone. Every call runs in one thread
    of the store's own. A call that is cancelled does its work first, so an append whose task was cancelled has been
    stored, or has failed, when the cancellation arrives.

    Close it with ``await store.aclose()`` or ``async with``. A store that is dropped closes itself.

    Args:
        path: the file. Its folder must exist.
        sync: ``"full"`` or ``"normal"``, see `SqliteSettings`.
        lease: seconds, see `SqliteSettings`.
        busy_timeout: seconds, see `SqliteSettings`.
        max_bytes: see `SqliteSettings`.
        keep_ended_days: see `SqliteSettings`.
        clock: the time of leases and entries; the machine's when None.

    Raises:
        ConfigError: the path is invalid.
    """

    keeps_history = True
    snapshot_every = _SNAPSHOT_EVERY

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: Sync = "full",
        lease: float = 30.0,
        busy_timeout: float = 10.0,
        max_bytes: int | None = None,
        keep_ended_days: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        text = os.fspath(path)
        if not text or "\0" in text:
            raise ConfigError(f"the path of a journal file is {text!r}; name a file, such as 'runs.db'")
        if text == ":memory:":
            raise ConfigError(
                "':memory:' is not a file; locus.journal.MemoryStore() keeps journals as long as the process, "
                "with less work"
            )
        #: The file.
        self.path = Path(text).absolute()
        self.settings = SqliteSettings(
            sync=sync, lease=lease, busy_timeout=busy_timeout, max_bytes=max_bytes, keep_ended_days=keep_ended_days
        )
        self._clock: Clock = clock or SystemClock()
        self._closed = False
        self._worker, self._dropped = self._start()

    def _start(self) -> tuple[Worker, weakref.finalize[[], SqliteStore]]:
        self._session = Session(self.path, self.settings, self._clock)
        #: What the next claim of a thread may begin with, by the token of the claim that is to be given back.
        self._folds: dict[str, Snapshot] = {}
        worker = Worker(self._session)
        dropped = weakref.finalize(self, worker.stop)
        dropped.atexit = False  # the worker sees to that itself
        return worker, dropped

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    def _queue(self, operation: Operation[T]) -> None:
        if self._worker.pid != os.getpid() and not self._closed:
            # After a fork: the thread is there no more.
            self._dropped.detach()
            self._worker, self._dropped = self._start()
        if not self._worker.post(operation):
            raise StoreClosed(f"the store of {self.path} was closed; make another SqliteStore", store="sqlite")

    async def _do(self, operation: Operation[T]) -> T:
        self._begin(operation)
        return await self._end(operation)

    def _begin(self, operation: Operation[T]) -> None:
        operation.waiter = make_waiter()
        self._queue(operation)

    async def _end(self, operation: Operation[T]) -> T:
        if operation.waiter is not None:
            await operation.waiter.wait()
        # Else no event loop runs: a coroutine is being closed, and what it still asks for is done nevertheless.
        if operation.error is not None:
            try:
                raise operation.error
            finally:
                operation.error = None  # or the traceback and the operation keep each other
        return operation.result

    # -- the protocol -----------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread, also from a worker whose process is gone or whose lease has ended.

        Raises:
            ThreadBusy: a live worker holds it.
            FileProblem: the file cannot be used.
        """
        operation = Claiming(thread_id, worker)
        try:
            made = await self._do(operation)
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not give it back.
            with contextlib.suppress(StoreClosed):
                self._queue(Releasing(Claim(thread_id=thread_id, token=operation.token, head=0), None))
            raise
        assert made is not None
        return made

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none.

        Raises:
            NotSerialisable: one of them has no JSON form.
            FileProblem: nothing was stored, or, where the disk failed, it is not known; the next claim tells.
        """
        return await self._do(Appending(claim, bodies))

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        """Begin an append. The order of posts is the order of entries, and nothing is stored behind one that was not.

        Raises:
            NotSerialisable: one of the bodies has no JSON form; nothing was begun.
        """
        operation = Appending(claim, bodies, after.operation if isinstance(after, _Posted) else None)
        self._begin(operation)
        return _Posted(self, operation)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold: what became of the state since the one before is written."""
        return await self._do(Snapping(claim, at, state, last))

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim is still valid. A timer renews leases; this need not be called for that."""
        return await self._do(Renewing(claim))

    def renew_while(self, is_alive: Callable[[], bool]) -> None:
        """Let the timer renew leases only while this says so: others get the threads of a program that hangs.

        Args:
            is_alive: called in the store's thread, three times in a lease.
        """
        self._session.is_alive = is_alive

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back. Where that cannot be written (a full disk), it is written later."""
        with contextlib.suppress(StoreClosed):  # which gave everything back
            await self._do(Releasing(claim, not_before, self._folds.pop(claim.token, None)))

    def keep_fold(self, claim: Claim, fold: Snapshot) -> None:
        """Remember the state of a run that yields, until the thread is given back: then the next claim may show it."""
        self._folds[claim.token] = fold

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest, also one whose worker died on it."""
        return await self._do(NextReady(now))

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread; empty for an unknown one."""
        return await self._do(Reading(thread_id, after))

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        """At most ``count`` entries of a thread, those after a number; it costs what these cost.

        Args:
            thread_id: the thread; empty for an unknown one.
            after: number of the entry before the first one wanted, from 0.
            count: 1 or more.
        """
        return await self._do(Reading(thread_id, after, max(0, after) + count))

    async def state_at(self, thread_id: str, n: int) -> AgentState | None:
        """The state after the first ``n`` entries of a thread, from 1; None where it has fewer.

        It costs what the state holds, and not what the thread has written: it is folded from the snapshots before it.
        """
        return await self._do(ReadingState(thread_id, n))

    async def read_forms(self, thread_id: str) -> tuple[tuple[int, str, str, bytes], ...]:
        """The entries of a thread as they are stored; empty for an unknown one.

        Returns:
            Number, writer, parent and the JSON text of what happened, as `locus.core.journal.entry_to_json` made it.

        Raises:
            EntryDamaged: one of them is missing, or not what was written.
        """
        return await self._do(ReadingForms(thread_id, 0))

    #: Makes an empty batch, for `append_batch`.
    new_batch = EntryBatch

    async def append_batch(self, claim: Claim, batch: EntryBatch) -> Appended:
        """Add all entries of a batch to a thread that has none, or nothing.

        Raises:
            JournalError: the thread has entries.
            FileProblem: nothing was stored.
        """
        return await self._do(Storing(claim, batch))

    async def head(self, thread_id: str) -> int:
        """The number of a thread's newest entry; 0 for an unknown thread."""
        return await self._do(ReadingHead(thread_id))

    async def peek(self, thread_id: str) -> Claim | None:
        """The entries of a thread, without taking it."""
        return await self._do(Peeking(thread_id))

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first; a dead worker is not a holder.

        A thread whose row, or newest entry, is not what was written has the status ``"damaged"``.

        Raises:
            FileDamaged: the row of a thread is missing.
            JournalError: the query's ``after`` is not a thread.
        """
        return await self._do(Listing(query))

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread. Its forks keep what they share with it.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry.

        Raises:
            ThreadBusy: a live worker holds it.
        """
        return await self._do(Deleting(thread_id, head))

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Make a thread that begins with the first entries of another one, which are shared and not copied.

        Args:
            thread_id: the thread to fork; it may be held.
            at: how many of its entries the new one begins with, from 1.
            into: the new thread's id.
            bodies: entries to write behind those, in the same transaction.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
            NotSerialisable: one of the bodies has no JSON form.
        """
        await self._do(Forking(thread_id, at, into, bodies))

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
        """Begin a thread, and put it into a queue, in one transaction.

        Raises:
            NotSerialisable: one of the bodies has no JSON form.
            FileProblem: nothing was stored.
        """
        return await self._do(Submitting(thread_id, bodies, queue, priority, not_before))

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer of these queues. A worker that waits looks at an index, at least each tenth of a second."""
        looking = partial(Looking, tuple(queues))
        until, pause = anyio.current_time() + wait, _SOON
        while True:
            if await self._do(looking()):
                operation = Taking(tuple(queues))
                try:
                    found = await self._do(operation)
                except BaseException:
                    if operation.result is not None:  # the caller was cancelled, and will not end it
                        with contextlib.suppress(StoreClosed):
                            self._queue(Moving(operation.result, 0.0))
                    raise
                if found is not None:
                    return _Offer(self, found)
            left = until - anyio.current_time()
            if left <= 0:
                return None
            await anyio.sleep(min(left, pause))
            pause = min(1.4 * pause, _POLL)

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal at a thread. A run of another process is shown it within a second."""
        return await self._do(Signalling(thread_id, signal))

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread that were not forgotten."""
        return await self._do(ReadingSignals(thread_id))

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget some of them."""
        return await self._do(Forgetting(claim.thread_id, claim.token, numbers))

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue; costs what is in it."""
        return await self._do(Counting(queue))

    async def queues(self) -> tuple[str, ...]:
        """The queues with something in them."""
        return await self._do(Naming())

    # -- the file ---------------------------------------------------------------------------------

    async def verify(self) -> Verified:
        """Compare every row of the file with its checksums. Runs that are under way go on meanwhile.

        Raises:
            FileProblem: the file cannot be opened at all.
        """
        return await anyio.to_thread.run_sync(verify, self.path)

    async def backup(self, into: str | os.PathLike[str]) -> None:
        """Copy the file as it is at one moment, while runs go on. No thread of the copy is held.

        Args:
            into: the copy; there must be nothing yet.

        Raises:
            FileProblem: one of the files cannot be used.
        """
        await self._do(BackingUp(_absolute(into)))

    async def salvage(self, into: str | os.PathLike[str]) -> Salvaged:
        """Write what can be read of a damaged file into a new one: of each thread the entries before the damage.

        A fork becomes a thread of its own. The damaged file is not changed; no other process should use it meanwhile.

        Args:
            into: the new file; there must be nothing yet.

        Raises:
            FileProblem: nothing can be read, or the new file cannot be written.
        """
        target = _absolute(into)
        _insist_on_a_new_file(target)
        damage: list[Damage] = []
        found = await anyio.to_thread.run_sync(lambda: list(readable(self.path, damage)))
        if damage and not found:
            raise FileDamaged(self.path, f"nothing of it can be read ({damage[0].message}); restore it from a backup")
        kept: dict[str, int] = {}
        async with SqliteStore(target, sync=self.settings.sync) as store:
            for thread_id, entries in found:
                claim = await store.claim(thread_id, "salvage")
                for first in range(0, len(entries), _SALVAGED_AT_ONCE):
                    await store.append(claim, [entry.body for entry in entries[first : first + _SALVAGED_AT_ONCE]])
                await store.release(claim)
                kept[thread_id] = len(entries)
        return Salvaged(entries=kept, damage=tuple(damage))

    async def vacuum(self) -> int:
        """Give the room of deleted threads back to the disk.

        Returns:
            By how many bytes the file shrank.
        """
        return await self._do(Vacuuming())

    async def aclose(self) -> None:
        """Finish what is queued, give every thread back and close the file; closing again does nothing."""
        self._closed = True
        self._dropped.detach()
        self._worker.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._worker.join)

    async def __aenter__(self) -> SqliteStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(path).absolute()


def _insist_on_a_new_file(path: Path) -> None:
    if path.exists():
        raise FileUnusable(path, "it exists; name a new file")


class _Offer:
    """A thread that a worker may run."""

    def __init__(self, store: SqliteStore, offered: Offered) -> None:
        self._store, self._offered = store, offered
        self.thread_id, self.queue, self.priority = offered.name, offered.queue, offered.priority
        self.delivered, self.lease = offered.delivered, store.settings.lease

    async def extend(self) -> bool:
        """Have it for another lease."""
        return await self._store._do(Moving(self._offered, ends=False))  # noqa: SLF001 - a part of the store

    async def done(self) -> bool:
        """Nothing is left to do."""
        return await self._store._do(Moving(self._offered))  # noqa: SLF001 - as above

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """The thread is to be offered again."""
        return await self._store._do(Moving(self._offered, delay, queue))  # noqa: SLF001 - as above


class _Posted:
    """An append under way."""

    __slots__ = ("_store", "operation")

    def __init__(self, store: SqliteStore, operation: Appending) -> None:
        self._store, self.operation = store, operation

    async def wait(self) -> Appended:
        return await self._store._end(self.operation)  # noqa: SLF001 - a part of the store


def make(rest: str, settings: SqliteSettings) -> SqliteStore:
    """The store behind ``"sqlite:PATH"``; ``~`` is the user's home."""
    return SqliteStore(
        Path(rest).expanduser() if rest else rest,
        sync=settings.sync,
        lease=settings.lease,
        busy_timeout=settings.busy_timeout,
        max_bytes=settings.max_bytes,
        keep_ended_days=settings.keep_ended_days,
    )
