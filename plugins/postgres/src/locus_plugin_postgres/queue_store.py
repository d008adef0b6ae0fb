"""The queue of a store: submits, offers, and signals."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
from attrs import field, frozen

from locus.core.journal import entry_to_json
from locus.journal import Claim, PriorityTurns, QueueDepth, Signal
from locus_plugin_postgres import queue as queueing
from locus_plugin_postgres import signals
from locus_plugin_postgres.errors import StoreClosed
from locus_plugin_postgres.handle import Handle
from locus_plugin_postgres.hints import key_of_queue, make_setter

if TYPE_CHECKING:
    from locus.core.journal import Body
    from locus.journal import Offer
    from locus_plugin_postgres.address import Address
    from locus_plugin_postgres.settings import PostgresSettings

__all__ = ["PostgresOffer", "QueueHandle"]

#: Seconds between two looks of a worker that waits for an offer: where hints come, and where they do not.
_POLL, _POLL_WITHOUT_HINTS = 5.0, 0.5

#: And at least, where another worker is just looking at what is ready.
_SHORTEST = 0.01


@frozen
class PostgresOffer:
    """A thread that a worker may run.

    Args:
        store: that made it.
        place: id of the thread's row.
        token: of this offer.
        thread_id: see `locus.journal.Offer`, as for those that follow.
        queue: see there.
        priority: see there.
        delivered: see there.
        lease: see there.
    """

    store: QueueHandle = field(repr=False)
    place: int = field(repr=False)
    token: str = field(repr=False)
    thread_id: str
    queue: str
    priority: int
    delivered: int
    lease: float

    async def extend(self) -> bool:
        """Have it for another lease."""
        return await self.store.extend_offer(self)

    async def done(self) -> bool:
        """Nothing is left to do."""
        return await self.store.end_offer(self, None, None)

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """The thread is to be offered again."""
        return await self.store.end_offer(self, delay, queue)


class QueueHandle(Handle):
    """What a `locus.journal.QueueStore` does."""

    def __init__(self, address: Address, settings: PostgresSettings) -> None:
        super().__init__(address, settings)
        self._turns = PriorityTurns()

    async def submit(
        self,
        thread_id: str,
        bodies: Sequence[Body],
        *,
        queue: str,
        priority: int = 0,
        not_before: datetime | None = None,
    ) -> bool:
        """Begin a thread, and put it into a queue, in one statement.

        Raises:
            NotSerialisable: one of the bodies has no JSON form.
        """
        known, born, place = tuple(bodies), uuid4().hex, (queue, priority, not_before)
        forms = [entry_to_json(body) for body in known]
        return await self._do(
            (thread_id,), lambda session: queueing.submit(session, thread_id, known, forms, place, born)
        )

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer of these queues; looks when a hint comes, when one is due, and every five seconds."""
        until = anyio.current_time() + wait
        keys = frozenset(map(key_of_queue, queues))
        while True:
            event = anyio.Event()
            listener = self._runner.session.hints.add(keys, make_setter(event))
            try:
                found = await self._take(queues)
                left = until - anyio.current_time()
                if isinstance(found, PostgresOffer) or left <= 0:
                    return found if isinstance(found, PostgresOffer) else None
                poll = _POLL if await self._do((), lambda session: session.hints.listen()) else _POLL_WITHOUT_HINTS
                with anyio.move_on_after(min(left, poll, poll if found is None else max(found, _SHORTEST))):
                    await event.wait()
            finally:
                self._runner.session.hints.remove(listener)

    async def _take(self, queues: Sequence[str]) -> PostgresOffer | float | None:
        token, turns = uuid4().hex, self._turns
        places = [(queue, priority) for queue in queues for priority in turns.order(queue)]
        try:
            found = await self._do((), lambda session: queueing.take(session, places, token))
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not run it.
            with contextlib.suppress(StoreClosed):
                self._begin((), lambda session: queueing.give_back(session, token))
            raise
        if not isinstance(found, tuple):
            return found
        place, thread_id, queue, priority, delivered = found
        turns.count(queue)
        return PostgresOffer(self, place, token, thread_id, queue, priority, delivered, self.settings.lease)

    async def extend_offer(self, offer: PostgresOffer) -> bool:
        """What `Offer.extend` does."""
        return await self._do((), lambda session: queueing.extend(session, offer.place, offer.token))

    async def end_offer(self, offer: PostgresOffer, delay: float | None, queue: str | None) -> bool:
        """What `Offer.back` does, and with a delay of None `Offer.done`."""
        names = (offer.thread_id,)  # behind what was posted about the thread
        return await self._do(
            names, lambda session: queueing.end_offer(session, offer.place, offer.token, delay, queue)
        )

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal at a thread; the run that holds it is shown it within two seconds."""
        form = entry_to_json(signal.body)
        return await self._do((thread_id,), lambda session: signals.send(session, thread_id, signal, form))

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread that were not forgotten."""
        return await self._do((thread_id,), lambda session: signals.signals_of(session, thread_id))

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget some of them."""
        return await self._do((claim.thread_id,), lambda session: signals.forget(session, claim, numbers))

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue."""
        return await self._do((), lambda session: queueing.depth(session, queue))

    async def queues(self) -> tuple[str, ...]:
        """The queues with something in them."""
        return await self._do((), queueing.queues)
