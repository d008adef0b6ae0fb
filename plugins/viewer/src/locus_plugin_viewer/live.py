"""Live: what is written to a thread, to those who look at it, as server-sent events.

The journal is the source, so it does not matter which process has the run. Everybody who looks at one thread shares
one *channel*: the first that wakes reads the store and renders, the others get what it found. So fifty viewers cost the
store as much as one.

An event has the number of the newest entry as its id, and the blocks since the last transition before it: a client
puts each in the place of the block with the same first entry. A client that comes back says which entry it has seen
(``Last-Event-ID``) and gets what it has missed, without gaps.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import anyio
from attrs import frozen

from locus.core.errors import JournalDamaged, LocusError, NothingToResume, StoreError
from locus.core.journal import Entry, Transition
from locus.journal import JournalStore
from locus_plugin_viewer.blocks import read_blocks
from locus_plugin_viewer.items import Block
from locus_plugin_viewer.journal import find_boundary, find_head, read_after

__all__ = ["Channels", "Render"]

#: Seconds between two looks: from the first after something has happened, to the most where nothing does.
_SOON, _LATER = 0.1, 0.75

#: Seconds after which a line is sent to keep a connection, and events that a channel keeps for who is slow.
_KEEP_ALIVE, _EVENTS = 15.0, 64

#: Makes HTML of some blocks of a thread.
Render = Callable[[str, Sequence[Block]], str]


@frozen
class _Event:
    after: int
    head: int
    text: str


class _Channel:
    """What is new on one thread, read once for all who look at it."""

    def __init__(self, store: JournalStore, thread_id: str, head: int, boundary: int, render: Render) -> None:
        self._store, self._thread_id, self._render = store, thread_id, render
        self.head, self._boundary = head, boundary
        self.events: deque[_Event] = deque(maxlen=_EVENTS)
        self.viewers = 0
        self._lock = anyio.Lock()
        self._looked, self._wait = 0.0, _SOON

    async def look(self) -> None:
        """Read what is new, unless that was done a moment ago."""
        async with self._lock:
            now = anyio.current_time()
            if now - self._looked < self._wait:
                return
            entries = await read_after(self._store, self._thread_id, self._boundary)
            self._looked = anyio.current_time()
            if not entries or entries[-1].n == self.head:
                self._wait = min(2 * self._wait, _LATER)
                return
            self._wait = _SOON
            text = _event(self._thread_id, entries, self._render)
            self.events.append(_Event(self.head, entries[-1].n, text))
            self.head = entries[-1].n
            self._boundary = next((e.n for e in reversed(entries) if isinstance(e.body, Transition)), self._boundary)

    @property
    def wait(self) -> float:
        """Seconds until it is worth looking again."""
        return self._wait


def _event(thread_id: str, entries: Sequence[Entry], render: Render) -> str:
    html = render(thread_id, read_blocks(entries))
    data = json.dumps({"head": entries[-1].n, "html": html}, ensure_ascii=False)
    return f"id: {entries[-1].n}\nevent: blocks\ndata: {data}\n\n"


class Channels:
    """The threads that are looked at.

    Args:
        store: where the threads are.
        render: makes HTML of blocks.
        is_closing: whether the server leaves, so that what follows a thread must end.
    """

    def __init__(self, store: JournalStore, render: Render, is_closing: Callable[[], bool] = lambda: False) -> None:
        self._store, self._render, self._is_closing = store, render, is_closing
        self._open: dict[str, _Channel] = {}

    async def follow(self, thread_id: str, seen: int) -> AsyncGenerator[str, None]:
        """The events of a thread, as text of the protocol, until the server closes or the store cannot be read.

        Args:
            thread_id: the thread.
            seen: the number of the newest entry that the client has.
        """
        yield "retry: 1000\n\n"
        try:
            async with aclosing(self._follow(thread_id, seen)) as events:
                async for text in events:
                    yield text
        except LocusError as e:
            # A server that does not answer may do so in a moment, and browsers ask again; the rest is for good.
            if not isinstance(e, StoreError) or isinstance(e, JournalDamaged):
                yield "event: gone\ndata: {}\n\n"

    async def _follow(self, thread_id: str, seen: int) -> AsyncGenerator[str, None]:
        # A client that has seen more than there is (the thread was deleted, and another one has its name) is shown what
        # comes next. The channel knows no better: it has the head as it was when it last looked.
        seen = min(seen, await find_head(self._store, thread_id))
        channel = self._open.get(thread_id)
        if channel is None:
            channel = _Channel(
                self._store, thread_id, seen, await find_boundary(self._store, thread_id, seen), self._render
            )
            self._open.setdefault(thread_id, channel)
            channel = self._open[thread_id]
        channel.viewers += 1
        try:
            async with aclosing(self._events(channel, thread_id, seen)) as events:
                async for text in events:
                    yield text
        finally:
            channel.viewers -= 1
            if not channel.viewers and self._open.get(thread_id) is channel:
                del self._open[thread_id]

    async def _events(self, channel: _Channel, thread_id: str, seen: int) -> AsyncGenerator[str, None]:
        quiet_since = anyio.current_time()
        while not self._is_closing():
            await channel.look()
            if seen < channel.head:
                missed = [event for event in channel.events if event.head > seen]
                if not missed or missed[0].after > seen:
                    text, seen = await self._catch_up(thread_id, seen)
                    yield text
                for event in missed:
                    if event.head > seen:
                        yield event.text
                        seen = event.head
                quiet_since = anyio.current_time()
            if anyio.current_time() - quiet_since > _KEEP_ALIVE:
                yield ": nothing new\n\n"
                quiet_since = anyio.current_time()
            await anyio.sleep(channel.wait)

    async def _catch_up(self, thread_id: str, seen: int) -> tuple[str, int]:
        """What a client has missed that the channel does not have any more, or a part of it."""
        boundary = await find_boundary(self._store, thread_id, seen)
        entries = await read_after(self._store, thread_id, boundary)
        if not entries:
            raise NothingToResume(f"thread {thread_id!r} is gone")
        return _event(thread_id, entries, self._render), entries[-1].n
