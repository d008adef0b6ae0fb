"""Handing threads to workers: the queue half of the store.

Each store that takes keeps an index of what waits, and reads what has changed since its last look, which one request
tells. So to take an offer costs the same however many threads wait, or ever did.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.journal import QueueDepth, Signal
from locus.journal.listing import about, progress
from locus_kit.packing import pack
from locus_plugin_nats.claims import busy_error, free_head
from locus_plugin_nats.entries import describe, pack_message
from locus_plugin_nats.headers import Tip, from_micros, micros
from locus_plugin_nats.places import Place, change_place, current_place, read_place, write_place
from locus_plugin_nats.subjects import key_of, new_token

if TYPE_CHECKING:
    from locus.core.journal import Body
    from locus.journal import Claim
    from locus_plugin_nats.session import Session

__all__ = [
    "NatsOffer",
    "forget_signals",
    "give_back",
    "list_queues",
    "measure_depth",
    "read_signals",
    "send_signal",
    "submit",
    "take",
]

#: Seconds between two looks of a worker that waits, where nothing wakes it.
_LOOK = 1.0


class NatsOffer:
    """An offer of a `NatsStore`."""

    def __init__(self, do: Any, place: Place, lease: float) -> None:
        self._do = do
        self.thread_id, self.queue, self.priority = place.id, place.queue, place.priority
        self.delivered, self.lease, self.number = place.delivered, lease, place.offer

    async def extend(self) -> bool:
        """Have it for another lease."""
        return await self._move(self.lease, ends=False)

    async def done(self) -> bool:
        """Nothing is left to do."""
        return await self._move(None, ends=True)

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """The thread is to be offered again."""
        return await self._move(delay, ends=True, queue=queue)

    async def _move(self, after: float | None, *, ends: bool, queue: str | None = None) -> bool:
        async def work(session: Session) -> bool:
            now = session.index.now()
            due = None if after is None else now + round(after * 1e6)
            changes: dict[str, Any] = {"due": due} | ({} if queue is None else {"queue": queue})
            stored = await change_place(session, self.thread_id, self.number, now=now, ends=ends, **changes)
            return stored is not None

        moved: bool = await self._do(work)
        return moved


async def submit(
    session: Session,
    thread_id: str,
    bodies: Sequence[Body],
    forms: list[dict[str, Any]],
    queue: str,
    priority: int,
    not_before: datetime | None,
) -> bool:
    """Begin a thread with these entries, which are its offer as well: one message."""
    key = key_of(thread_id)
    tip: Tip | None = None  # most threads are new, and of one that is not the server says so
    while True:
        there = progress(bodies)
        head = free_head(thread_id, tip, datetime.now(UTC)).next(
            n=len(bodies),
            count=len(bodies),
            token=new_token(),
            worker="",
            holder="",
            status=there.status,
            node=there.node,
            queue=queue,
            priority=priority,
            due=None if not_before is None else micros(not_before),
            is_queued=True,
        )
        head = await describe(session, key, head, about(bodies))
        head, body = await pack_message(session, key, head, pack(forms))
        if await session.commit(key, "t", 0 if tip is None else tip.seq, head, body) is not None:
            return True
        tip = await session.tip(key, thread_id)
        if tip is not None and (tip.head.n or await busy_error(session, tip) is not None):
            return False


async def take(session: Session, queues: Sequence[str], wait: float, *, is_first: bool) -> Place | None:
    """Take an offer, or wait for something to happen.

    Args:
        session: the store.
        queues: where to look.
        wait: seconds at most; a caller that was cancelled waits for the end of this.
        is_first: False for a caller that goes on waiting: then nothing is asked where nothing has happened.
    """
    index = session.index
    asked = index.looks
    if not is_first and not index.is_old(_LOOK):
        due = index.next_due(queues)
        pause = wait if due is None else min(wait, max(0.0, (due - index.now()) / 1e6))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await index.news.wait()
        if not index.news.is_set() and (due is None or due > index.now()):
            return None
    index.news.clear()
    while True:
        async with index.lock:
            # One look is enough for all that had asked before it.
            if index.seen <= asked:
                await index.sync()
            place = _find_due(session, queues)
        if place is None:
            return None
        stored = await _offer(session, place)
        if stored is not None:
            return stored


async def give_back(session: Session, place: Place) -> None:
    """End an offer whose taker was cancelled."""
    now = session.index.now()
    await change_place(session, place.id, place.offer, now=now, ends=True, due=now)


def _find_due(session: Session, queues: Sequence[str]) -> Place | None:
    """What has waited longest; no other task of this store finds it until it is kept again."""
    index = session.index
    for queue in queues:
        for priority in index.turns.order(queue):
            place = index.pop_due(queue, priority, index.now())
            if place is not None:
                index.turns.count(queue)
                return place
    return None


async def _offer(session: Session, place: Place) -> Place | None:
    """Write that a place is offered; None where another worker was first."""
    index = session.index
    wanted = place.change(
        due=index.now() + round(session.settings.lease * 1e6),
        offer=new_token(),
        delivered=place.delivered + 1,
        is_signalled=False,
    )
    try:
        stored = await write_place(session, key_of(place.id), wanted)
    except BaseException:
        index.keep_again(place)
        raise
    if stored is not None:
        index.put(stored)
        return stored
    async with index.lock:
        index.keep_again(place)
        await index.sync()
        await index.repair(place)
    return None


async def send_signal(session: Session, thread_id: str, signal: Signal) -> bool:
    """Leave a signal, and have the thread due unless a worker was offered it."""
    key = key_of(thread_id)
    tip = await session.tip(key, thread_id)
    if tip is None or tip.is_gone:
        return False
    while True:
        place = await current_place(session, key, thread_id)
        if signal.id in place.sent:
            return False
        now = session.index.now()
        is_held = bool(place.offer) and place.due is not None and place.due > now
        queue = place.queue or str(getattr(signal.body, "queue", ""))
        due = place.due
        if queue and not is_held:
            due = now if due is None else min(due, now)
        numbered = evolve(signal, n=len(place.sent) + 1)
        wanted = place.change(
            queue=queue,
            due=due,
            is_signalled=True,
            signals=(*place.signals, numbered),
            sent=(*place.sent, signal.id),
        )
        if await write_place(session, key, wanted) is not None:
            await session.wire.tell(session.names.nudge(key))
            return True


async def read_signals(session: Session, thread_id: str) -> tuple[Signal, ...]:
    """The signals of a thread that were not forgotten."""
    place = await read_place(session, key_of(thread_id))
    return () if place is None else place.signals


async def forget_signals(session: Session, claim: Claim, numbers: Collection[int]) -> bool:
    """Forget signals by their numbers, while the claim is valid."""
    key = key_of(claim.thread_id)
    while await session.find(claim.thread_id, claim.token) is not None:
        place = await read_place(session, key)
        if place is None or not any(each.n in numbers for each in place.signals):
            return True
        left = tuple(each for each in place.signals if each.n not in numbers)
        if await write_place(session, key, place.change(signals=left)) is not None:
            return True
    return False


async def measure_depth(session: Session, queue: str) -> QueueDepth:
    """What is in a queue."""
    async with session.index.lock:
        await session.index.sync()
    now = session.index.now()
    waiting = [(p.due or 0, p) for p in session.index.places.values() if p.queue == queue]
    ready = [due for due, _ in waiting if due <= now]
    held = sum(bool(place.offer) and due > now for due, place in waiting)
    return QueueDepth(
        ready=len(ready),
        held=held,
        sleeping=len(waiting) - len(ready) - held,
        oldest=from_micros(min(ready)) if ready else None,
        redelivered=sum(place.delivered > (due > now) for due, place in waiting),
    )


async def list_queues(session: Session) -> tuple[str, ...]:
    """The queues with something in them."""
    async with session.index.lock:
        await session.index.sync()
    return tuple(sorted({place.queue for place in session.index.places.values()}))
