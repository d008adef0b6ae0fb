"""A thread that writes, so that a slow disk, pipe or terminal never holds the event loop up.

`logging.handlers.QueueListener` is its model. That one lives until it is stopped; an agent is never stopped, so
this one ends when its queue is empty, and starts again for the next item.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any
from weakref import WeakSet

import anyio
import anyio.to_thread

from locus.core.events import event_to_json
from locus.plugin import Event as RunEvent

__all__ = ["Worker", "prepare"]

#: Seconds without work after which the thread ends.
IDLE = 5.0

#: Seconds that the end of a segment, or of the program, waits for what is still to be written. A cancelled run has 5.
PATIENCE = 4.0

#: How many items may wait. Beyond that the producer waits, too: nothing is dropped, and memory is not filled.
BACKLOG = 10_000


class Worker:
    """Does one piece of work after the other in a thread of its own.

    Args:
        work: does one item. What it raises is counted, and the next item is done.
        resting: called in the thread when the queue is empty.
    """

    __slots__ = ("__weakref__", "_lock", "_pid", "_queue", "_resting", "_thread", "_work", "error", "failed")

    def __init__(self, work: Callable[[Any], None], resting: Callable[[], None] | None = None) -> None:
        self._work, self._resting = work, resting
        #: How many items could not be done, and the first reason.
        self.failed = 0
        self.error: Exception | None = None
        self._begin()
        _WORKERS.add(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = Lock()
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread: Thread | None = None

    def put(self, item: Any) -> None:
        """Have an item done soon, after those before it."""
        if self._pid != os.getpid():
            self._begin()  # a fork has no thread, and what its parent had to do is the parent's
        self._queue.put(item)
        with self._lock:
            if self._thread is not None:
                return
            self._thread = Thread(target=self._run, name="locus logging", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter is going down and starts no threads any more
                self._thread = None
                self._drain()

    async def room(self) -> None:
        """Wait while too much is waiting."""
        if self._queue.qsize() > BACKLOG:
            await self.flush()

    async def flush(self) -> None:
        """Wait until everything so far is done, within bounds."""
        done = self._mark()
        # A limiter of its own: tools may hold every thread of the common one.
        await anyio.to_thread.run_sync(done.wait, PATIENCE, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)

    def flush_now(self) -> None:
        """The same for programs that are not async."""
        self._mark().wait(PATIENCE)

    def _mark(self) -> Event:
        done = Event()
        self.put(done)
        return done

    def _run(self) -> None:
        queue = self._queue
        while True:
            try:
                item = queue.get(timeout=IDLE)
            except Empty:
                with self._lock:
                    if not queue.empty():
                        continue
                    self._thread = None
                    if self._resting is not None:
                        self._resting()
                    return
            self._do(item)

    def _drain(self) -> None:
        with suppress(Empty):
            while True:
                self._do(self._queue.get_nowait())

    def _do(self, item: Any) -> None:
        if isinstance(item, Event):
            item.set()
            return
        try:
            self._work(item)
        except Exception as e:  # noqa: BLE001 - a full disk must not end the thread: the rest is still to be tried
            self.failed += 1
            self.error = self.error or e


_WORKERS: WeakSet[Worker] = WeakSet()


@atexit.register
def _at_exit() -> None:
    for worker in list(_WORKERS):
        worker.flush_now()


_PREPARED: set[type[RunEvent]] = set()


def prepare(event: RunEvent) -> None:
    """Have the JSON form of a kind of event made ready by the thread that the run is in.

    The codec learns a class at its first use, and two threads are not to teach it at once.
    """
    if type(event) not in _PREPARED:
        event_to_json(event)
        _PREPARED.add(type(event))
