"""What happens on a thread, as server-sent events that a client can go on with after any break.

What has an id is on the journal, and the id is its place there: ``ENTRY.PART``. So nothing is kept for clients that may
come again, and one that comes to another process, or after a crash, misses nothing and gets nothing twice. What has no
id is only for those who watch: pieces of an answer, tools that begin, progress.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
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
from locus.journal import JournalStore
from locus.plugin import Lazy
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.sse import write_comment, write_event
from locus_plugin_serve.users import ThreadName

__all__ = ["Place", "follow_thread", "is_at_end"]

worker: Any = Lazy("locus.worker")

#: Events that are shown when they happen, and those that say that the journal has more.
_LIVE = frozenset({ModelChunkEvent, ModelRestartEvent, ToolStartEvent, ToolProgressEvent})
_RECORDED = frozenset({CheckpointEvent, InterruptEvent, TerminateEvent})

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
    """Reads what the journal has behind a place."""

    def __init__(self, store: JournalStore, thread: ThreadName, after: Place, run_id: str) -> None:
        self._store, self._thread_id, self.place = store, thread.thread_id, after
        self._run_id = run_id
        # The entry that the client may know in part is read again, at first, and every other one once.
        self._read_to = max(0, after.entry - 1)
        #: Whether what was read last is the end of what happens by itself.
        self.is_resting = False

    async def read(self) -> list[bytes]:
        """The events that have come since, written."""
        frames = []
        for entry in await self._store.read(self._thread_id, self._read_to):
            self._read_to = entry.n
            for part, moment in enumerate(worker.read_moments(entry)):
                place = Place(entry.n, part)
                is_own = not self._run_id or moment.run_id in ("", self._run_id)
                if is_own:
                    self.is_resting = moment.kind == "ended" or (moment.kind == "paused" and moment.pause in _RESTING)
                if place > self.place:
                    self.place = place
                    if is_own:
                        frames.append(write_event(moment.to_json(), name=moment.kind, id=str(place)))
        return frames


async def is_at_end(store: JournalStore, thread: ThreadName, after: Place) -> bool:
    """Whether nothing is on the journal behind a place, and nothing will come by itself."""
    reader = _Reader(store, thread, after, "")
    return not await reader.read() and reader.is_resting


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
    reader, silent, has_more = _Reader(store, thread, after, run_id), 0.0, True
    frames: list[bytes]
    while True:
        # A feed is closed after the end is recorded, so all of it is read below.
        was_closed, frames = feed.is_closed, []
        for event in feed.take():
            if type(event) in _RECORDED:
                # The end follows the way to it at once, so both are read together.
                has_more = has_more or getattr(event, "next_node", "") != "terminate"
            elif type(event) in _LIVE and not event.replayed:
                if has_more:
                    frames += await reader.read()
                    has_more = False
                frames.append(_write_live(event))
        if has_more or was_closed:
            frames += await reader.read()
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


def _write_live(event: Event) -> bytes:
    """An event of a run, without the id that its thread has in the store."""
    if type(event) is ModelChunkEvent:  # there are hundreds, so they have what a reader needs and no more
        form = {"run_id": event.run_id, "attempt": event.attempt, "kind": event.kind, "text": event.text}
        if event.parent_run_id is not None:
            form["parent_run_id"] = event.parent_run_id
        if event.purpose != "think":
            form["purpose"] = event.purpose
    else:
        form = event_to_json(event)
        form.pop("thread_id", None)
    return write_event(form, name=event.type)
