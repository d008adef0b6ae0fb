"""A state machine for queues: any order of submits, takes, ends of offers, signals, silent workers and restarts.

What is right is decided by a model that is too simple to be wrong: for each thread where it waits and from when, and
the number of the offer that counts.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from anyio.from_thread import start_blocking_portal
from attrs import define
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import DataObject

from locus.core.journal import Cancelled, Submitted
from locus.core.messages import Message, Role
from locus.journal import Offer, QueueDepth, QueueStore, Signal
from locus_testkit.clock import FakeClock

__all__ = ["QueueStoreMachine"]

_THREADS = st.sampled_from(("a", "b", "c"))
_QUEUES = ("p", "q")
_ORDERS = st.sampled_from((("p",), ("q",), ("p", "q"), ("q", "p")))

#: Seconds, none of which ends at a lease: whether an offer is over in that very moment is for a store to say.
_SPANS = st.sampled_from((0.0, 7.0, 23.0, 61.0))

#: Among so many offers of a queue in a row, a priority that is ready has its turn.
_FAIR = 12


@define
class _Place:
    """Where a thread must be."""

    queue: str
    priority: int
    due: float | None
    offer: int = 0
    delivered: int = 0
    is_signalled: bool = False


@define
class _Taken:
    """An offer that a worker has, or has had."""

    thread: str
    number: int
    offer: Offer


class QueueStoreMachine(RuleBasedStateMachine):
    """Subclass it, say how a store is made, and let pytest find its ``TestCase``.

    Example::

        class Machine(QueueStoreMachine):
            def make_store(self, folder, clock):
                return MemoryStore(clock=clock)

        TestMyQueue = Machine.TestCase
    """

    #: Whether a place that is opened again has what it had.
    persistent: ClassVar[bool] = False
    #: Where the store runs.
    backend: ClassVar[str] = "asyncio"

    def make_store(self, folder: Path, clock: FakeClock) -> Any:
        """A store with queues, or what awaits one, whose time is that of the clock."""
        raise NotImplementedError(f"{type(self).__name__} needs make_store(self, folder, clock), which gives a store")

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._portal = self._stack.enter_context(start_blocking_portal(self.backend))
        self._clock, self._expected = FakeClock(), dict[str, _Place]()
        self._taken: list[_Taken] = []
        self._sent: set[tuple[str, str]] = set()
        self._offers = 0
        #: Queue and priority -> how many offers of the queue were made while one of the priority was ready.
        self._passed: dict[tuple[str, int], int] = {}
        try:
            self._store: Any = self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> QueueStore:
        async def make() -> Any:
            made = self.make_store(self._folder, self._clock)
            return await made if inspect.isawaitable(made) else made

        found: QueueStore = self._portal.call(make)
        return found

    def _do(self, method: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        async def call() -> Any:
            return await method(*arguments, **options)

        return self._portal.call(call)

    def _close(self) -> None:
        close = getattr(self._store, "aclose", None)
        if close is not None:
            self._portal.call(close)

    def teardown(self) -> None:
        """Close the store and forget it."""
        self._close()
        self._stack.close()

    @property
    def _now(self) -> float:
        return self._clock.monotonic()

    def _ready(self, queue: str) -> list[str]:
        """The threads of a queue that may be offered."""
        return [
            thread
            for thread, place in self._expected.items()
            if place.queue == queue and place.due is not None and place.due <= self._now
        ]

    # -- what may happen --------------------------------------------------------------------------

    @rule(thread=_THREADS, queue=st.sampled_from(_QUEUES), priority=st.sampled_from((0, 1, 2)), delay=_SPANS)
    def submit(self, thread: str, queue: str, priority: int, delay: float) -> None:
        """Hand a thread in; one that is there stays as it is."""
        turn = Submitted(run_id=f"run of {thread}", prompt=Message(Role.USER, "Do it."), queue=queue)
        due = None
        if delay:
            due = self._later(delay)
        made = self._do(self._store.submit, thread, [turn], queue=queue, priority=priority, not_before=due)
        assert made is (thread not in self._expected)
        if made:
            self._expected[thread] = _Place(queue, priority, self._now + delay)

    def _later(self, delay: float) -> Any:
        clock = FakeClock(self._clock.now())
        clock.advance(delay)
        return clock.now()

    @rule(queues=_ORDERS)
    def take(self, queues: tuple[str, ...]) -> None:
        """Take an offer: of the first queue with something ready, and of nothing that another worker holds."""
        ready = {queue: self._ready(queue) for queue in queues}
        first = next((queue for queue in queues if ready[queue]), None)
        offer: Offer | None = self._do(self._store.take, queues, "worker")
        assert (offer is None) is (first is None)
        if offer is None or first is None:
            return
        assert offer.thread_id in ready[first]
        place = self._expected[offer.thread_id]
        self._offers += 1
        self._taken.append(_Taken(offer.thread_id, self._offers, offer))
        place.offer, place.is_signalled, place.delivered = self._offers, False, place.delivered + 1
        place.due = self._now + offer.lease
        assert (offer.queue, offer.priority, offer.delivered) == (place.queue, place.priority, place.delivered)
        for priority in (0, 1, 2):
            waits = any(self._expected[thread].priority == priority for thread in ready[first])
            served = offer.priority == priority or not waits
            self._passed[first, priority] = 0 if served else self._passed.get((first, priority), 0) + 1
            assert self._passed[first, priority] < _FAIR

    @rule(seconds=st.sampled_from((1.0, 13.0, 29.0, 67.0)))
    def pass_time(self, seconds: float) -> None:
        """Time passes; workers that say nothing meanwhile lose what they have."""
        self._clock.advance(seconds)

    @precondition(lambda self: self._taken)
    @rule(data=st.data())
    def extend(self, data: DataObject) -> None:
        """A worker says that it lives."""
        taken, place = self._draw(data)
        assert self._do(taken.offer.extend) is (place is not None)
        if place is not None:
            place.due = self._now + taken.offer.lease

    @precondition(lambda self: self._taken)
    @rule(data=st.data())
    def done(self, data: DataObject) -> None:
        """A worker has nothing left to do."""
        taken, place = self._draw(data)
        assert self._do(taken.offer.done) is (place is not None)
        self._end(place, None)

    @precondition(lambda self: self._taken)
    @rule(data=st.data(), delay=_SPANS, queue=st.sampled_from((None, *_QUEUES)))
    def back(self, data: DataObject, delay: float, queue: str | None) -> None:
        """A worker gives a thread back."""
        taken, place = self._draw(data)
        assert self._do(taken.offer.back, delay, queue=queue) is (place is not None)
        self._end(place, self._now + delay)
        if place is not None and queue is not None:
            place.queue = queue

    def _draw(self, data: DataObject) -> tuple[_Taken, _Place | None]:
        """An offer, and the place of its thread while that offer counts."""
        taken = data.draw(st.sampled_from(self._taken))
        place = self._expected.get(taken.thread)
        return taken, place if place is not None and place.offer == taken.number else None

    def _end(self, place: _Place | None, due: float | None) -> None:
        if place is not None:
            place.offer, place.delivered = 0, 0
            place.due = self._now if place.is_signalled else due

    @rule(thread=_THREADS, name=st.sampled_from(("one", "two", "three")))
    def signal(self, thread: str, name: str) -> None:
        """Leave a signal; a thread that no worker holds is ready at once."""
        place = self._expected.get(thread)
        is_new = place is not None and (thread, name) not in self._sent
        body = Cancelled(run_id="another", reason=name)
        assert self._do(self._store.signal, thread, Signal(body=body, id=name)) is is_new
        if place is None or not is_new:
            return
        self._sent.add((thread, name))
        place.is_signalled = True
        if not (place.offer and place.due is not None and place.due > self._now):
            place.due = self._now if place.due is None else min(place.due, self._now)

    @rule(thread=_THREADS)
    def delete(self, thread: str) -> None:
        """Delete a thread: it is not offered any more, and its name may be submitted again."""
        assert self._do(self._store.delete, thread) is (thread in self._expected)
        self._expected.pop(thread, None)
        self._sent = {(other, name) for other, name in self._sent if other != thread}

    @precondition(lambda self: self.persistent)
    @rule()
    def restart(self) -> None:
        """A worker dies with all that it has, and another process opens the place."""
        self._close()
        self._store, self._taken, self._passed = self._open(), [], {}

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def depth_adds_up(self) -> None:
        """Each thread that is not done is in one queue: ready, held or sleeping."""
        waiting = [place for place in self._expected.values() if place.due is not None]
        assert self._do(self._store.queues) == tuple(sorted({place.queue for place in waiting}))
        for queue in _QUEUES:
            found: QueueDepth = self._do(self._store.depth, queue)
            places = [(place, place.due or 0.0) for place in waiting if place.queue == queue]
            late = [place for place, due in places if due > self._now]
            held = sum(place.offer > 0 for place in late)
            assert found.ready == len(places) - len(late) == len(self._ready(queue))
            assert (found.held, found.sleeping) == (held, len(late) - held)
            assert (found.oldest is None) is (found.ready == 0)
            assert found.redelivered == sum(place.delivered > (due > self._now) for place, due in places)
