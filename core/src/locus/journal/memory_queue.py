"""The queues of a `MemoryStore`: threads by the moment from which they may be offered.

A thread that was offered keeps its place, due when the lease of the offer ends.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from locus.journal.queue import PriorityTurns, QueueDepth

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from locus.journal.signals import Signal


@define
class Place:
    """Where a thread waits, and what it was sent.

    Args:
        queue: its queue, ``""`` for a thread that was never submitted.
        priority: its priority.
        due: from when it may be offered; None = when it is signalled.
        offer: the number of the offer under way, 0 where none is.
        delivered: how often it was offered in a row.
        is_signalled: whether a signal came since it was offered.
        version: counts its moves; an older one in a heap counts no more.
        signals: those not forgotten.
        sent: the ids of all signals.
    """

    queue: str = ""
    priority: int = 0
    due: datetime | None = None
    offer: int = 0
    delivered: int = 0
    is_signalled: bool = False
    version: int = 0
    signals: list[Signal] = field(factory=list)
    sent: set[str] = field(factory=set)


class Places:
    """The places of all threads. Safe to share between threads and tasks.

    Args:
        now: tells the time.
        lease: seconds that an offer is good for.
    """

    def __init__(self, now: Callable[[], datetime], lease: float) -> None:
        self.now, self.lease = now, lease
        self._places: dict[str, Place] = {}
        self._heaps: dict[tuple[str, int], list[tuple[datetime, int, str]]] = {}
        self._versions, self._offered, self._turns, self._lock = count(1), 0, PriorityTurns(), Lock()

    def submit(self, thread_id: str, queue: str, priority: int, not_before: datetime | None) -> None:
        """Put a thread into a queue."""
        with self._lock:
            self._places[thread_id] = Place(queue, priority)
            self._put(thread_id, self._places[thread_id], not_before or self.now())

    def _put(self, thread_id: str, place: Place, due: datetime | None) -> None:
        place.due, place.version = due, next(self._versions)
        if due is not None:
            heap = self._heaps.setdefault((place.queue, place.priority), [])
            heappush(heap, (due, place.version, thread_id))

    def take(self, queues: Sequence[str]) -> MemoryOffer | None:
        """Offer a thread."""
        with self._lock:
            now = self.now()
            for queue in queues:
                for priority in self._turns.order(queue):
                    heap = self._heaps.get((queue, priority), [])
                    while heap and heap[0][0] <= now:
                        _, version, thread_id = heappop(heap)
                        place = self._places.get(thread_id)
                        if place is not None and place.version == version:
                            self._put(thread_id, place, now + timedelta(seconds=self.lease))
                            self._offered += 1
                            self._turns.count(queue)
                            place.offer, place.is_signalled = self._offered, False
                            place.delivered += 1
                            return MemoryOffer(self, thread_id, place)
        return None

    def move(self, offer: MemoryOffer, due: datetime | None, queue: str | None = None, *, ends: bool = True) -> bool:
        """Have an offered thread due then, or at once where a signal came meanwhile and the offer ends."""
        with self._lock:
            place = self._places.get(offer.thread_id)
            if place is None or place.offer != offer.number:
                return False
            if ends:
                place.offer, place.delivered, place.queue = 0, 0, place.queue if queue is None else queue
                due = self.now() if place.is_signalled else due
            self._put(offer.thread_id, place, due)
            return True

    def signal(self, thread_id: str, signal: Signal) -> Signal | None:
        """Keep a signal, and give it its number; None where it was sent before."""
        with self._lock:
            place, now = self._places.setdefault(thread_id, Place()), self.now()
            if signal.id in place.sent:
                return None
            place.sent.add(signal.id)
            place.signals.append(evolve(signal, n=len(place.sent)))
            is_held = place.offer and place.due is not None and place.due > now
            place.is_signalled = True
            place.queue = place.queue or getattr(signal.body, "queue", "")
            if place.queue and not is_held:
                self._put(thread_id, place, now if place.due is None else min(place.due, now))
            return place.signals[-1]

    def signals(self, thread_id: str, forget: Collection[int] = ()) -> tuple[Signal, ...]:
        """The signals that are left without those that are to be forgotten."""
        with self._lock:
            place = self._places.get(thread_id, Place())
            place.signals = [each for each in place.signals if each.n not in forget]
            return tuple(place.signals)

    def forget(self, thread_id: str) -> None:
        """The thread was deleted."""
        with self._lock:
            self._places.pop(thread_id, None)

    def depth(self, queue: str) -> QueueDepth:
        """What is in a queue."""
        with self._lock:
            now = self.now()
            waiting = [(p.due, p) for p in self._places.values() if p.queue == queue and p.due is not None]
        ready = [due for due, _ in waiting if due <= now]
        held = sum(p.offer > 0 and due > now for due, p in waiting)
        return QueueDepth(
            ready=len(ready),
            held=held,
            sleeping=len(waiting) - len(ready) - held,
            oldest=min(ready, default=None),
            redelivered=sum(p.delivered > (due > now) for due, p in waiting),
        )

    def queues(self) -> tuple[str, ...]:
        """The queues with something in them."""
        with self._lock:
            return tuple(sorted({place.queue for place in self._places.values() if place.due is not None}))


class MemoryOffer:
    """An offer of a `MemoryStore`."""

    def __init__(self, places: Places, thread_id: str, place: Place) -> None:
        self._places, self.number = places, place.offer
        self.thread_id, self.queue, self.priority = thread_id, place.queue, place.priority
        self.delivered, self.lease = place.delivered, places.lease

    async def extend(self) -> bool:
        """Have it for another lease."""
        return self._places.move(self, self._after(self.lease), ends=False)

    async def done(self) -> bool:
        """Nothing is left to do."""
        return self._places.move(self, None)

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """The thread is to be offered again."""
        return self._places.move(self, self._after(delay), queue)

    def _after(self, seconds: float) -> datetime:
        return self._places.now() + timedelta(seconds=seconds)
