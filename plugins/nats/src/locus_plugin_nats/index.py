"""The places of all threads, as far as a store has read them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from attrs import evolve

from locus_plugin_nats.headers import Head, make_tip, parse_time
from locus_plugin_nats.places import Place, decode_place, read_place
from locus_plugin_nats.reading import read_stream
from locus_plugin_nats.subjects import key_of

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from locus_plugin_nats.session import Session

__all__ = ["Index"]

#: Seconds after which the server's clock is compared again.
_COMPARED = 60.0


class Index:
    """The places of all threads, as far as they were read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.places: dict[str, Place] = {}
        self.lock = asyncio.Lock()
        self.offered = 0
        #: Set when something was published that may concern a worker that waits.
        self.news = asyncio.Event()
        self._heaps: dict[tuple[str, int], list[tuple[int, int, str, str]]] = {}
        self._read, self._begun = 0, 0
        self._skew, self._compared = 0, -_COMPARED
        #: Microseconds by which a test is ahead of the server.
        self.ahead = 0
        self._looked = -_COMPARED
        self._listens = False

    def now(self) -> int:
        """Microseconds of the server's clock, as far as it was compared."""
        return time.time_ns() // 1000 + self._skew + self.ahead

    async def sync(self) -> None:
        """Read what has changed."""
        names, self._looked = self._session.names, time.monotonic()
        if time.monotonic() - self._compared > _COMPARED:
            before = time.time_ns()
            info = await self._session.wire.api(f"STREAM.INFO.{names.queue}")
            self._skew = parse_time(info["ts"]) - (before + time.time_ns()) // 2000
            self._compared = time.monotonic()
        changed, begun = await asyncio.gather(
            read_stream(self._session, names.queue, names.place("*"), self._read + 1),
            read_stream(self._session, names.journal, names.entry("*", "t"), self._begun + 1),
        )
        for _, seq, _, _, data in changed:
            self._read = max(self._read, seq)
            self.put(decode_place(data, seq))
        for subject, seq, headers, at, data in begun:
            self._begun = max(self._begun, seq)
            self._begin(make_tip(subject, seq, headers, at, data).head, seq, at)

    def _begin(self, head: Head, seq: int, at: str) -> None:
        """A thread was submitted; its place counts, where one was written since."""
        known = self.places.get(head.id)
        if known is not None and (known.begun >= seq or known.gone >= seq):
            return
        self.put(
            Place(
                id=head.id,
                seq=0 if known is None else known.seq,
                queue=head.queue,
                priority=head.priority,
                due=parse_time(at) if head.due is None else head.due,
                begun=seq,
            )
        )

    def put(self, place: Place) -> None:
        """What a place is now."""
        known = self.places.get(place.id)
        if known is not None and (known.seq > place.seq or (known.begun > place.begun and place.gone < known.begun)):
            if known.seq < place.seq:  # of the thread of that id before
                self.places[place.id] = evolve(known, seq=place.seq)
            return
        self.places[place.id] = place
        if place.due is not None and not place.gone:
            heap = self._heaps.setdefault((place.queue, place.priority), [])
            heappush(heap, (place.due, place.seq or place.begun, place.id, place.write))

    def find_due(self, queue: str, priority: int, now: int) -> Place | None:
        """The place that has waited longest."""
        heap = self._heaps.get((queue, priority), [])
        while heap and heap[0][0] <= now:
            _, _, thread_id, write = heap[0]
            place = self.places.get(thread_id)
            if place is not None and place.write == write:
                return place
            heappop(heap)
        return None

    async def repair(self, place: Place) -> None:
        """Read one place again where the server has another one and nothing was said of that: it has expired."""
        if self.places.get(place.id) == place:
            found = await read_place(self._session, key_of(place.id))
            if found is None:
                self.places[place.id] = evolve(place, seq=0)
            elif found.seq != place.seq:
                self.put(found)

    def is_old(self, seconds: float) -> bool:
        """Whether the last look was longer ago."""
        return time.monotonic() - self._looked > seconds

    def waiting(self) -> list[Place]:
        """The places of threads that wait or are held."""
        return [place for place in self.places.values() if place.due is not None and not place.gone]

    def next_due(self, queues: Sequence[str]) -> int | None:
        """When something is due next, as far as is known."""
        return min((p.due for p in self.waiting() if p.queue in queues and p.due is not None), default=None)

    async def listen(self) -> None:
        """Be woken by what is published from now on."""
        if not self._listens:
            self._listens = True
            names = self._session.names
            for subject in (names.place("*"), names.entry("*", "t")):
                await self._session.wire.listen(subject, self._wake)

    async def _wake(self, _: Msg) -> None:
        self.news.set()
