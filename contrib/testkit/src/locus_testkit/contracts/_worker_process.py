"""`WorkerProcess`: a `CrashingStore` whose store is a queue, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from locus.core.journal import Body
from locus.journal import Claim, Offer, QueueDepth, Signal
from locus_testkit.crashes import CrashingStore

__all__ = ["WorkerProcess"]


class WorkerProcess(CrashingStore):
    """A store as one process of workers sees it, until that dies: submits and ends of offers are writes, too.

    Args:
        at: in which of its writes it dies, from 1; None = never.
        stored: whether that write reaches the store.
        store: where journals and queues are.
    """

    def __init__(self, at: int | None = None, *, stored: bool = False, store: Any) -> None:
        super().__init__(at, stored=stored, store=store)
        self.offers: list[Offer] = []

    async def revive(self) -> None:
        """Let another process begin: what the dead one held is free, and what it was offered is offered again."""
        await super().revive()
        offers, self.offers = self.offers, []
        for offer in offers:
            await offer.back()

    async def take_over(self, thread_id: str) -> None:
        """Have a thread claimed by another worker, as when the lease of its holder has ended."""
        held = [claim for claim in self.claims if claim.thread_id == thread_id]
        await self.store.release(held[-1])
        await self.store.release(await self.store.claim(thread_id, "somebody else"))

    # -- the protocol of a queue --------------------------------------------------------------------

    @property
    def _queue(self) -> Any:
        return self.store

    async def submit(
        self,
        thread_id: str,
        bodies: Sequence[Body],
        *,
        queue: str,
        priority: int = 0,
        not_before: datetime | None = None,
    ) -> bool:
        """Begin a thread, or die."""

        def write() -> Awaitable[bool]:
            made: Awaitable[bool] = self._queue.submit(
                thread_id, bodies, queue=queue, priority=priority, not_before=not_before
            )
            return made

        return await self._write(write, bodies)

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer, the end of which is a write."""
        self._alive()
        found: Offer | None = await self._queue.take(queues, worker, wait)
        if found is None:
            return None
        self.offers.append(found)
        made: Offer = _Offered(self, found)
        return made

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal."""
        kept: bool = await self._queue.signal(thread_id, signal)
        return kept

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread."""
        found: tuple[Signal, ...] = await self._queue.signals(thread_id)
        return found

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget signals, or die."""
        return await self._write(lambda: self._queue.forget_signals(claim, numbers), ())

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue."""
        found: QueueDepth = await self._queue.depth(queue)
        return found

    async def queues(self) -> tuple[str, ...]:
        """The queues with something in them."""
        found: tuple[str, ...] = await self._queue.queues()
        return found


class _Offered:
    """An offer that a process may die in the middle of ending."""

    def __init__(self, process: WorkerProcess, offer: Offer) -> None:
        self._process, self._offer = process, offer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._offer, name)

    async def done(self) -> bool:
        """End it, or die."""
        return await self._end(self._offer.done)

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """Have the thread offered again, or die."""
        return await self._end(lambda: self._offer.back(delay, queue=queue))

    async def _end(self, write: Callable[[], Awaitable[bool]]) -> bool:
        ended = await self._process._write(write, ())  # noqa: SLF001  a part of it
        if self._offer in self._process.offers:
            self._process.offers.remove(self._offer)
        return ended
