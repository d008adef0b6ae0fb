"""The journals of a workflow: a thread for each run, and one for each of its steps, named ``<run>/<step>``.

What a step is, its `StepState`, lies in the metadata of the thread's state, and each end of an iteration is a
transition: the kernel's fold, its snapshots and its listings serve here as they do for agents. Between two transitions
come outcomes with reserved names: ``started`` (once for each worker that begins an attempt), ``checkpoint``, ``retry``
and what handlers do in ``ctx.step``. So an attempt that fails leaves the steps that its iteration had finished.

Everything is written under the claim of the thread: a worker that lost it is refused, whatever it still wants to write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from time import time_ns
from typing import Any, Self

from attrs import evolve, frozen

from locus.core import thaw
from locus.core.errors import JournalError
from locus.core.events import Ending
from locus.core.journal import BLANK, END, START, Body, Outcome, Paused, StepId, Transition, advance
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.journal import Effects, JournalHost, JournalStore
from locus_plugin_workflow.definition import StepDef, WorkflowDef
from locus_plugin_workflow.errors import StepEnded
from locus_plugin_workflow.machine import StepState

__all__ = ["RunRecord", "StepJournal", "StepRecord", "first_entries", "read_run", "read_step", "step_thread"]

#: The metadata entries of a thread.
NAME, RUN, STEP, DEFINITION = "workflow", "workflow.run", "workflow.step", "workflow.definition"
STATE, INPUT, OUTPUT, CHECKPOINT, TRACE = (
    "workflow.state",
    "workflow.input",
    "workflow.output",
    "workflow.checkpoint",
    "workflow.traceparent",
)

#: The nodes of the outcomes between two transitions.
STARTED, CHECKPOINTED, RETRIED, SUSPENDED = "started", "checkpoint", "retry", "suspended"

#: The node that a thread goes on with.
_ITERATE = "iterate"

#: Entries after which a snapshot is offered to a store that does not say.
_SNAPSHOT_EVERY = 32

#: The parts of a step's state that are small; input and output are entries of their own.
_SMALL = ("status", "iteration", "attempt", "first_started", "not_before", "error", "reason")


def step_thread(run_id: str, step: str) -> str:
    """The thread of a step of a run."""
    return f"{run_id}/{step}"


def first_entries(
    now: datetime,
    *,
    run_id: str,
    workflow: str,
    definition: Mapping[str, Any],
    step: str = "",
    input: Any = None,  # noqa: A002  the word of the source
    traceparent: str = "",
) -> tuple[Body, ...]:
    """What the thread of a run, or of a step of it, begins with."""
    entries: dict[str, Any] = {NAME: workflow, RUN: run_id, DEFINITION: definition, INPUT: input, OUTPUT: None}
    if traceparent:
        entries[TRACE] = traceparent
    entries |= {STEP: step, CHECKPOINT: 0} if step else {}
    title = Message(Role.USER, f"{workflow}: {step}" if step else workflow)
    state = AgentState(run_id=run_id, agent_id=workflow, messages=(title,)).start_run(run_id=run_id, now=now)
    state = state.with_entries(entries | {STATE: _small(StepState())})
    change, _ = advance(BLANK, state, updated_at=now, active_seconds=0.0, iteration=0)
    start = Transition(run_id=run_id, node=START, next_node=_ITERATE, delta=change)
    return (start, Paused(run_id=run_id, segment=0, kind="yielded"))


def _small(state: StepState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in _SMALL}


def _fold(host: JournalHost) -> StepState:
    """The state of a step: of its last transition, and of what came since."""
    entries = host.state.metadata
    state = StepState(**entries[STATE], input=entries[INPUT], output=entries[OUTPUT])
    for step in host.steps:
        if isinstance(step, Outcome) and step.step_id.parent is None:
            if step.step_id.node == STARTED:
                state = state.begin(step.value)
            elif step.step_id.node == RETRIED:
                state = evolve(state, **step.value, deliveries=0, started=None)
            elif step.step_id.node == SUSPENDED:
                state = evolve(state, deliveries=0)
    return state


@frozen(kw_only=True)
class StepRecord:
    """What the journal says about a step.

    Args:
        run_id: the run of the workflow.
        workflow: its name.
        definition: the step as it was recorded when the run began.
        state: how it is.
        traceparent: W3C trace context of whatever started the run, or ``""``.
    """

    run_id: str
    workflow: str
    definition: StepDef
    state: StepState
    traceparent: str = ""

    @classmethod
    def of(cls, host: JournalHost) -> Self:
        """The record in a journal.

        Raises:
            JournalError: the thread is not one of a step.
        """
        entries = host.state.metadata
        if STEP not in entries or STATE not in entries:
            raise JournalError(f"thread {host.claim.thread_id!r} is not a step of a workflow")
        return cls(
            run_id=entries[RUN],
            workflow=entries[NAME],
            definition=StepDef.from_json(entries[DEFINITION]),
            state=_fold(host),
            traceparent=entries.get(TRACE, ""),
        )


@frozen(kw_only=True)
class RunRecord:
    """What the journal says about a run of a workflow.

    Args:
        run_id: the run.
        definition: the workflow as it was recorded when the run began.
        state: queued until the run ends, then completed or failed.
        traceparent: W3C trace context of whatever started the run, or ``""``.
    """

    run_id: str
    definition: WorkflowDef
    state: StepState
    traceparent: str = ""

    @classmethod
    def of(cls, host: JournalHost) -> Self:
        """The record in a journal.

        Raises:
            JournalError: the thread is not one of a run.
        """
        entries = host.state.metadata
        if NAME not in entries or STEP in entries:
            raise JournalError(f"thread {host.claim.thread_id!r} is not a run of a workflow")
        definition = WorkflowDef.from_json(thaw(entries[DEFINITION]))
        return cls(run_id=entries[RUN], definition=definition, state=_fold(host), traceparent=entries.get(TRACE, ""))


async def read_step(store: JournalStore, run_id: str, step: str) -> StepRecord | None:
    """What the journal says about a step, without taking its thread; None while it has not begun."""
    host = await JournalHost.peek(store, step_thread(run_id, step))
    return None if host is None else StepRecord.of(host)


async def read_run(store: JournalStore, run_id: str) -> RunRecord | None:
    """What the journal says about a run, without taking its thread; None for an unknown one."""
    host = await JournalHost.peek(store, run_id)
    return None if host is None else RunRecord.of(host)


class StepJournal:
    """The claimed thread of a step, or of a run: its state, and what is written to it.

    Args:
        host: the thread, taken.
        record: what it says.
    """

    def __init__(self, host: JournalHost, record: StepRecord | RunRecord) -> None:
        self.host, self.record, self.state = host, record, record.state
        self._checkpoints = 0
        self._latest: tuple[Any] | None = None
        for step in host.steps:
            if isinstance(step, Outcome) and step.step_id.parent is None and step.step_id.node == CHECKPOINTED:
                self._checkpoints, self._latest = self._checkpoints + 1, (step.value,)
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

    async def move(self, state: StepState) -> None:
        """Record the end of an attempt, and what follows, in one write.

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
        entries = {STATE: _small(state), CHECKPOINT: self._at}
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
            await host.commit(old, new, node=_ITERATE, next_node=END, why=why, ending=ending, iteration=state.iteration)
            self.state = state
            return
        ending = Ending(why, detail=detail)
        await host.commit(
            old, new, node=_ITERATE, next_node=_ITERATE, why=why, ending=ending, iteration=state.iteration, when="next"
        )
        await self._yield(state)
        every = host.store.snapshot_every or _SNAPSHOT_EVERY
        cached = 0 if host.claim.snapshot is None else host.claim.snapshot.at
        if host.head - cached >= every and host.last is not None:
            with contextlib.suppress(Exception):  # a cache: what keeps it from being written keeps the next entry, too
                await host.store.snapshot(host.claim, host.head - 1, host.state, host.last)

    async def _yield(self, state: StepState) -> None:
        """Write what waits, and that the thread goes on when it is dispatched again."""
        await self.host.pause("yielded")
        self.state = state

    async def reopen(self, state: StepState) -> None:
        """Begin again after the end."""
        host = self.host
        old = host.state
        run_id = host.run_id
        host.begin(run_id)
        entries = {STATE: _small(state), OUTPUT: None, INPUT: state.input}
        new = old.with_entries(entries)
        await host.commit(old, new, node=START, next_node=_ITERATE, iteration=state.iteration, when="next")
        await self._yield(state)

    async def suspend(self) -> None:
        """Leave an attempt in good order; it is entered again from its top."""
        step_id = StepId(self.state.iteration, SUSPENDED, self.state.attempt)
        while self.host.find_unchecked(step_id) is not None:
            step_id = step_id.at_attempt(step_id.attempt + 1)
        await self.host.settle(step_id, None, when="next")
        await self._yield(evolve(self.state, deliveries=0))

    def _describe(self, before: StepState, state: StepState) -> tuple[str, str]:
        """Why a transition was made, and its message id: transport may tell two by it, and nothing depends on it."""
        verdict = "continue" if state.status == "queued" else state.status
        step = self.record.definition.name if isinstance(self.record, StepRecord) else "run"
        return verdict, f"{self.record.run_id}.{step}.{verdict}.{before.iteration}.{time_ns()}"

    async def release(self) -> None:
        """Give the thread back, to be dispatched again when it is due."""
        host = self.host
        due = None if self.state.is_final else self.state.not_before
        await host.store.release(host.claim, due)


def _step_id(body: Body) -> StepId | None:
    return body.step_id if isinstance(body, Outcome) else None
