"""What workflows need of a store: memory and SQLite keep it, and what is broken on purpose is found."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
from attrs import evolve

from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended, Claim, MemoryStore, Offer, QueueStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_workflow import RetryPolicy, StepState, TaskContext, iteration, machine
from locus_plugin_workflow.journal import StepJournal
from locus_plugin_workflow.runs import Runs
from locus_testkit import WorkflowContract


class TestInMemory(WorkflowContract):
    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[QueueStore]:
        yield MemoryStore()


class TestInMemoryWithWorkersThatStay(TestInMemory):
    """No iteration goes through the queue that need not: a worker stays with each step."""

    def make_worker(self, store: Any, **options: Any) -> Any:
        return super().make_worker(store, **{"stay": 0.5, **options})


@pytest.mark.proof
class TestInSqlite(WorkflowContract):
    #: A process dies at every write in the proofs, and at every fifth one in the default run.
    stride = 5 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1

    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "journal.db", sync="normal")


@pytest.mark.proof
class TestInSqliteWithWorkersThatStay(TestInSqlite):
    def make_worker(self, store: Any, **options: Any) -> Any:
        return super().make_worker(store, **{"stay": 0.5, **options})


# -- what is broken is found ------------------------------------------------------------------------

Patch: TypeAlias = pytest.MonkeyPatch


class Impatient(TestInMemory):
    __test__ = False
    patience = 1.5
    store: Callable[[], QueueStore] = MemoryStore

    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[QueueStore]:
        yield type(self).store()


class ForgetsCheckpoints(MemoryStore):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        kept = [b for b in bodies if not (isinstance(b, Outcome) and b.step_id.node == "checkpoint")]
        return await super().append(claim, kept) if kept else Appended.OK


class WithoutFencing(MemoryStore):
    """Takes what a worker writes whose claim is over."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        thread = self._threads[claim.thread_id]
        thread.bodies.extend(bodies)
        if not thread.writers or thread.writers[-1][1] != claim.token:
            thread.writers.append((thread.head - len(bodies) + 1, claim.token))
        return Appended.OK


class AcksFirst(MemoryStore):
    """Offers are over as soon as they are taken."""

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        found = await super().take(queues, worker, wait)
        if found is not None:
            await found.done()
        return found


def change_settle(patch: Patch, change: Callable[[StepState, StepState], StepState]) -> None:
    right = machine.settle

    def settle(state: StepState, *arguments: Any, **options: Any) -> StepState:
        return change(state, right(state, *arguments, **options))

    patch.setattr(iteration, "settle", settle)


def drop_the_output(patch: Patch) -> None:
    change_settle(patch, lambda before, after: evolve(after, input=before.input))


def forget_the_delay(patch: Patch) -> None:
    change_settle(patch, lambda before, after: evolve(after, not_before=None))


def ignore_the_policy(patch: Patch) -> None:
    right = machine.settle
    patch.setattr(
        iteration,
        "settle",
        lambda state, step, *rest, **options: right(state, evolve(step, retry=RetryPolicy()), *rest, **options),
    )


def count_from_one(patch: Patch) -> None:
    right = machine.settle

    def settle(state: StepState, step: Any, *rest: Any, **options: Any) -> StepState:
        config = step.config and evolve(step.config, max_iterations=step.config.max_iterations + 1)
        return right(state, evolve(step, config=config), *rest, **options)

    patch.setattr(iteration, "settle", settle)


def number_nothing(patch: Patch) -> None:
    patch.setattr(StepJournal, "_describe", lambda self, before, state: ("continue", "the same"))


def wait_for_one_parent(patch: Patch) -> None:
    right = Runs._outputs

    async def outputs(self: Runs, run: Any, names: Sequence[str]) -> Any:
        return await right(self, run, list(names)[:1])

    patch.setattr(Runs, "_outputs", outputs)


def leave_the_run(patch: Patch) -> None:
    async def reopen(self: Runs, run_id: str) -> None: ...

    patch.setattr(Runs, "reopen", reopen)


def begin_sleeps_anew(patch: Patch) -> None:
    def step_id(self: Any, node: str, name: str = "") -> StepId:
        return StepId(self.iteration, node, next(numbers), 0, name)

    numbers = count()
    patch.setattr(TaskContext, "_step_id", step_id)


def keep(patch: Patch) -> None:
    """Nothing is changed but the store."""


BROKEN: list[tuple[Callable[[Patch], None], type[MemoryStore], str]] = [
    (number_nothing, MemoryStore, "test_row_90_each_iteration_is_a_dispatch_of_its_own"),
    (keep, ForgetsCheckpoints, "test_row_91_checkpoint_is_found_as_it_was_saved"),
    (drop_the_output, MemoryStore, "test_row_92_output_of_an_iteration_is_the_input_of_the_next"),
    (forget_the_delay, MemoryStore, "test_row_92_delay_of_a_loop_survives_the_worker"),
    (keep, WithoutFencing, "test_row_89_ends_are_final_against_a_worker_that_comes_too_late"),
    (wait_for_one_parent, MemoryStore, "test_row_93_output_goes_downstream_once_with_two_parents_at_the_same_moment"),
    (ignore_the_policy, MemoryStore, "test_row_93_failed_step_fails_the_run"),
    (leave_the_run, MemoryStore, "test_failed_step_is_begun_again_when_a_person_asks"),
    (count_from_one, MemoryStore, "test_row_94_bound_is_exact_wherever_a_worker_dies"),
    (keep, AcksFirst, "test_row_94_bound_is_exact_wherever_a_worker_dies"),
    (keep, ForgetsCheckpoints, "test_row_95_checkpoint_is_found_wherever_a_worker_dies"),
    (begin_sleeps_anew, MemoryStore, "test_sleep_is_slept_once_wherever_a_worker_dies"),
    (keep, AcksFirst, "test_graph_of_steps_ends_the_same_wherever_a_worker_dies"),
]


@pytest.mark.parametrize(("change", "store", "law"), BROKEN)
def test_what_is_broken_on_purpose_fails_the_law(
    change: Callable[[Patch], None],
    store: type[MemoryStore],
    law: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(monkeypatch)
    monkeypatch.setattr(Impatient, "store", store)
    with pytest.raises((Exception, BaseExceptionGroup)):
        anyio.run(getattr(Impatient(), law), tmp_path)


def test_every_law_has_something_that_breaks_it() -> None:
    laws = {name for name in vars(WorkflowContract) if name.startswith("test_")}
    assert {law for _, _, law in BROKEN} == laws
