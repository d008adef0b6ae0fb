"""The state machine of queues passes for a store that is right, and finds one that is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from locus.journal import MemoryStore, PriorityTurns
from locus.journal.memory_queue import MemoryOffer, Places
from locus_testkit import FakeClock
from locus_testkit.queues import QueueStoreMachine

pytestmark = pytest.mark.proof

_IS_QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"

_SOME = settings(
    max_examples=20 if _IS_QUICK else 500,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
_ENOUGH_TO_FIND = settings(_SOME, max_examples=300, stateful_step_count=40, phases=[Phase.generate], print_blob=False)


class InMemory(QueueStoreMachine):
    def make_store(self, folder: Path, clock: FakeClock) -> MemoryStore:
        return MemoryStore(clock=clock)


class OnTrio(InMemory):
    backend = "trio"


class _Broken(QueueStoreMachine):
    """A memory store with other places."""

    places: type[Places]

    def make_store(self, folder: Path, clock: FakeClock) -> MemoryStore:
        store = MemoryStore(clock=clock)
        store._places = self.places(clock.now, 30.0)
        return store


class _EndsLost(Places):
    """A worker that lost its offer can still end it."""

    def move(self, offer: MemoryOffer, due: datetime | None, queue: str | None = None, *, ends: bool = True) -> bool:
        place = self._places.get(offer.thread_id)
        offer.number = offer.number if place is None or not place.offer else place.offer
        return super().move(offer, due, queue, ends=ends)


class _Forgets(Places):
    """What a worker was offered that died is offered to nobody else."""

    def take(self, queues: Any) -> MemoryOffer | None:
        found = super().take(queues)
        if found is not None:
            self._put(found.thread_id, self._places[found.thread_id], None)
        return found


class _OffersTwice(Places):
    """A thread that was offered is ready still."""

    def take(self, queues: Any) -> MemoryOffer | None:
        found = super().take(queues)
        if found is not None:
            self._put(found.thread_id, self._places[found.thread_id], self.now())
        return found


class _Deaf(Places):
    """A signal to a thread that is offered is forgotten when the offer ends."""

    def move(self, offer: MemoryOffer, due: datetime | None, queue: str | None = None, *, ends: bool = True) -> bool:
        place = self._places.get(offer.thread_id)
        if place is not None and ends:
            place.is_signalled = False
        return super().move(offer, due, queue, ends=ends)


class _FirstOnly(PriorityTurns):
    def count(self, queue: str) -> None:
        """The turns do not go on."""


class _Starves(Places):
    """The highest priority goes first, always."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._turns = _FirstOnly()


@pytest.mark.parametrize("machine", [InMemory, OnTrio])
def test_machine_finds_nothing_in_a_queue_that_is_right(machine: type[QueueStoreMachine]) -> None:
    run_state_machine_as_test(machine, settings=_SOME)


@pytest.mark.parametrize("kind", [_EndsLost, _Forgets, _OffersTwice])
def test_machine_finds_a_queue_that_is_wrong(kind: type[Places]) -> None:
    machine = type(f"Broken{kind.__name__}", (_Broken,), {"places": kind})
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=_ENOUGH_TO_FIND)


def take_and_give_back(machine: Any) -> None:
    """One thread of low priority among those of a high one, all of which come back at once."""
    for n in range(5):
        machine.submit(thread="abcde"[n], queue="p", priority=0 if n == 0 else 2, delay=0.0)
    for _ in range(36):
        machine.take(queues=("p",))
        taken = machine._taken[-1]
        assert machine._do(taken.offer.back) is True
        machine._end(machine._expected[taken.thread], machine._now)


def signal_and_end(machine: Any) -> None:
    """A signal to a thread that is offered, whose offer then ends."""
    machine.submit(thread="a", queue="p", priority=0, delay=0.0)
    machine.take(queues=("p",))
    machine.signal(thread="a", name="one")
    assert machine._do(machine._taken[-1].offer.done) is True
    machine._end(machine._expected["a"], None)
    machine.depth_adds_up()


@pytest.mark.parametrize(("play", "kind"), [(take_and_give_back, _Starves), (signal_and_end, _Deaf)])
def test_machine_finds_what_takes_a_certain_order(play: Callable[[Any], None], kind: type[Places]) -> None:
    right, wrong = InMemory(), type("Wrong", (_Broken,), {"places": kind})()
    try:
        play(right)
        with pytest.raises(AssertionError):
            play(wrong)
    finally:
        right.teardown()
        wrong.teardown()
