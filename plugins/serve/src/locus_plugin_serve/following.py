"""What happens on a thread, as server-sent events that a client can go on with after any break.

What has an id is on the journal, and the id is its place there: ``ENTRY.PART``. So nothing is kept for clients that may
come again, and one that comes to another process, or after a crash, misses nothing and gets nothing twice. What has no
id is only for those who watch: pieces of an answer, tools that begin, progress.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from attrs import frozen

from locus.core.events import (
    CheckpointEvent,
    Event,
    InterruptEvent,
    ModelChunkEvent,
    ModelRestartEvent,
    TerminateEvent,
    ToolProgressEvent,
    ToolStartEvent,
    event_to_json,
)
from locus.core.journal import Entry
from locus.journal import JournalStore
from locus.plugin import Lazy
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.sse import PieceWriter, write_comment, write_event
from locus_plugin_serve.users import ThreadName

__all__ = ["Place", "follow_thread", "is_at_end"]

worker: Any = Lazy("locus.worker")

#: Events that are shown when they happen, and those that say that the journal has more.
_LIVE = frozenset({ModelChunkEvent, ModelRestartEvent, ToolStartEvent, ToolProgressEvent})
_ENDS = frozenset({InterruptEvent, TerminateEvent})

#: Seconds between two looks at a run of another process, or of none.
_POLL = 0.5

#: Pauses after which nothing happens by itself.
_RESTING = frozenset({"interrupted", "dead_letter", "failed"})

_PLACE = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)


@frozen(order=True)
class Place:
    """The place of an event: an entry of the journal, and which of the events of that entry, from 0.

    Args:
        entry: number of the entry, from 1; 0 = before all.
        part: -1 = before all of the entry.
    """

    entry: int = 0
    part: int = -1

    @classmethod
    def behind(cls, entry: int) -> Place:
        """The place behind everything that an entry says."""
        return cls(entry + 1, -1)

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """The place that a ``Last-Event-ID`` names; the beginning without one.

        Raises:
            Problem: it is not one of ours.
        """
        if not text:
            return cls()
        found = _PLACE.fullmatch(text)
        if found is None:
            raise Problem.of_input(f"Last-Event-ID must be the id of an event, such as 12.0, got {text!r:.40}")
        return cls.behind(int(found[1])) if found[2] is None else cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.entry - 1}" if self.part < 0 else f"{self.entry}.{self.part}"


_BEGINNING = Place()


class _Reader:
    """Reads what the journal has behind a place, and tells it up to an entry."""

    def __init__(self, store: JournalStore, thread: ThreadName, after: Place, run_id: str) -> None:
        self._store, self._thread_id = store, thread.thread_id
        # Not a `Place`, of which comparing two costs as much as writing an event.
        self._at = (after.entry, after.part)
        self._run_id = run_id
        # The entry that the client may know in part is read again, at first, and every other one once.
        self._read_to = max(0, after.entry - 1)
        self._entries: deque[Entry] = deque()
        #: The number of the last entry that was told.
        self.told = self._read_to
        #: Whether what was told last is the end of what happens by itself.
        self.is_resting = False

    async def load(self) -> None:
        """Read the entries that have come since."""
        for entry in await self._store.read(self._thread_id, self._read_to):
            self._read_to = entry.n
            self._entries.append(entry)

    def tell(self, to: int | None = None) -> list[bytes]:
        """The events of what was read, written.

        Args:
            to: the number of the last entry; None = all.
        """
        frames = []
        while self._entries and (to is None or self._entries[0].n <= to):
            entry = self._entries.popleft()
            self.told = entry.n
            for part, moment in enumerate(worker.read_moments(entry)):
                is_own = not self._run_id or moment.run_id in ("", self._run_id)
                if is_own:
                    self.is_resting = moment.kind == "ended" or (moment.kind == "paused" and moment.pause in _RESTING)
                if (entry.n, part) > self._at:
                    self._at = (entry.n, part)
                    if is_own:
                        frames.append(write_event(moment.to_json(), name=moment.kind, id=f"{entry.n}.{part}"))
        return frames


async def is_at_end(store: JournalStore, thread: ThreadName, after: Place) -> bool:
    """Whether nothing is on the journal behind a place, and nothing will come by itself."""
    reader = _Reader(store, thread, after, "")
    await reader.load()
    return not reader.tell() and reader.is_resting


async def follow_thread(
    store: JournalStore,
    thread: ThreadName,
    feed: Feed,
    *,
    is_here: Callable[[], bool],
    after: Place = _BEGINNING,
    run_id: str = "",
    ping: float = 15.0,
) -> AsyncGenerator[bytes, None]:
    """The events of a thread, until its run has ended, asks a person, or was set aside.

    Args:
        store: where the thread is.
        thread: the thread.
        feed: of its live events; closed when its run is over.
        is_here: whether a run of the thread is in this process now, so that the feed has its events.
        after: where the client is.
        run_id: only those of this run.
        ping: seconds between comments when nothing happens.
    """
    reader, writer, silent, has_more = _Reader(store, thread, after, run_id), _LiveWriter(), 0.0, True
    while True:
        # A feed is closed after the end is recorded, so all of it is read below.
        was_closed, events = feed.is_closed, feed.take()
        if has_more or was_closed or any(map(_has_recorded, events)):
            await reader.load()
        frames = list(_write(reader, writer, events, catches_up=has_more))
        if was_closed:
            frames += reader.tell()
        has_more = False
        if frames:
            silent = 0.0
            yield b"".join(frames)
        if reader.is_resting or was_closed:
            return
        here = is_here()
        pause = ping if here else min(_POLL, ping)
        if not await feed.wait(pause):
            has_more, silent = not here, silent + pause
            if silent >= ping:
                silent = 0.0
                yield write_comment("ping")


def _has_recorded(event: Event) -> bool:
    """Whether an event says that the journal has more to tell now."""
    if type(event) is CheckpointEvent:
        # The end follows the way to it at once, and both are read then.
        return event.parent_run_id is None and event.next_node != "terminate"
    return type(event) in _ENDS


def _write(reader: _Reader, writer: _LiveWriter, events: tuple[Event, ...], *, catches_up: bool) -> Iterator[bytes]:
    """Events in the order in which they happened: those that are shown live, and between them what was recorded."""
    heads = [each.head for each in events if isinstance(each, CheckpointEvent) and each.parent_run_id is None]
    if catches_up:
        yield from reader.tell(heads[0] - 1 if heads else None)
    live: list[bytes] = []
    for event in events:
        if type(event) in _LIVE and not event.replayed:
            live.append(writer.write(event))
            continue
        is_transition = isinstance(event, CheckpointEvent) and event.parent_run_id is None
        if is_transition or type(event) in _ENDS:
            head = event.head if isinstance(event, CheckpointEvent) else None
            # What was to be shown before its record is void if that was told already, by a reader that caught up.
            if head is None or head > reader.told:
                yield from live
            live = []
            yield from reader.tell(head)
    yield from live


class _LiveWriter:
    """Writes the events of runs, without the ids that their threads have in the store."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._pieces: PieceWriter | None = None

    def write(self, event: Event) -> bytes:
        """One event."""
        if type(event) is ModelChunkEvent:
            return self._write_chunk(event)
        form = event_to_json(event)
        form.pop("thread_id", None)
        return write_event(form, name=event.type)

    def _write_chunk(self, event: ModelChunkEvent) -> bytes:
        # There are hundreds, so they have what a reader needs and no more.
        key = (event.run_id, event.attempt, event.kind, event.parent_run_id, event.purpose)
        if self._pieces is None or key != self._key:
            form = {"run_id": event.run_id, "attempt": event.attempt, "kind": event.kind, "text": PieceWriter.HOLE}
            if event.parent_run_id is not None:
                form["parent_run_id"] = event.parent_run_id
            if event.purpose != "think":
                form["purpose"] = event.purpose
            self._key, self._pieces = key, PieceWriter(form, name=event.type)
        return self._pieces.write(event.text)
