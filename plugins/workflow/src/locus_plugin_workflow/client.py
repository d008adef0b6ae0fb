"""For programs that use workflows: start a run, look at it, wait for it, cancel it, begin a failed step again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio
from attrs import field, frozen

from locus.core import EMPTY, has_all_of, thaw
from locus.core.errors import ConfigError, InputError, JournalError
from locus.core.journal import Cancelled, Submitted
from locus.core.messages import Message, Role
from locus.journal import QueueStore, Signal
from locus_plugin_workflow.definition import WorkflowDef
from locus_plugin_workflow.errors import StepEnded
from locus_plugin_workflow.machine import StepState
from locus_plugin_workflow.records import first_entries, read_run, read_step, step_thread
from locus_plugin_workflow.runs import RUNS

__all__ = ["WorkflowRun", "cancel", "retry", "show", "start", "wait"]


@frozen(kw_only=True)
class WorkflowRun:
    """A run of a workflow, as it was when it was looked at.

    Args:
        run_id: the run.
        workflow: its definition, as it was recorded when the run began.
        status: ``"running"``, ``"completed"`` or ``"failed"``.
        input: what it was started with.
        output: of a completed run: the output of its last step, or of several by their names.
        error: why it has failed.
        steps: the steps that have begun, by their names.
    """

    run_id: str
    workflow: WorkflowDef
    status: str
    input: Any = None
    output: Any = None
    error: str = ""
    steps: Mapping[str, StepState] = field(default=EMPTY)

    @property
    def has_ended(self) -> bool:
        """Whether it is completed or has failed."""
        return self.status != "running"

    def raise_for_failure(self) -> WorkflowRun:
        """The run itself.

        Raises:
            StepEnded: it has failed.
        """
        if self.status == "failed":
            raise StepEnded(f"run {self.run_id!r} of workflow {self.workflow.name!r} failed: {self.error}")
        return self


async def start(
    store: QueueStore,
    workflow: WorkflowDef,
    input: Any = None,  # noqa: A002  the word of the source
    *,
    run_id: str | None = None,
    traceparent: str = "",
    not_before: datetime | None = None,
) -> str:
    """Begin a run, in one write; workers do the rest.

    Args:
        store: where the run is kept.
        workflow: what `Workflow.build` gave; it is recorded, so a change of it does not change this run.
        input: of the first steps, data with a JSON form.
        run_id: your name for the run: started twice under one name, it is one run. None = a new one.
        traceparent: W3C trace context, which the spans of all iterations get for a parent.
        not_before: when it is to begin; None = at once.

    Returns:
        The id of the run.

    Raises:
        InputError: another workflow has a run of this id, or the id is empty or has a ``/``.
        NotSerialisable: the input has no JSON form.
        ConfigError: the store keeps no queues.
        StoreError: the store failed.
    """
    check_store(store)
    name = str(uuid4()) if run_id is None else run_id
    if not isinstance(name, str) or not name or "/" in name:
        raise InputError(f"run_id: expected a text without '/', got {name!r}")
    bodies = first_entries(
        datetime.now(UTC),
        run_id=name,
        workflow=workflow.name,
        definition=workflow.to_json(),
        input=input,
        traceparent=traceparent,
    )
    if not await store.submit(name, bodies, queue=RUNS, not_before=not_before):
        known = await read_run(store, name)  # type: ignore[arg-type]  # a queue store is a journal store
        if known is None or known.definition.name != workflow.name:
            raise InputError(
                f"thread {name!r} exists, and is not a run of workflow {workflow.name!r}; choose another id"
            )
    return name


async def show(store: Any, run_id: str) -> WorkflowRun:
    """How a run is.

    Raises:
        JournalError: the run does not exist.
        StoreError: the store failed.
    """
    record = await read_run(store, run_id)
    if record is None:
        raise JournalError(f"run {run_id!r} does not exist")
    steps: dict[str, StepState] = {}
    for step in record.definition.steps:
        found = await read_step(store, run_id, step.name)
        if found is not None:
            steps[step.name] = found.state
    state = record.state
    return WorkflowRun(
        run_id=run_id,
        workflow=record.definition,
        status=state.status if state.is_final else "running",
        input=thaw(state.input),
        output=thaw(state.output) if state.status == "completed" else None,
        error=state.error,
        steps=steps,
    )


async def wait(store: Any, run_id: str, *, timeout: float | None = None, poll: float = 0.1) -> WorkflowRun:  # noqa: ASYNC109
    """Wait until a run has ended, whichever process works on it.

    Args:
        store: where it is kept.
        run_id: the run.
        timeout: seconds to wait at most; None = as long as it takes.
        poll: seconds between two looks.

    Raises:
        TimeoutError: it has not ended by then.
        JournalError: the run does not exist.
    """
    with anyio.fail_after(math.inf if timeout is None else timeout):
        while True:
            record = await read_run(store, run_id)
            if record is None:
                raise JournalError(f"run {run_id!r} does not exist")
            if record.state.is_final:
                return await show(store, run_id)
            await anyio.sleep(poll)


async def retry(store: Any, run_id: str, step: str) -> None:
    """Have a failed step begin again, at the iteration that failed, with its input and its checkpoint.

    The next worker does it, and the run goes on. A step that a bound has ended gets that bound anew.

    Raises:
        JournalError: the run does not exist, or the step has not failed.
    """
    run = await show(store, run_id)
    state = run.steps.get(step)
    if state is None or state.status != "failed":
        have = ", ".join(sorted(name for name, each in run.steps.items() if each.status == "failed")) or "none"
        raise JournalError(f"step {step!r} of run {run_id!r} has not failed; failed steps: {have}")
    body = Submitted(run_id=run_id, prompt=Message(Role.USER, "retry"))
    await store.signal(step_thread(run_id, step), Signal(body=body, id=f"retry:{uuid4()}"))


async def cancel(store: Any, run_id: str, reason: str = "") -> bool:
    """Have a run fail, and its steps that have not ended; a step that is under way fails when its iteration is over.

    The next worker does it.

    Returns:
        False where the run has ended already.

    Raises:
        JournalError: the run does not exist.
    """
    if (await show(store, run_id)).has_ended:
        return False
    body = Cancelled(run_id=run_id, reason=reason)
    await store.signal(run_id, Signal(body=body, id=f"cancel:{uuid4()}"))
    return True


def check_store(store: Any) -> None:
    """Insist on a store that keeps queues.

    Raises:
        ConfigError: it does not.
    """
    if not has_all_of(store, QueueStore):
        raise ConfigError(
            f"{type(store).__name__} keeps no queues; use one that does, such as MemoryStore() or sqlite:"
        )
