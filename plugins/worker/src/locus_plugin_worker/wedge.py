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

__all__ = ["LoopWatch"]


class LoopWatch(AbstractContextManager["LoopWatch"]):
    """Knows whether an event loop turns; a context manager around the time in which it should.

    Args:
        stuck_after: seconds without a turn.
        on_stuck: is called in another thread, once for each time that the loop is stuck.
    """

    def __init__(self, stuck_after: float, on_stuck: Callable[[], object]) -> None:
        self.stuck_after = stuck_after
        self._on_stuck = on_stuck
        self._turned = time.monotonic()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, name="locus worker watch", daemon=True)

    @property
    def interval(self) -> float:
        """Seconds after which the loop is to say that it turns: a fraction of what makes it stuck, at most one."""
        return min(1.0, self.stuck_after / 5)

    def turn(self) -> None:
        """The loop turns."""
        self._turned = time.monotonic()

    def is_alive(self) -> bool:
        """Whether the loop has turned lately, or is not watched any more. Safe from any thread."""
        return self._left.is_set() or time.monotonic() - self._turned <= self.stuck_after

    def __enter__(self) -> LoopWatch:
        self.turn()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()

    def _look(self) -> None:
        was_alive = True
        while not self._left.wait(self.interval):
            alive = self.is_alive()
            if was_alive and not alive:
                self._on_stuck()
            was_alive = alive
