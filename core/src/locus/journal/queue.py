"""`QueueStore`: what a journal store may offer beside the rest, so that other processes run what one hands in.

The journal decides who may write to a thread; the queue only decides who tries. A worker takes an *offer*, claims the
thread, runs a segment of it, gives the thread back, and ends the offer last: with `Offer.done` where nothing is left
to do, with `Offer.back` where the run wants to go on. An offer whose worker has died is made again, to anybody. So a
crash between any two of these costs one more look at the thread, and nothing else.

Giving a thread back takes two writes: the thread is released, then its offer is ended. If the worker dies between them,
the thread is free and not ready, but its offer still counts: when the lease is over, the thread is offered again. A run
that sleeps has its time in the journal, and a worker that resumes it too early gives it back until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from locus.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from locus.core.journal import Body
    from locus.journal.signals import Signal
    from locus.journal.store import Claim

#: Which priority goes first in a queue, in this order and then again: 2 before 1 before 0, and none of them starves.
PRIORITIES = (2, 2, 1, 2, 2, 0, 2, 2, 1, 2, 2, 1)


def pinned_queue(agent: str, version: str) -> str:
    """The queue of runs that only this version of an agent goes on with."""
    return f"agent.{agent}@{version}"


class PriorityTurns:
    """Which priority goes first in each queue, for one who takes: `PRIORITIES`, counted in each queue by itself.

    Counted over all of them, a worker that takes from two in turn would meet every other place of the order in each.
    """

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[str, int] = {}

    def order(self, queue: str) -> tuple[int, ...]:
        """The three priorities, the one first whose turn it is."""
        return tuple(dict.fromkeys((PRIORITIES[self._made.get(queue, 0)], 2, 1, 0)))

    def count(self, queue: str) -> None:
        """An offer was made from a queue."""
        self._made[queue] = (self._made.get(queue, 0) + 1) % len(PRIORITIES)


@frozen(kw_only=True)
class QueueDepth:
    """What is in a queue.

    Args:
        ready: threads that the next worker would be offered.
        held: threads that a worker was offered and has not ended yet.
        sleeping: threads that wait for their time.
        oldest: since when the first of the ready ones has been ready.
        redelivered: the held and ready ones that were offered before, to a worker that has died or fallen silent.
    """

    ready: int = 0
    held: int = 0
    sleeping: int = 0
    oldest: datetime | None = None
    redelivered: int = 0


class Offer(Protocol):
    """A thread that a worker may run. It is not a claim: another worker may be at work on it.

    Each method returns False, and does nothing, where the offer is over: its lease has ended, and it was made to
    another worker since, or it was ended before, or the thread was deleted.
    """

    @property
    def thread_id(self) -> str:
        """The thread."""

    @property
    def queue(self) -> str:
        """The queue that it comes from."""

    @property
    def priority(self) -> int:
        """0, 1 or 2; 2 goes first."""

    @property
    def delivered(self) -> int:
        """How often it was made, this time included, since it was submitted, signalled or given back."""

    @property
    def lease(self) -> float:
        """Seconds, from when it was made or extended, after which it is made to another worker."""

    async def extend(self) -> bool:
        """Say that the worker lives; three times in a lease."""

    async def done(self) -> bool:
        """End it, last of all: nothing is left to do, until the thread is signalled.

        Where a signal came since the offer was made, the thread is offered again at once.
        """

    async def back(self, delay: float = 0.0, *, queue: str | None = None) -> bool:
        """End it, and have the thread offered again after so many seconds.

        Where a signal came since the offer was made, that is at once.

        Args:
            delay: seconds.
            queue: where it is to wait from now on; None = where it was.
        """


@runtime_checkable
class QueueStore(Protocol):
    """A `JournalStore` that also hands threads to workers. Every method may be called from any task."""

    async def submit(
        self,
        thread_id: str,
        bodies: Sequence[Body],
        *,
        queue: str,
        priority: int = 0,
        not_before: datetime | None = None,
    ) -> bool:
        """Begin a thread with these entries and put it into a queue, in one write.

        Args:
            thread_id: the new thread.
            bodies: its first entries.
            queue: any text.
            priority: 0, 1 or 2; 2 goes first, and 0 is not starved.
            not_before: when it is to be offered first; None = at once.

        Returns:
            False where the thread has entries already, or is held: nothing was written.

        Raises:
            NotSerialisable: one of the bodies has no JSON form.
            StoreError: the store failed.
        """

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        """The next offer of the first of these queues that has one ready, or None.

        A worker that takes from several queues in turn passes them in another order each time.

        Args:
            queues: their names.
            worker: what the worker calls itself.
            wait: seconds to wait for one; 0 = look once.
        """

    async def signal(self, thread_id: str, signal: Signal) -> bool:
        """Leave a signal at a thread, and have it offered at once if it was ever in a queue. Needs no claim.

        The next turn of a thread that was never in a queue puts it into its own, `Submitted.queue`.

        Returns:
            False where the thread does not exist, or was sent a signal of this id before; nothing was done.
        """

    async def signals(self, thread_id: str) -> tuple[Signal, ...]:
        """The signals of a thread that were not forgotten yet, in the order of their numbers."""

    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        """Forget the signals of these numbers: what they ask for is in the journal, or is of no use any more.

        Returns:
            False where the claim is over; nothing was forgotten.
        """

    async def depth(self, queue: str) -> QueueDepth:
        """What is in a queue; all zeros for an unknown one."""

    async def queues(self) -> tuple[str, ...]:
        """The names of the queues that have something ready, held or sleeping, sorted."""
