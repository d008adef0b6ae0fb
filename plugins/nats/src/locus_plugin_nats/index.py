"""What waits in queues, as far as a store has read it.

Places of threads that are done are read and not kept: an offer is written under a condition, so a store that does not
know that a thread is done is refused, and reads its place then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from attrs import evolve

from locus.journal import PriorityTurns
from locus_plugin_nats.headers import Tip, parse_time
from locus_plugin_nats.places import Place, begin_place, decode_place, read_place
from locus_plugin_nats.reading import read_stream, scan
from locus_plugin_nats.subjects import key_of

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from locus_plugin_nats.session import Session

__all__ = ["Index"]

#: Seconds after which the server's clock is compared again.
_COMPARED = 60.0

#: Seconds after which submits are looked for although none was heard of.
_SEARCHED = 5.0

#: Submits that are read one at a time, which the server answers at once, before the rest is read in bulk.
_FEW = 8


class Index:
    """The places of the threads that wait or are held, as far as they were read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.places: dict[str, Place] = {}
        self.lock = asyncio.Lock()
        self.turns = PriorityTurns()
        #: Set when something was published that may concern a worker that waits.
        self.news = asyncio.Event()
        self._heaps: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
        #: Sequences up to which places and submits were read.
        self._read, self._begun = 0, 0
        #: Threads that are done, and whose submit was not read yet: id -> sequence of the submit, or of the deletion.
        self._over: dict[str, int] = {}
        self._skew, self._compared = 0, -_COMPARED
        #: Microseconds by which a test is ahead of the server.
        self.ahead = 0
        self._looked = self._searched = -_COMPARED
        self._heard = True
        self._listens = False
        #: How many looks were begun, and the number of the last one that went well.
        self.looks, self.seen = 0, 0

    def now(self) -> int:
        """Microseconds of the server's clock, as far as it was compared."""
        return time.time_ns() // 1000 + self._skew + self.ahead

    def forget_hints(self) -> None:
        """The connection was lost: what was submitted meanwhile was not heard of."""
        self._heard = True
        self.news.set()

    async def sync(self) -> None:
        """Read what has changed.

        The server passes a submit on before it answers it, so a request of this store that comes later finds it.
        """
        names, self._looked = self._session.names, time.monotonic()
        self.looks += 1
        number = self.looks
        await self.listen()
        if time.monotonic() - self._compared > _COMPARED:
            before = time.time_ns()
            info = await self._session.wire.api(f"STREAM.INFO.{names.queue}")
            self._skew = parse_time(info["ts"]) - (before + time.time_ns()) // 2000
            self._compared = time.monotonic()
        for _, seq, _, _, data in await read_stream(self._session, names.queue, ">", self._read + 1):
            self._read = max(self._read, seq)
            self.put(decode_place(data, seq))
        if self._heard or time.monotonic() - self._searched > _SEARCHED:
            self._heard, self._searched = False, time.monotonic()
            try:
                await self._read_submits()
            except BaseException:
                self._heard = True
                raise
            self._over = {name: seq for name, seq in self._over.items() if seq > self._begun}
        self.seen = number

    async def _read_submits(self) -> None:
        subject = self._session.names.entry("*", "t")
        for _ in range(_FEW if self._begun else 0):
            found = await self._session.message(seq=self._begun + 1, next_by_subj=subject)
            if found is None:
                return
            self._begin(found)
        async for found_tips in scan(self._session, subject, self._begun + 1):
            for tip in found_tips:
                self._begin(tip)

    def _begin(self, tip: Tip) -> None:
        """A thread was submitted; its place counts, where one was written since."""
        self._begun = max(self._begun, tip.seq)
        known = self.places.get(tip.head.id)
        if self._over.get(tip.head.id, 0) >= tip.seq or (known is not None and known.begun >= tip.seq):
            return
        self.put(begin_place(tip, 0 if known is None else known.seq))

    def put(self, place: Place) -> None:
        """What a place is now."""
        known = self.places.get(place.id)
        if known is not None and (known.seq > place.seq or (known.begun > place.begun and place.gone < known.begun)):
            if known.seq < place.seq:  # of the thread of that id before
                self._keep(evolve(known, seq=place.seq))
        elif place.due is None or place.gone:
            self.places.pop(place.id, None)
            over = max(place.begun, place.gone)
            if over > self._begun:
                self._over[place.id] = over
        else:
            self._keep(place)

    def _keep(self, place: Place) -> None:
        self.places[place.id] = place
        heap = self._heaps.setdefault((place.queue, place.priority), [])
        heappush(heap, (place.due or 0, place.seq or place.begun, place.id))

    def _first(self, queue: str, priority: int) -> Place | None:
        heap = self._heaps.get((queue, priority), [])
        while heap:
            due, seq, thread_id = heap[0]
            place = self.places.get(thread_id)
            if place is not None and (place.due, place.seq or place.begun) == (due, seq):
                return place
            heappop(heap)
        self._heaps.pop((queue, priority), None)
        return None

    def pop_due(self, queue: str, priority: int, now: int) -> Place | None:
        """The place that has waited longest; it is not found again until it is put, or kept again."""
        place = self._first(queue, priority)
        if place is None or (place.due or 0) > now:
            return None
        heappop(self._heaps[queue, priority])
        return place

    def keep_again(self, place: Place) -> None:
        """A place that was popped is still there, unless something else was read of it since."""
        if self.places.get(place.id) == place:
            self._keep(place)

    async def repair(self, place: Place) -> None:
        """Read one place again where the server has another one, and this store did not read of it."""
        if self.places.get(place.id) == place:
            found = await read_place(self._session, key_of(place.id))
            if found is None:
                self._keep(evolve(place, seq=0))
            elif found.seq != place.seq:
                self.put(found)

    def is_old(self, seconds: float) -> bool:
        """Whether the last look was longer ago."""
        return time.monotonic() - self._looked > seconds

    def next_due(self, queues: Sequence[str]) -> int | None:
        """When something is due next, as far as is known."""
        found = [self._first(queue, priority) for queue in queues for priority in (2, 1, 0)]
        return min((place.due for place in found if place is not None and place.due is not None), default=None)

    async def listen(self) -> None:
        """Be woken by what is published from now on."""
        if not self._listens:
            names = self._session.names
            await self._session.wire.listen(names.place("*"), self._wake)
            await self._session.wire.listen(names.entry("*", "t"), self._hear)
            self._listens = True

    async def _wake(self, _: Msg) -> None:
        self.news.set()

    async def _hear(self, _: Msg) -> None:
        self._heard = True
        self.news.set()
