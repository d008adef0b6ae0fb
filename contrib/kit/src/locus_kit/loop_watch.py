"""`LoopWatch`: finds out that an event loop does not turn any more, from a thread of its own.

A store renews its leases from a thread, which goes on where the loop hangs in a tool that blocks it: to all others the
worker would look alive for ever. So the thread asks the watch, which knows when the loop turned last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

import anyio

__all__ = ["LoopWatch"]

#: How many lease times a loop may not turn before it is taken for stuck, and the lease until an offer says it.
_STUCK_LEASES: Final = 10
_LEASE: Final = 30.0


class LoopWatch(AbstractContextManager["LoopWatch"]):
    """Knows whether an event loop turns; a context manager around the time in which it should.

    Args:
        stuck_after: seconds without a turn; None = 10 lease times, see `set_lease`.
        on_stuck: is called in another thread, once for each time that the loop is stuck.
    """

    def __init__(self, stuck_after: float | None, on_stuck: Callable[[], object]) -> None:
        self._is_given = stuck_after is not None
        self.stuck_after = _STUCK_LEASES * _LEASE if stuck_after is None else stuck_after
        self._on_stuck = on_stuck
        self._turned = time.monotonic()
        self._left: threading.Event | None = None

    @property
    def interval(self) -> float:
        """Seconds after which the loop is to say that it turns: a fraction of what makes it stuck, at most one."""
        return min(1.0, self.stuck_after / 5)

    @property
    def age(self) -> float:
        """Seconds since the loop turned last. Safe from any thread."""
        return time.monotonic() - self._turned

    def set_lease(self, seconds: float) -> None:
        """The lease of what the loop works on, by which it is stuck unless that was given; the first one counts."""
        if not self._is_given:
            self.stuck_after, self._is_given = _STUCK_LEASES * seconds, True

    def turn(self) -> None:
        """The loop turns."""
        self._turned = time.monotonic()

    async def keep_turning(self) -> None:
        """Say that the loop turns, for as long as it does; a task beside the work."""
        while True:
            self.turn()
            await anyio.sleep(self.interval)

    def is_alive(self) -> bool:
        """Whether the loop has turned lately, or is not watched any more. Safe from any thread."""
        return self._left is None or self.age <= self.stuck_after

    def __enter__(self) -> LoopWatch:
        self.turn()
        self._left = threading.Event()
        threading.Thread(target=self._look, args=(self._left,), name="locus worker watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._left is not None:
            self._left.set()
            self._left = None

    def _look(self, left: threading.Event) -> None:
        was_alive = True
        while not left.wait(self.interval):
            alive = self.is_alive()
            if was_alive and not alive:
                self._on_stuck()
            was_alive = alive
