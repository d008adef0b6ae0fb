"""An event loop in a thread of its own, where everything is done that a store asks Object Storage for.

A request that is under way must not end with the task that asked for it, or it would stay unknown whether an object was
written. So a cancelled caller leaves at once and the work goes on, no connection belongs to a loop that may end before
it, leases are renewed while a tool blocks the caller's loop, and an append can be begun without being awaited.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import anyio

__all__ = ["Worker", "in_event_loop", "wait_for"]

T = TypeVar("T")

#: Seconds that what is under way gets when the thread is asked to stop.
_ENDING = 10.0


class Worker:
    """The thread; it begins with the first work and ends with `stop`.

    Args:
        lifetime: entered when it begins, left when it ends.
        name: of the thread.
    """

    def __init__(self, lifetime: Callable[[], AbstractAsyncContextManager[object]], name: str) -> None:
        self.pid = os.getpid()
        self._lifetime, self._name = lifetime, name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._stopped = False
        self._failure: Exception | None = None

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T] | None:
        """Begin some work; None when the thread was stopped. What is submitted first begins first.

        Raises:
            Exception: whatever kept the thread from beginning.
        """
        with self._lock:
            if self._stopped:
                return None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
                atexit.register(self._at_exit)
                self._ready.wait()
            if self._failure is not None:
                raise self._failure
            assert self._loop is not None
            # In a context of its own: the caller's says, among other things, which kind of event loop it runs on.
            return contextvars.Context().run(asyncio.run_coroutine_threadsafe, work(), self._loop)

    def stop(self) -> None:
        """Finish what was submitted, and end."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            if self._loop is not None and self._stop is not None and self.pid == os.getpid():
                with contextlib.suppress(RuntimeError):  # it has ended
                    self._loop.call_soon_threadsafe(self._stop.set)
        atexit.unregister(self._at_exit)

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self.pid == os.getpid():
            self._thread.join()

    def _at_exit(self) -> None:
        self.stop()
        self.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as e:  # noqa: BLE001  # an error in this thread would go unseen
            self._failure = e
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._lifetime():
            self._ready.set()
            await self._stop.wait()
            await self._finish()

    async def _finish(self) -> None:
        """Wait for what is under way, not for ever."""
        own = asyncio.current_task()
        rest = {task for task in asyncio.all_tasks() if task is not own and task.get_name() != "background"}
        if rest:
            await asyncio.wait(rest, timeout=_ENDING)


async def wait_for(future: Future[T]) -> T:
    """Wait for the result of some work. A cancelled caller leaves; the work goes on."""
    if not future.done():
        event, wake = anyio.Event(), _waker()
        future.add_done_callback(lambda _: wake(event.set))
        await event.wait()
    return future.result()


def in_event_loop() -> bool:
    """Whether anything can be awaited here; not where a coroutine is closed from outside."""
    try:
        anyio.get_cancelled_exc_class()
    except Exception:  # noqa: BLE001  # it differs between versions of anyio
        return False
    return True


def _waker() -> Callable[[Callable[[], object]], None]:
    """Runs a function in the caller's event loop, from any thread."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        schedule: Callable[[Callable[[], object]], object] = trio.lowlevel.current_trio_token().run_sync_soon
    else:
        schedule = asyncio.get_running_loop().call_soon_threadsafe

    def wake(function: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nothing waits any more
            schedule(function)

    return wake
