"""The journals of a workflow: a thread for each run, and one for each of its steps, named ``<run>/<step>``.

What a step is, its `StepState`, lies in the metadata of the thread's state, and each end of an iteration is a
transition: the kernel's fold, its snapshots and its listings serve here as they do for agents. Between two transitions
come outcomes with reserved names: ``started`` (once for each worker that begins an attempt), ``checkpoint``, ``retry``
and what handlers do in ``ctx.step``. So an attempt that fails leaves the steps that its iteration had finished.

Everything is written under the claim of the thread: a worker that lost it is refused, whatever it still wants to write.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from time import time_ns
from typing import Any, Self

from attrs import evolve

from locus.core import thaw
from locus.core.events import Ending
from locus.core.journal import END, START, Body, Outcome, StepId
from locus.journal import Effects, JournalHost, JournalStore, Snapshot
from locus_plugin_workflow.errors import StepEnded
from locus_plugin_workflow.machine import StepState
from locus_plugin_workflow.records import (
    CHECKPOINT,
    CHECKPOINTED,
    INPUT,
    ITERATE,
    OUTPUT,
    RETRIED,
    STARTED,
    STATE,
    STEP,
    SUSPENDED,
    RunRecord,
    StepRecord,
    small_parts,
)

__all__ = ["StepJournal"]

#: Entries after which a snapshot is offered to a store that does not say.
_SNAPSHOT_EVERY = 32


class StepJournal:
    """The claimed thread of a step, or of a run: its state, and what is written to it.

    Args:
        host: the thread, taken.
        record: what it says.
    """

    def __init__(self, host: JournalHost, record: StepRecord | RunRecord) -> None:
        self.host, self.record, self.state = host, record, record.state
        #: How many there are of the iteration under way, and the newest one of the step.
        self._checkpoints = 0
        self._latest: tuple[Any] | None = None
        for step in host.steps:
            if isinstance(step, Outcome) and step.step_id.parent is None and step.step_id.node == CHECKPOINTED:
                self._checkpoints, self._latest = self._checkpoints + 1, (step.value,)
        # What was shown may be a state that the store remembers and has not written: so these are counted from 0.
        self._cached = 0 if host.claim.snapshot is None else host.claim.snapshot.at
        #: The number of the entry of the newest checkpoint, 0 without one.
        self._at: int = host.state.metadata.get(CHECKPOINT, 0)
        if self._latest is not None:
            found = [e.n for e in host.claim.entries if getattr(_step_id(e.body), "node", "") == CHECKPOINTED]
            self._at = found[-1]

    @classmethod
    async def open(cls, store: JournalStore, thread_id: str, worker: str, effects: Effects) -> Self:
        """Take a thread.

        Raises:
            ThreadBusy: a live worker holds it.
            StoreError: the store failed.
            JournalError: the thread is not one of a workflow.
        """
        host = await JournalHost.open(store, thread_id, worker, effects)
        try:
            return cls(host, (StepRecord if STEP in host.state.metadata else RunRecord).of(host))
        except BaseException:
            await host.release()
            raise

    async def begin(self) -> None:
        """Record that a worker begins the attempt."""
        now = self.host.effects.now()
        state = self.state.begin(now)
        step_id = StepId(state.iteration, STARTED, state.attempt, max(state.deliveries - 1, 0))
        while self.host.find_unchecked(step_id) is not None:
            step_id = step_id.at_attempt(step_id.attempt + 1)
        await self.host.settle(step_id, now)
        self.state = state

    async def save_checkpoint(self, data: Any) -> None:
        """Store a checkpoint, which replaces the one before.

        Raises:
            Fenced: another worker has the step.
            NotSerialisable: it has no JSON form.
        """
        step_id = StepId(self.state.iteration, CHECKPOINTED, self._checkpoints)
        await self.host.settle(step_id, data)
        self._checkpoints, self._latest, self._at = self._checkpoints + 1, (data,), self.host.head

    async def load_checkpoint(self) -> Any:
        """The newest checkpoint of the step, or None."""
        if self._latest is None and self._at:
            claim = self.host.claim
            known = next((entry for entry in claim.entries if entry.n == self._at), None)
            if known is None:
                known = (await self.host.store.read(claim.thread_id, self._at - 1))[0]
            self._latest = (known.body.value,)  # type: ignore[union-attr]  # the entry of a checkpoint
        return None if self._latest is None else thaw(self._latest[0])

    async def move(self, state: StepState, *, goes_on: bool = False) -> None:
        """Record the end of an attempt, and what follows, in one write.

        Args:
            state: the state after it.
            goes_on: this worker begins the next iteration, in the same write.

        Raises:
            Fenced: another worker has the step; nothing was written.
            StoreError: the store failed.
        """
        before, host = self.state, self.host
        if state.status == "queued" and before.status == "running" and state.iteration == before.iteration:
            made = {name: getattr(state, name) for name in ("status", "attempt", "not_before", "error", "reason")}
            await host.settle(StepId(state.iteration, RETRIED, state.attempt), made, when="next")
            await self._yield(state)
            return
        entries = {STATE: small_parts(state), CHECKPOINT: self._at}
        if state.input is not before.input:
            entries[INPUT] = state.input
        if state.output is not before.output:
            entries[OUTPUT] = state.output
        old = host.state
        new = old.with_entries(entries)
        why, detail = self._describe(before, state)
        if state.is_final:
            error = None if state.status == "completed" else StepEnded(state.error)
            ending = Ending(why, detail=detail, error=error)
            await host.commit(old, new, node=ITERATE, next_node=END, why=why, ending=ending, iteration=state.iteration)
            self.state = state
            return
        ending = Ending(why, detail=detail)
        await host.commit(
            old, new, node=ITERATE, next_node=ITERATE, why=why, ending=ending, iteration=state.iteration, when="next"
        )
        if goes_on:
            self.state, self._checkpoints = state, 0
            await self.begin()
        else:
            await self._yield(state)
        every = host.store.snapshot_every or _SNAPSHOT_EVERY
        if host.last_at // every > self._cached // every and host.last is not None:
            self._cached = host.last_at
            with contextlib.suppress(Exception):  # a cache: what keeps it from being written keeps the next entry, too
                await host.store.snapshot(host.claim, host.last_at, host.state, host.last)

    async def _yield(self, state: StepState) -> None:
        """Write what waits, and that the thread goes on when it is dispatched again."""
        await self.host.pause("yielded", due=state.not_before)
        self.state = state

    async def reopen(self, state: StepState) -> None:
        """Begin again after the end."""
        host = self.host
        old = host.state
        run_id = host.run_id
        host.begin(run_id)
        entries = {STATE: small_parts(state), OUTPUT: None, INPUT: state.input}
        new = old.with_entries(entries)
        await host.commit(old, new, node=START, next_node=ITERATE, iteration=state.iteration, when="next")
        await self._yield(state)

    async def suspend(self, until: datetime | None = None) -> None:
        """Leave an attempt in good order; it is entered again from its top, and not before that time."""
        step_id = StepId(self.state.iteration, SUSPENDED, self.state.attempt)
        while self.host.find_unchecked(step_id) is not None:
            step_id = step_id.at_attempt(step_id.attempt + 1)
        await self.host.settle(step_id, until, when="next")
        await self._yield(evolve(self.state, deliveries=0, not_before=until))

    def _describe(self, before: StepState, state: StepState) -> tuple[str, str]:
        """Why a transition was made, and its message id: transport may tell two by it, and nothing depends on it."""
        verdict = "continue" if state.status == "queued" else state.status
        step = self.record.definition.name if isinstance(self.record, StepRecord) else "run"
        return verdict, f"{self.record.run_id}.{step}.{verdict}.{before.iteration}.{time_ns()}"

    async def release(self) -> None:
        """Give the thread back, to be dispatched again when it is due."""
        host = self.host
        due = None if self.state.is_final else self.state.not_before
        keep = getattr(host.store, "keep_fold", None)
        if keep is not None and host.last is not None and host.stop_error is None and not self.state.is_final:
            keep(host.claim, Snapshot(host.last_at, host.state, host.last))
        await host.store.release(host.claim, due)


def _step_id(body: Body) -> StepId | None:
    return body.step_id if isinstance(body, Outcome) else None
