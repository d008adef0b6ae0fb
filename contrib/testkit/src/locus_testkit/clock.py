"""`FakeClock`: time that only the test advances.

``Agent(clock=...)`` takes it. It rules what a run records and what `TimeLimit` and `Deadline` see; it does
not stop real waiting, such as a tool's timeout.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import final

__all__ = ["FakeClock"]


@final
class FakeClock:
    """A clock that moves only when `advance` is called.

    Args:
        start: the time it shows first, with a time zone.

    Raises:
        ValueError: ``start`` has no time zone.
    """

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError(f"start must have a time zone, got {start!r}; use {start.replace(tzinfo=UTC)!r}")
        self._start = start
        self._passed = 0.0

    def __repr__(self) -> str:
        return f"<FakeClock {self.now().isoformat()}>"

    def now(self) -> datetime:
        """The time, UTC."""
        return (self._start + timedelta(seconds=self._passed)).astimezone(UTC)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: time only goes forward.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds must be 0 or more, got {seconds!r}")
        self._passed += seconds
