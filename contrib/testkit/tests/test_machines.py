"""The state machine passes for a store that is right, and finds one that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from locus.core.journal import Body
from locus.journal import Appended, Claim, MemoryStore
from locus_testkit.machines import JournalStoreMachine

pytestmark = pytest.mark.proof

_FEW = settings(
    max_examples=15,
    stateful_step_count=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
_ENOUGH_TO_FIND = settings(_FEW, max_examples=200, phases=[Phase.generate], print_blob=False)


class InMemory(JournalStoreMachine):
    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()


class Latest(JournalStoreMachine):
    backend = "trio"

    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore(history=False)


class ForgetsToFence(MemoryStore):
    """Whoever held the thread before can still write, as long as nobody holds it now."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        thread = self._threads.get(claim.thread_id)
        if thread is not None and thread.held is None:
            thread.bodies.extend(bodies)
            return Appended.OK
        return await super().append(claim, bodies)


class ForksByReference(MemoryStore):
    """A fork and its origin are one journal."""

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].bodies = self._threads[thread_id].bodies


class Broken(JournalStoreMachine):
    def make_store(self, folder: Path) -> ForgetsToFence:
        return ForgetsToFence()


class BrokenForks(JournalStoreMachine):
    def make_store(self, folder: Path) -> ForksByReference:
        return ForksByReference()


@pytest.mark.parametrize("machine", [InMemory, Latest])
def test_machine_finds_nothing_in_a_store_that_is_right(machine: type[JournalStoreMachine]) -> None:
    run_state_machine_as_test(machine, settings=_FEW)


@pytest.mark.parametrize("machine", [Broken, BrokenForks])
def test_machine_finds_a_store_that_is_wrong(machine: type[JournalStoreMachine]) -> None:
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=_ENOUGH_TO_FIND)
