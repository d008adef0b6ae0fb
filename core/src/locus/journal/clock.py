"""The only source of time of a run, so that a test can bring its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The time, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """The time, UTC."""
        return datetime.now(UTC)

    #: Seconds that only go forward.
    monotonic = staticmethod(time.monotonic)
