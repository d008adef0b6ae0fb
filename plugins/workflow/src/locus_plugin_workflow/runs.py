"""Runs of workflows: how one begins, what follows the end of a step, and how a run ends.

A run begins with one write, its thread, which is dispatched once: the worker that takes it submits the first steps.
When a step is completed, the same worker submits what depends on it, before its own offer is ended. A step that is
submitted twice is one: after a crash, with two steps that end at the same moment, with any number of workers.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from locus.journal import Effects
from locus_plugin_workflow.definition import StepDef
from locus_plugin_workflow.events import Observers, StepEvent
from locus_plugin_workflow.journal import (
    RunRecord,
    StepJournal,
    StepRecord,
    first_entries,
    read_run,
    read_step,
    step_thread,
)
from locus_plugin_workflow.machine import StepState

__all__ = ["RUNS", "Runs", "queue_of"]

#: The queue of runs that were started.
RUNS = "workflow"


def queue_of(handler: str) -> str:
    """The queue of the steps that a handler runs: a worker takes only what it can run."""
    return f"workflow.{handler}"


@frozen(kw_only=True)
class Runs:
    """What a worker does for runs.

    Args:
        store: where threads are kept.
        worker: the worker's name.
        effects: its source of time.
        observers: what events are sent to.
    """

    store: Any
    worker: str
    effects: Effects
    observers: Observers

    async def begin(self, run_id: str) -> None:
        """Submit the first steps of a run."""
        run = await read_run(self.store, run_id)
        if run is not None and not run.state.is_final:
            for step in run.definition.roots:
                await self._submit(run, step, run.state.input)

    async def follow(self, step: StepRecord, state: StepState) -> None:
        """Do what follows the end of a step.

        Raises:
            ThreadBusy: another worker writes the end of the run: look again later.
        """
        run = await read_run(self.store, step.run_id)
        if run is None or run.state.is_final:
            return
        if state.status == "failed":
            error = f"step {step.definition.name!r} failed: {state.error}"
            await self._end(run, evolve(state, error=error))
            return
        for follower in run.definition.downstream(step.definition.name):
            outputs = await self._outputs(run, follower.depends_on)
            if outputs is not None:
                await self._submit(run, follower, _join_outputs(outputs))
        sinks = [sink.name for sink in run.definition.sinks]
        if step.definition.name in sinks:
            outputs = await self._outputs(run, sinks)
            if outputs is not None:
                await self._end(run, StepState(status="completed", output=_join_outputs(outputs)))

    async def reopen(self, run_id: str) -> None:
        """Have a run that has failed go on, because one of its steps is begun again.

        Steps that were completed meanwhile are followed by what depends on them.

        Raises:
            ThreadBusy: another worker writes to the run: try again later.
        """
        journal = await StepJournal.open(self.store, run_id, self.worker, self.effects)
        try:
            run = journal.record
            if journal.state.status == "failed":
                await journal.reopen(StepState(input=journal.state.input))
        finally:
            await journal.release()
        assert isinstance(run, RunRecord)
        for step in run.definition.steps:
            outputs = await self._outputs(run, step.depends_on)
            if outputs:
                await self._submit(run, step, _join_outputs(outputs))

    async def _outputs(self, run: RunRecord, names: Any) -> dict[str, Any] | None:
        """The outputs of some steps, or None while not all of them are completed."""
        found: dict[str, Any] = {}
        for name in names:
            record = await read_step(self.store, run.run_id, name)
            if record is None or record.state.status != "completed":
                return None
            found[name] = record.state.output
        return found

    async def _submit(self, run: RunRecord, step: StepDef, given: Any) -> None:
        now = self.effects.now()
        bodies = first_entries(
            now,
            run_id=run.run_id,
            workflow=run.definition.name,
            definition=step.to_json(),
            step=step.name,
            input=given,
            traceparent=run.traceparent,
        )
        if await self.store.submit(step_thread(run.run_id, step.name), bodies, queue=queue_of(step.handler)):
            await self.observers.emit(
                StepEvent(type="step.queued", run_id=run.run_id, workflow=run.definition.name, step=step.name, at=now)
            )

    async def _end(self, run: RunRecord, end: StepState) -> None:
        """Write the end of a run, once."""
        journal = await StepJournal.open(self.store, run.run_id, self.worker, self.effects)
        try:
            if journal.state.is_final:
                return
            status = end.status
            state = evolve(journal.state, status=status, output=end.output, error=end.error, reason=end.reason)
            await journal.move(state)
        finally:
            await journal.release()
        await self.observers.emit(
            StepEvent(
                type="run.completed" if status == "completed" else "run.failed",
                run_id=run.run_id,
                workflow=run.definition.name,
                at=self.effects.now(),
                output=state.output,
                error=state.error,
                reason=state.reason,
            )
        )


def _join_outputs(outputs: dict[str, Any]) -> Any:
    """The output of one step, or those of several by their names."""
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs
