"""One thread a store, with an event loop of its own: nats-py needs asyncio, and a run may be on trio.

It renews leases while a tool blocks the program's loop, and what it has begun it ends when its caller is cancelled.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from threading import Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from locus_kit.event_loops import new_event_loop
from locus_kit.waiters import Waiter
from locus_plugin_nats.session import Session

__all__ = ["Operation", "Worker"]

T = TypeVar("T")

#: Seconds that the end of the program waits for a worker to give its threads back.
_PATIENCE = 3.0


class Operation(Generic[T]):
    """What a task asks of the worker.

    Args:
        work: what to do with the session.
        is_write: whether a listing that is asked for later comes behind it.
    """

    __slots__ = ("error", "is_write", "result", "waiter", "work")

    def __init__(self, work: Callable[[Session], Awaitable[T]], *, is_write: bool = False) -> None:
        self.work, self.is_write = work, is_write
        self.result: T
        self.error: BaseException | None = None
        self.waiter: Waiter | None = None


def _always() -> bool:
    return True


class Worker:
    """Runs operations until it is stopped. It knows nothing of its store, so a store can be dropped."""

    def __init__(self, make_session: Callable[[], Session]) -> None:
        self.pid = os.getpid()
        self._make_session = make_session
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop = new_event_loop()  # a write takes six turns of it
        self._stopping: asyncio.Event | None = None
        self._early: list[Operation[Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: Session | None = None
        #: Whether the program still does its work, as it says itself; asked before the timer renews the lease.
        self.is_alive: Callable[[], bool] = _always
        self.stopped = False

    def post(self, operation: Operation[Any]) -> bool:
        """Begin an operation; False when the worker was stopped."""
        with self._lock:
            if self.stopped:
                return False
            if self._thread is None:
                # A daemon, so that a store that is not closed does not keep the program from ending.
                self._thread = Thread(target=self._work, name="locus nats", daemon=True)
                _running.add(self)
                self._thread.start()
            self._loop.call_soon_threadsafe(self._begin, operation)
            return True

    def stop(self) -> None:
        """Do what was begun, give everything back, close the connection. Returns at once."""
        with self._lock:
            if self.stopped:
                return
            self.stopped = True
            if self._thread is None:
                self._loop.close()
            else:
                self._loop.call_soon_threadsafe(self._stop)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._stopping = asyncio.Event()
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._run(self._stopping))

    async def _run(self, stopping: asyncio.Event) -> None:
        session = self._session = self._make_session()
        for operation in self._early:
            self._begin(operation)
        self._early.clear()
        timer = asyncio.create_task(self._tick(session))
        await stopping.wait()
        while self._tasks:
            await asyncio.wait(self._tasks)
        timer.cancel()
        await asyncio.wait((timer,))
        await session.close()

    async def _tick(self, session: Session) -> None:
        """Renew the lease, and settle what is owed. What fails is tried again next time."""
        while True:
            await asyncio.sleep(session.settings.lease / 3)
            with contextlib.suppress(Exception):  # the next call reports it
                if (session.held or session.owed) and self.is_alive():
                    await session.lease.hold(now=True)
                await session.settle()
                await session.look_after()

    def _stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()

    def _begin(self, operation: Operation[Any]) -> None:
        session = self._session
        if session is None:
            self._early.append(operation)
            return
        task = _start(self._loop, self._do(session, operation))
        if not task.done():
            self._tasks.add(task)
            if operation.is_write:
                session.writes.add(task)

    async def _do(self, session: Session, operation: Operation[Any]) -> None:
        try:
            operation.result = await operation.work(session)
        except BaseException as e:  # noqa: BLE001 - it belongs to the caller, who would wait for ever
            operation.error = e
        # Not by callbacks of the task: the caller's thread runs when this one sleeps, and they take a turn more.
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)
        session.writes.discard(task)
        waiter = operation.waiter
        if waiter is not None and waiter.finish():
            waiter.wake()


def _start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task that has begun already where Python can do that: a turn of the loop less for each call."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)


_running: WeakSet[Worker] = WeakSet()


@atexit.register
def _leave() -> None:
    mine = [worker for worker in _running if worker.pid == os.getpid()]
    for worker in mine:
        worker.stop()
    for worker in mine:
        worker.join(_PATIENCE)
