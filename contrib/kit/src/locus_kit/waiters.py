"""A task waits for what a thread does, and does not leave before it is done.

An append whose writer is cancelled would leave no task to say whether it was stored. So the wait ends when the
work has ended, and only then the cancellation goes on. No library call does that on both backends: a shielded scope
does not hold against ``task.cancel()`` of asyncio.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Protocol

import anyio

if TYPE_CHECKING:
    import asyncio

__all__ = ["Waiter", "make_waiter"]


class Waiter(Protocol):
    """The task that waits, one at a time."""

    def finish(self) -> bool:
        """The work is done; called once, by another thread. Whether a task waits and must be woken."""
        ...

    def wake(self) -> None:
        """Wake the task that waits; called after `finish`, by the same thread."""
        ...

    async def wait(self) -> None:
        """Return when `finish` was called; a cancellation is raised then, and not before. May be called again."""
        ...


def make_waiter() -> Waiter | None:
    """A waiter for the task under way; None where no event loop runs."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return _TrioWaiter(trio.lowlevel)
    # Never imported here: a caller that runs on it has loaded it.
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else _AsyncioWaiter(asyncio.get_running_loop())
    except RuntimeError:
        return None


class _AsyncioWaiter:
    __slots__ = ("_done", "_future", "_loop", "_waits")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._done, self._waits = loop, False, False
        self._future: asyncio.Future[None]

    def finish(self) -> bool:
        # One thread writes what the other reads, and each writes first: one of them sees the other.
        self._done = True
        return self._waits

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        self._future = self._loop.create_future()
        self._waits = True
        if self._done:
            return
        try:
            await self._future
        except anyio.get_cancelled_exc_class():
            # A cancelled scope of anyio asks again at every turn of the loop; the shield makes it wait.
            with anyio.CancelScope(shield=True):
                while not self._done:
                    self._future = self._loop.create_future()
                    with contextlib.suppress(anyio.get_cancelled_exc_class()):
                        await self._future
            raise


class _TrioWaiter:
    __slots__ = ("_done", "_lowlevel", "_sleeps", "_task", "_token", "_waits")

    def __init__(self, lowlevel: Any) -> None:
        self._lowlevel, self._done, self._sleeps, self._waits = lowlevel, False, False, False
        self._task: Any = None
        self._token = lowlevel.current_trio_token()

    def finish(self) -> bool:
        self._done = True
        return self._waits

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the run is over: no task waits any more
            self._token.run_sync_soon(self._wake)

    def _wake(self) -> None:
        if self._sleeps:
            self._sleeps = False
            self._lowlevel.reschedule(self._task)

    async def wait(self) -> None:
        self._waits = True
        if self._done:
            return
        self._sleeps, self._task = True, self._lowlevel.current_task()
        try:
            await self._lowlevel.wait_task_rescheduled(self._abort)
        finally:
            self._sleeps = False  # closed from outside: no task is left to wake

    def _abort(self, _: Any) -> Any:
        return self._lowlevel.Abort.FAILED
