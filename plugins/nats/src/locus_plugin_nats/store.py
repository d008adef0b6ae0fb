"""`NatsStore`: what ``checkpointer="nats://localhost:4222"`` is.

For all calls:

1. They are done by one thread of the store's own, with one connection. What is asked of one thread of the journal is
   done in the order in which it was asked.
2. An append is one message: it is stored whole or not at all, and only behind the newest message that its writer
   knows. So a claim, which is a message, fences every older claim. No clock takes part in that.
3. An append whose answer was lost is resolved by the store: it is sent again, under the same condition, until the
   server says which message came next. `Appended.UNKNOWN` is left for a server that does not say so in time.
4. A task that is cancelled waits until its call is done, so it always knows whether its append was stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from locus.journal import Appended, Claim, ThreadInfo, ThreadQuery
from locus_kit.entry_json import to_json
from locus_kit.waiters import make_waiter
from locus_plugin_nats import claims, entries, pages, threads
from locus_plugin_nats import queue as queues
from locus_plugin_nats.address import parse_address
from locus_plugin_nats.errors import StoreClosed
from locus_plugin_nats.queue import NatsOffer
from locus_plugin_nats.session import Session
from locus_plugin_nats.settings import NatsSettings
from locus_plugin_nats.subjects import key_of, new_token
from locus_plugin_nats.worker import Operation, Worker

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import TracebackType

    from locus.core.journal import Body, Entry, Transition
    from locus.core.state import AgentState
    from locus.journal import Offer, Posted, QueueDepth, Signal, Snapshot
    from locus_plugin_nats.places import Place

__all__ = ["NatsStore", "make"]

T = TypeVar("T")

#: Seconds after which a worker that waits for an offer notices that it was cancelled.
_CANCELLABLE = 0.25


class NatsStore:
    """Journals on a NATS server with JetStream, shared by the workers of any number of machines.

    The connection is made by the first call. Close the store with ``await store.aclose()`` or ``async with``; one that
    is dropped closes itself.

    Args:
        address: of the server, or of several of one cluster: ``"nats://a:4222,b:4222"``.
        settings: see `NatsSettings`; None = the defaults.

    Raises:
        ConfigError: the address is invalid.
    """

    keeps_history = True
    snapshot_every = claims.SNAPSHOT_EVERY

    def __init__(self, address: str, settings: NatsSettings | None = None) -> None:
        self._address = parse_address(address)
        self.settings = settings or NatsSettings()
        self._closed = False
        self._folds: dict[str, Snapshot] = {}
        self._worker, self._dropped = self._start()

    def _start(self) -> tuple[Worker, weakref.finalize[[], NatsStore]]:
        address, settings = self._address, self.settings
        worker = Worker(lambda: Session(address, settings))
        dropped = weakref.finalize(self, worker.stop)
        dropped.atexit = False  # the worker sees to that itself
        return worker, dropped

    def __repr__(self) -> str:
        return f"NatsStore({str(self._address)!r}, prefix={self.settings.prefix!r})"

    # -- asking the worker ------------------------------------------------------------------------

    def _begin(self, work: Callable[[Session], Awaitable[T]], *, is_write: bool = False) -> Operation[T]:
        operation = Operation(work, is_write=is_write)
        operation.waiter = make_waiter()
        if self._worker.pid != os.getpid() and not self._closed:
            # After a fork: the thread and the connection are the other process's, and so is what it holds.
            self._dropped.detach()
            is_alive = self._worker.is_alive
            self._worker, self._dropped = self._start()
            self._worker.is_alive = is_alive
        if not self._worker.post(operation):
            raise StoreClosed(f"the store of {self._address} was closed; make another NatsStore", store="nats")
        return operation

    async def _end(self, operation: Operation[T]) -> T:
        if operation.waiter is None:
            # No event loop runs: a coroutine is being closed, and what it still asks for is done nevertheless.
            return None  # type: ignore[return-value]
        await operation.waiter.wait()
        if operation.error is not None:
            try:
                raise operation.error
            finally:
                operation.error = None  # or the traceback and the operation keep each other
        return operation.result

    async def _do(self, work: Callable[[Session], Awaitable[T]], *, is_write: bool = False) -> T:
        return await self._end(self._begin(work, is_write=is_write))

    async def _in_order(self, thread_id: str, work: Callable[[Session], Awaitable[T]], *, is_write: bool = False) -> T:
        key = key_of(thread_id)

        async def ordered(session: Session) -> T:
            async with session.order(key):
                await session.ready()
                return await work(session)

        return await self._do(ordered, is_write=is_write)

    # -- the protocol -----------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread, also from a worker whose lease has ended.

        Raises:
            ThreadBusy: a live worker holds it.
            NatsProblem: the server cannot be used.
        """
        token = new_token()
        try:
            return await self._in_order(thread_id, lambda s: claims.claim(s, thread_id, worker, token), is_write=True)
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not give it back.
            given_up = Claim(thread_id=thread_id, token=token, head=0)
            with contextlib.suppress(StoreClosed):
                self._begin(_releasing(given_up, None), is_write=True)
            raise

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none.

        Raises:
            NotSerialisable: one of them has no JSON form.
            NatsProblem: nothing was stored.
        """
        return await self._end(self._append(claim, bodies, None))

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        """Begin an append. The order of posts is the order of entries, and nothing is stored behind one that was not.

        Raises:
            NotSerialisable: one of the bodies has no JSON form; nothing was begun.
        """
        return _Posted(self, self._append(claim, bodies, after.operation if isinstance(after, _Posted) else None))

    def _append(self, claim: Claim, bodies: Sequence[Body], after: Operation[Appended] | None) -> Operation[Appended]:
        kept = tuple(bodies)
        forms, key = to_json(kept), key_of(claim.thread_id)

        async def work(session: Session) -> Appended:
            async with session.order(key):
                if after is not None and getattr(after, "result", None) is not Appended.OK:
                    return Appended.FENCED
                await session.ready()
                return await entries.append(session, claim, kept, forms)

        return self._begin(work, is_write=True)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold, where that is shorter than what it saves a claim to read."""
        return await self._in_order(
            claim.thread_id, lambda s: entries.snapshot(s, claim, at, state, last), is_write=True
        )

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim is still valid. A timer renews leases; this need not be called for that."""
        return await self._in_order(claim.thread_id, lambda s: claims.renew(s, claim))

    def renew_while(self, is_alive: Callable[[], bool]) -> None:
        """Let the timer renew the lease only while this says so: others get the threads of a program that hangs.

        Args:
            is_alive: called in the store's thread, three times in a lease.
        """
        self._worker.is_alive = is_alive

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back. Where that cannot be written, it is written later."""
        fold = self._folds.pop(claim.token, None)
        with contextlib.suppress(StoreClosed):  # which gave everything back
            await self._do(_releasing(claim, not_before, fold), is_write=True)

    def keep_fold(self, claim: Claim, fold: Snapshot) -> None:
        """Remember it, when the thread is given back."""
        self._folds[claim.token] = fold

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest, also one whose worker died on it."""
        return await self._do(_behind_writes(lambda s: threads.next_ready(s, now)))

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread; empty for an unknown one.

        Raises:
            JournalDamaged: one of them is missing, or is not what was written.
        """
        return await self._in_order(thread_id, lambda s: claims.read(s, thread_id, after))

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        """At most ``count`` entries of a thread, those after a number; it costs what these cost.

        Args:
            thread_id: the thread; empty for an unknown one.
            after: number of the entry before the first one wanted, from 0.
            count: 1 or more.

        Raises:
            JournalDamaged: one of them is missing, or is not what was written.
        """
        return await self._in_order(thread_id, lambda s: pages.read_page(s, thread_id, after, count))

    async def head(self, thread_id: str) -> int:
        """The number of a thread's newest entry; 0 for an unknown thread."""
        return await self._in_order(thread_id, lambda s: pages.read_head(s, thread_id))

    async def peek(self, thread_id: str) -> Claim | None:
        """The entries of a thread, without taking it."""
        return await self._in_order(thread_id, lambda s: claims.peek(s, thread_id))

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first; a dead worker is not a holder.

        Raises:
            JournalError: the query's ``after`` is not a thread.
        """
        return await self._do(_behind_writes(lambda s: threads.list_threads(s, query)))

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Make a thread that begins with the first entries of another one, in one write.

        Args:
            thread_id: the thread to fork; it may be held.
            at: how many of its entries the new one begins with, from 1; they are copied.
            into: the new thread's id.
            bodies: entries to write behind those.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
            NotSerialisable: one of the bodies has no JSON form.
        """
        kept = tuple(bodies)
        forms = to_json(kept)
        await self._do(lambda s: threads.fork(s, thread_id, at, into, kept, forms), is_write=True)

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread. Its forks keep what they begin with.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry.

        Raises:
            ThreadBusy: a live worker holds it.
        """
        return await self._in_order(thread_id, lambda s: threads.delete(s, thread_id, head), is_write=True)

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
        """Begin a thread with these entries and put it into a queue: one message.

        Raises:
            NotSerialisable: one of them has no JSON form.
        """
        kept = tuple(bodies)
        forms = to_json(kept)
        return await self._in_order(
            thread_id, lambda s: queues.submit(s, thread_id, kept, forms, queue, priority, not_before), is_write=True
        )

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer of the first of these queues that has one ready, or None after so many seconds."""
        names, until, is_first = tuple(queues), anyio.current_time() + wait, True
        while True:
            left = max(0.0, until - anyio.current_time())
            found = await self._take(names, min(left, _CANCELLABLE), is_first=is_first)
            if found is not None or left <= 0:
                return found
            is_first = False

    async def _take(self, names: tuple[str, ...], wait: float, *, is_first: bool) -> NatsOffer | None:
        async def work(session: Session) -> Place | None:
            await session.ready()
            return await queues.take(session, names, wait, is_first=is_first)

        operation = self._begin(work)
        try:
            found = await self._end(operation)
            await anyio.lowlevel.checkpoint_if_cancelled()  # trio says it only here
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not end what it was offered.
            offered = getattr(operation, "result", None)
            if offered is not None:
                with contextlib.suppress(StoreClosed):
                    self._begin(lambda s: queues.give_back(s, offered), is_write=True)
            raise
        return None if found is None else NatsOffer(self._do, found, self.settings.lease)

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal at a thread, and have it offered unless a worker was offered it already."""
        return await self._in_order(thread_id, lambda s: queues.send_signal(s, thread_id, signal), is_write=True)

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread that were not forgotten, in the order of their numbers."""
        return await self._in_order(thread_id, lambda s: queues.read_signals(s, thread_id))

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget signals; False where the claim is over."""
        kept = frozenset(numbers)
        return await self._in_order(claim.thread_id, lambda s: queues.forget_signals(s, claim, kept), is_write=True)

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue; all zeros for an unknown one."""
        return await self._do(_behind_writes(lambda s: queues.measure_depth(s, queue)))

    async def queues(self) -> tuple[str, ...]:
        """The names of the queues with something in them, sorted."""
        return await self._do(_behind_writes(queues.list_queues))

    # -- the end ----------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Finish what was begun, give every thread back and close the connection; closing again does nothing."""
        self._closed = True
        self._dropped.detach()
        self._worker.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._worker.join)

    async def __aenter__(self) -> NatsStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _releasing(
    claim: Claim, not_before: datetime | None, fold: Snapshot | None = None
) -> Callable[[Session], Awaitable[None]]:
    key = key_of(claim.thread_id)

    async def work(session: Session) -> None:
        async with session.order(key):
            await claims.release(session, claim, not_before, fold)

    return work


def _behind_writes(work: Callable[[Session], Awaitable[T]]) -> Callable[[Session], Awaitable[T]]:
    async def later(session: Session) -> T:
        await session.ready()
        if session.writes:
            await asyncio.wait(tuple(session.writes))
        return await work(session)

    return later


class _Posted:
    """An append under way."""

    __slots__ = ("_store", "operation")

    def __init__(self, store: NatsStore, operation: Operation[Appended]) -> None:
        self._store, self.operation = store, operation

    async def wait(self) -> Appended:
        return await self._store._end(self.operation)  # noqa: SLF001 - a part of the store


def make(rest: str, settings: NatsSettings) -> NatsStore:
    """The store behind ``"nats://localhost:4222"``, or ``"nats:host"``."""
    return NatsStore(rest or "localhost", settings)
