"""`Feed`: what one reader has not yet read of the events of a thread.

A run never waits for a reader. What a reader is behind by is bounded: of the pieces of an answer, which a later event
has in one, those that find no room are left out, and with them the rest of that answer's.
"""

from __future__ import annotations

from collections import deque

import anyio

from locus.core.events import Event, ModelChunkEvent

__all__ = ["Feed"]

#: How many pieces of answers may wait for a reader, and how many events of all kinds.
_CHUNKS, _EVENTS = 2_000, 20_000


class Feed:
    """The events of a thread, for one reader."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = anyio.Event()
        self._skips = False
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
        self._changed.set()

    def close(self) -> None:
        """Say that no more events come."""
        self.is_closed = True
        self._changed.set()

    def take(self) -> tuple[Event, ...]:
        """The events that have come since; none are left."""
        found = tuple(self._events)
        self._events.clear()
        return found

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to take, or the end; False after so many seconds without."""
        if not self._events and not self.is_closed:
            self._changed = anyio.Event()
            with anyio.move_on_after(seconds):
                await self._changed.wait()
        return bool(self._events) or self.is_closed
