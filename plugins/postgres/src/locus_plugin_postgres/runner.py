"""One thread a store, with an event loop of its own.

asyncpg belongs to one loop of asyncio, while agents run on any number of loops, also on trio's. And a lease is renewed
while a tool blocks the loop of its agent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Awaitable, Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from locus_kit.waiters import Waiter
    from locus_plugin_postgres.session import Session

__all__ = ["Call", "Runner"]

T = TypeVar("T")

#: Seconds that the end of the program waits for a store to give its threads back.
_PATIENCE = 2.0


class Call(Generic[T]):
    """What a task asks for.

    Args:
        names: the threads that it is about: calls about a thread are done in the order in which they were made. None
            for a call about all threads, which waits for those that were made before.
        work: does it.
    """

    __slots__ = ("error", "names", "result", "waiter", "work")

    result: T

    def __init__(self, names: tuple[str, ...] | None, work: Callable[[Session], Awaitable[T]]) -> None:
        self.names, self.work = names, work
        self.error: BaseException | None = None
        self.waiter: Waiter | None = None

    async def run(self, session: Session) -> None:
        """Do it, and wake who waits for it."""
        try:
            self.result = await self.work(session)
        except BaseException as e:  # noqa: BLE001 - it belongs to the caller
            self.error = e
        if self.waiter is not None and self.waiter.finish():
            self.waiter.wake()


class Runner:
    """Runs calls until it is stopped. It knows nothing of its store, so a store can be dropped."""

    def __init__(self, session: Session) -> None:
        self.pid = os.getpid()
        self.session = session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._lock = Lock()
        self._end: asyncio.Event
        #: By thread, the newest of its calls.
        self._newest: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopped = False

    def post(self, call: Call[Any]) -> bool:
        """Begin a call; False when the runner was stopped."""
        with self._lock:
            if self.stopped:
                return False
            if self._loop is None:
                self._loop, self._end = asyncio.new_event_loop(), asyncio.Event()
                # A daemon, so that a store that is not closed does not keep the program from ending.
                self._thread = Thread(target=self._work, name="locus postgres", daemon=True)
                _running.add(self)
                self._thread.start()
            self._loop.call_soon_threadsafe(self._begin, call)
            return True

    def stop(self) -> None:
        """Do what is queued, give everything back, close. Returns at once; may be called by any thread."""
        with self._lock:
            if not self.stopped:
                self.stopped = True
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._end.set)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        assert self._loop is not None
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # type: ignore[arg-type, return-value]
            runner.run(self._serve())

    async def _serve(self) -> None:
        beat = asyncio.create_task(self.session.keep_alive())
        await self._end.wait()
        while self._tasks:
            await asyncio.wait(self._tasks)
        beat.cancel()
        await self.session.close()

    def _begin(self, call: Call[Any]) -> None:
        newest = self._newest
        before = list(newest.values()) if call.names is None else [newest.get(name) for name in call.names]
        task = asyncio.get_running_loop().create_task(_after([each for each in before if each], call, self.session))
        self._tasks.add(task)
        for name in call.names or ():
            self._newest[name] = task
        task.add_done_callback(lambda done: self._forget(done, call.names or ()))

    def _forget(self, task: asyncio.Task[None], names: tuple[str, ...]) -> None:
        self._tasks.discard(task)
        for name in names:
            if self._newest.get(name) is task:
                del self._newest[name]


async def _after(before: list[asyncio.Task[None]], call: Call[Any], session: Session) -> None:
    for each in before:
        if not each.done():
            await asyncio.wait((each,))
    await call.run(session)


_running: WeakSet[Runner] = WeakSet()


@atexit.register
def _leave() -> None:
    mine = [runner for runner in _running if runner.pid == os.getpid()]
    for runner in mine:
        runner.stop()
    for runner in mine:
        runner.join(_PATIENCE)
