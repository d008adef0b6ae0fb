"""What the threads of a workflow say: how one begins, and the records that are read from it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from attrs import evolve, frozen

from locus.core import thaw
from locus.core.errors import JournalError
from locus.core.journal import BLANK, START, Body, Outcome, Paused, Transition, advance
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.journal import JournalHost, JournalStore
from locus_plugin_workflow.definition import StepDef, WorkflowDef
from locus_plugin_workflow.machine import StepState

__all__ = ["RunRecord", "StepRecord", "first_entries", "read_run", "read_step", "small_parts", "step_thread"]

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
STARTED, CHECKPOINTED, RETRIED, SUSPENDED, SLEPT = "started", "checkpoint", "retry", "suspended", "sleep"

#: The node that a thread goes on with.
ITERATE = "iterate"

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
    state = state.with_entries(entries | {STATE: small_parts(StepState())})
    change, _ = advance(BLANK, state, updated_at=now, active_seconds=0.0, iteration=0)
    start = Transition(run_id=run_id, node=START, next_node=ITERATE, delta=change)
    return (start, Paused(run_id=run_id, segment=0, kind="yielded"))


def small_parts(state: StepState) -> dict[str, Any]:
    """The parts of a state that are small, as they are recorded."""
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
                state = evolve(state, deliveries=0, not_before=step.value)
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
