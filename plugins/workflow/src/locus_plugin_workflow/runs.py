"""Runs of workflows: how one begins, what follows the end of a step, and how a run ends.

A run begins with one write, its thread, which is dispatched once: the worker that takes it submits the first steps.
When a step is completed, the same worker submits what depends on it, before its own offer is ended. A step that is
submitted twice is one: after a crash, with two steps that end at the same moment, with any number of workers.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from locus.core.journal import Cancelled
from locus.journal import Effects, Signal
from locus_plugin_workflow.definition import StepDef
from locus_plugin_workflow.events import Observers, StepEvent, StepEventKind
from locus_plugin_workflow.journal import StepJournal
from locus_plugin_workflow.machine import StepState
from locus_plugin_workflow.records import RunRecord, StepRecord, first_entries, read_run, read_step, step_thread

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
        """Submit the first steps of a run, or cancel it where that was asked for.

        Raises:
            ThreadBusy: another worker writes to the run: try again later.
        """
        for signal in await self.store.signals(run_id):
            if isinstance(signal.body, Cancelled):
                await self._cancel(run_id, signal)
        run = await read_run(self.store, run_id)
        if run is not None and not run.state.is_final:
            for step in run.definition.roots:
                await self._submit(run, step, run.state.input)

    async def _cancel(self, run_id: str, signal: Signal) -> None:
        """Have the steps of a run fail, and the run."""
        run = await read_run(self.store, run_id)
        for step in () if run is None else run.definition.steps:
            # Under one id: a crash before the signal is forgotten sends none of these twice.
            await self.store.signal(step_thread(run_id, step.name), Signal(body=signal.body, id=signal.id))
        journal = await StepJournal.open(self.store, run_id, self.worker, self.effects)
        try:
            if not journal.state.is_final:
                reason = getattr(signal.body, "reason", "")
                error = f"cancelled: {reason}" if reason else "cancelled"
                await journal.move(evolve(journal.state, status="failed", error=error, reason="cancelled"))
                await self._tell("run.failed", journal.record, journal.state)
            await self.store.forget_signals(journal.host.claim, [signal.n])
        finally:
            await journal.release()

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
        await self._tell("run.completed" if status == "completed" else "run.failed", run, state)

    async def _tell(self, kind: StepEventKind, run: Any, state: StepState) -> None:
        await self.observers.emit(
            StepEvent(
                type=kind,
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
