"""`Feed`: what one reader has not yet read of the events of a thread.

A run never waits for a reader. What a reader is behind by is bounded: of the pieces of an answer, which a later event
has in one, those that find no room are left out, and with them the rest of that answer's.
"""

from __future__ import annotations

from collections import deque
from time import monotonic

import anyio

from locus.core.events import Event, ModelChunkEvent
from locus.journal import JournalHost

__all__ = ["Feed"]

#: How many pieces of answers may wait for a reader, and how many events of all kinds.
_CHUNKS, _EVENTS = 2_000, 20_000

#: Seconds between two writes to one client while events come without a pause; too short to be seen.
_GATHER = 0.025


class Feed:
    """The events of a thread, for one reader."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        #: What a reader that waits is woken by, and whether an event does so or the end alone.
        self._woken: anyio.Event | None = None
        self._wants_events = True
        self._taken_at = 0.0
        self._skips = False
        #: The thread as it was before, if its reader wants to know; and whether a run was under way by then, so that
        #: events may come of what is there already, and the first pieces of an answer may be missing.
        self.missed: JournalHost | None = None
        self.is_late = False
        #: Whether no more events come.
        self.is_closed = False
        #: Whether the reader is so far behind that events were lost.
        self.is_overrun = False

    def push(self, event: Event) -> None:
        """Add an event."""
        if type(event) is ModelChunkEvent:
            self._skips = self._skips or len(self._events) >= _CHUNKS
            if self._skips:
                return
        else:
            self._skips = False
            if len(self._events) >= _EVENTS:
                self.is_overrun = True
                self.close()
                return
        self._events.append(event)
        if self._woken is not None and self._wants_events:
            self._woken.set()
            self._wants_events = False

    def close(self) -> None:
        """Say that no more events come."""
        self.is_closed = True
        if self._woken is not None:
            self._woken.set()

    def take(self) -> tuple[Event, ...]:
        """The events that have come since; none are left."""
        found = tuple(self._events)
        self._events.clear()
        if found:
            self._taken_at = monotonic()
        return found

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to take, or the end; False after so many seconds without.

        What follows at once on what was taken last is gathered for `_GATHER` seconds, so that a burst of events is one
        write and not many.
        """
        if not self._events and not self.is_closed:
            await self._sleep(seconds, wants_events=True)
        left = self._taken_at + _GATHER - monotonic()
        if left > 0 and self._events and not self.is_closed:
            await self._sleep(left, wants_events=False)
        return bool(self._events) or self.is_closed

    async def _sleep(self, seconds: float, *, wants_events: bool) -> None:
        self._woken, self._wants_events = anyio.Event(), wants_events
        try:
            with anyio.move_on_after(seconds):
                await self._woken.wait()
        finally:
            self._woken = None
