"""A circuit breaker: what keeps failing is left alone for a while.

Closed, it counts. Open, it admits nothing until the cooldown has passed; then it is half-open and admits one call, and
another one each cooldown after that, so that a call that never comes back cannot keep it shut.
"""

from __future__ import annotations

from collections import deque
from threading import Lock

from locus_plugin_retry.settings import BreakerSettings

__all__ = ["Breaker"]


class Breaker:
    """Counts the failures of one thing. Safe to share between runs, tasks and threads.

    Times are seconds of any clock that only goes forward.

    Args:
        settings: when it opens, and for how long.
    """

    def __init__(self, settings: BreakerSettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._row = 0
        self._last: deque[bool] = deque(maxlen=settings.window)
        #: Until when nothing is admitted; None while it is closed.
        self._until: float | None = None
        self._trying = False
        #: Grows with each change, so that a call that began before it no longer counts.
        self._era = 0

    @property
    def era(self) -> int:
        """What a call that begins now says when it is over."""
        return self._era

    @property
    def is_open(self) -> bool:
        """Whether it is open or half-open."""
        return self._until is not None

    def seconds_left(self, now: float) -> float:
        """Seconds until a call is admitted again; 0.0 when one is."""
        until = self._until
        return 0.0 if until is None else max(0.0, until - now)

    def admit(self, now: float) -> int | None:
        """Whether a call may begin: what it says when it is over, or None. Half-open, it is the one that tries."""
        with self._lock:
            if self._until is None:
                return self._era
            if now < self._until:
                return None
            self._era += 1
            self._trying, self._until = True, now + self.settings.cooldown
            return self._era

    def record(self, era: int, now: float, *, ok: bool) -> bool:
        """A call is over.

        Args:
            era: what `admit` gave it.
            now: the time.
            ok: it did not fail.

        Returns:
            Whether that opened the breaker, or closed it.
        """
        with self._lock:
            if era != self._era or (self._until is not None and not self._trying):
                return False
            if self._trying:
                if ok:
                    self._close()
                else:
                    self._open(now)
                return True
            self._row = 0 if ok else self._row + 1
            self._last.append(not ok)
            if not ok and self._too_many():
                self._open(now)
                return True
            return False

    def _too_many(self) -> bool:
        settings = self.settings
        if self._row >= settings.failures:
            return True
        full = len(self._last) == settings.window
        return settings.rate is not None and full and sum(self._last) >= settings.rate * settings.window

    def _open(self, now: float) -> None:
        self._era += 1
        self._trying, self._until = False, now + self.settings.cooldown

    def _close(self) -> None:
        self._era += 1
        self._trying, self._until, self._row = False, None, 0
        self._last.clear()
