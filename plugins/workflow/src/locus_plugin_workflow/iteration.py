"""One dispatch of a step: from the claim of its thread to the one write that says how the iteration ended.

::

    claim -> started -> handler -> verdict, next input and due time in one write -> release -> the offer is ended

A worker that stays with the step (`Stay`) writes that the next iteration is started with the verdict, and enters the
handler again in place of the release.

The offer is ended by the worker, last. A crash before the write repeats the attempt; a crash behind it finds, on the
way back, a step that is further than the offer, and goes on from there. Nothing is counted outside of the journal.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import anyio
import anyio.lowlevel
from attrs import frozen

from locus.core.errors import Fenced, JournalError, NotSerialisable, StoreError
from locus.core.journal import Cancelled, Submitted
from locus.journal import Effects
from locus_plugin_workflow.agents import AgentStep
from locus_plugin_workflow.context import SyncTaskContext, TaskContext
from locus_plugin_workflow.errors import NoVerdict
from locus_plugin_workflow.events import Observers, StepEvent, StepEventKind
from locus_plugin_workflow.handlers import enter_handler, is_async
from locus_plugin_workflow.journal import StepJournal
from locus_plugin_workflow.machine import Reason, StepState, deadline, expire, give_up, over_time, settle
from locus_plugin_workflow.payload import TaskPayload
from locus_plugin_workflow.records import StepRecord
from locus_plugin_workflow.sleeping import SHORT_SLEEP, Suspended
from locus_plugin_workflow.staying import STAY, Stay
from locus_plugin_workflow.verdicts import Continue, Fail, Verdict

__all__ = ["Iteration"]

_LOG = logging.getLogger("locus.workflow")

#: Seconds in which a step is given back by a worker that is cancelled.
_SHIELD = 5.0


def _stays() -> bool:
    return False


@frozen(kw_only=True)
class Iteration:
    """What a worker needs to run iterations.

    Args:
        store: where threads are kept.
        worker: the worker's name.
        effects: its source of time.
        find: the handler of a name.
        observers: what events are sent to.
        reopen_run: has the run of a step go on that is begun again.
        max_attempts: after so many workers that died in one attempt the step fails.
        short_sleep: seconds up to which a sleep of a handler keeps the worker.
        stay: seconds for which the worker stays with a step; None: with an agent for `STAY`, with no other.
        is_leaving: whether the worker takes no more.
        luck: gives a number from 0 to 1 for the jitter of a retry.
    """

    store: Any
    worker: str
    effects: Effects
    find: Callable[[str], Any]
    observers: Observers
    reopen_run: Callable[[str], Awaitable[None]]
    max_attempts: int = 5
    short_sleep: float = SHORT_SLEEP
    stay: float | None = None
    is_leaving: Callable[[], bool] = _stays
    luck: Callable[[], float] = random.random

    async def run(self, thread_id: str, cut: anyio.CancelScope) -> tuple[StepRecord, StepState, float | None]:
        """Run what is due of a step.

        Args:
            thread_id: its thread.
            cut: cancelled when the worker finds out that the step is another one's.

        Returns:
            The step, how it is now, and after how many seconds it is to be dispatched again: None when it has ended.

        Raises:
            ThreadBusy: another worker has it.
            Fenced: another worker took it over meanwhile.
            StoreError: the store failed.
        """
        journal = await StepJournal.open(self.store, thread_id, self.worker, self.effects)
        record = journal.record
        assert isinstance(record, StepRecord)
        stay = Stay(STAY if self.stay is None else self.stay, self.is_leaving)
        watch = getattr(journal.host.claim, "watch", None)
        try:
            if watch is not None:
                watch.on_signal = watch.on_lost = stay.end
                if watch.is_lost:
                    cut.cancel()
            await self._take_signals(journal, record)
            if not journal.state.is_final:
                await self._advance_or_give_up(journal, record, stay)
            await stay.leave()
            state = journal.state
        except anyio.get_cancelled_exc_class():
            # This worker leaves, or lost the step: so this is not counted as a death.
            with anyio.move_on_after(_SHIELD, shield=True), contextlib.suppress(JournalError):
                if journal.state.status == "running" and journal.state.not_before is None:
                    await journal.suspend()
            raise
        finally:
            with anyio.move_on_after(_SHIELD, shield=True), contextlib.suppress(JournalError):
                await stay.abandon()
            with anyio.move_on_after(_SHIELD, shield=True), contextlib.suppress(JournalError):
                await journal.release()
        if state.is_final:
            return record, state, None
        left = 0.0 if state.not_before is None else (state.not_before - self.effects.now()).total_seconds()
        return record, state, max(left, 0.0)

    async def _take_signals(self, journal: StepJournal, record: StepRecord) -> None:
        """Do what was asked for from outside: cancel, or begin a step again that has failed."""
        signals = journal.host.claim.signals
        for signal in signals:
            state = journal.state
            if isinstance(signal.body, Cancelled) and not state.is_final:
                if state.status == "queued":
                    await journal.begin()
                reason = f"cancelled: {signal.body.reason}" if signal.body.reason else "cancelled"
                end = Fail(reason, is_permanent=True)
                cancelled = settle(journal.state, record.definition, end, self._now, reason="cancelled")
                await self._move(journal, record, cancelled)
            elif isinstance(signal.body, Submitted) and state.status == "failed":
                await self.reopen_run(record.run_id)
                await journal.reopen(state.reopen())
                await self._tell(record, journal.state, "step.queued")
        if signals:
            await self.store.forget_signals(journal.host.claim, [signal.n for signal in signals])

    @property
    def _now(self) -> datetime:
        return self.effects.now()

    async def _advance_or_give_up(self, journal: StepJournal, record: StepRecord, stay: Stay) -> None:
        """Run what is due; a step that cannot be computed fails, for it would end each worker that takes it."""
        try:
            await self._advance(journal, record, stay)
        except ArithmeticError as e:  # of the definition on record: what a handler raises does not come here
            step = record.definition.name
            _LOG.exception("worker %s cannot compute step %r of run %s", self.worker, step, record.run_id)
            error = f"step {step!r} cannot be computed: {type(e).__name__}: {e}"
            await self._move(journal, record, give_up(journal.state, error))

    async def _advance(self, journal: StepJournal, record: StepRecord, stay: Stay) -> None:
        """Run the attempt that is due, and the iterations behind it for which the worker stays."""
        step, state, now = record.definition, journal.state, self._now
        over = expire(state, step, now, self.luck())
        if over is not state:
            await self._move(journal, record, over)
            return
        if state.status == "running" and state.deliveries >= self.max_attempts:
            error = f"{state.deliveries} workers in a row died or fell silent in iteration {state.iteration}"
            death = Fail(error, is_permanent=True)
            await self._move(journal, record, settle(state, step, death, now, reason="dead_letter"))
            return
        if state.not_before is not None and state.not_before > now:
            return
        was_lost = state.status == "running" and state.deliveries > 0
        await journal.begin()
        while await self._iterate(journal, record, stay, was_lost=was_lost):
            was_lost = False
            await anyio.lowlevel.checkpoint()  # other steps of this worker have their turn, whatever this one does

    async def _iterate(self, journal: StepJournal, record: StepRecord, stay: Stay, *, was_lost: bool) -> bool:
        """Run the attempt that has begun; whether the next iteration has begun as well."""
        step, state = record.definition, journal.state
        handler = self.find(step.handler)
        payload = TaskPayload(
            run_id=record.run_id,
            step=step.name,
            iteration=state.iteration,
            attempt=state.attempt,
            input=state.input,
            traceparent=record.traceparent,
            redelivered=was_lost,
        )
        await self._tell(record, state, "step.started")
        verdict, reason = await self._handle(handler, journal, record, payload, stay)
        if isinstance(verdict, Suspended):
            bound, _ = deadline(state, step)
            await journal.suspend(verdict.until if bound is None else min(verdict.until, bound))
            return False
        now = self._now
        if verdict is None:
            await self._move(journal, record, over_time(state, step))
            return False
        end = settle(state, step, verdict, now, reason=reason, luck=self.luck())
        may_stay = self.stay is not None or isinstance(handler, AgentStep)
        is_due = isinstance(verdict, Continue) and not end.is_final and end.not_before is None
        goes_on = is_due and may_stay and not stay.is_over
        try:
            await self._move(journal, record, end, verdict, goes_on=goes_on)
        except NotSerialisable as e:
            failed = Fail(f"the output cannot be recorded: {e}", is_permanent=True)
            await self._move(journal, record, settle(state, step, failed, now))
            return False
        return goes_on

    async def _handle(
        self, handler: Any, journal: StepJournal, record: StepRecord, payload: TaskPayload, stay: Stay
    ) -> tuple[Verdict | Suspended | None, Reason]:
        """Call the handler within its time; None where the time of the whole loop was up before it returned."""
        step, said = record.definition, list[Verdict | Suspended]()
        emitted: list[Any] = []
        kind = TaskContext if is_async(handler) else SyncTaskContext
        ctx = kind(payload, journal, emitted.append, stay, self.short_sleep)
        end, bound = deadline(journal.state, step)
        left = None if end is None else max((end - self._now).total_seconds(), 0.0)

        async def call() -> Verdict | Suspended:
            said.append(await enter_handler(handler, ctx))
            return said[0]

        try:
            with anyio.move_on_after(left) as scope:
                await self.observers.around(payload, call)
        except (Fenced, StoreError):
            raise
        except NoVerdict as e:
            return Fail(str(e)), "no_verdict"
        except Exception as e:
            if journal.host.stop_error is not None:
                raise journal.host.stop_error from e
            return Fail(e), "error"
        finally:
            ctx.close()
            for data in emitted:
                await self._tell(record, journal.state, "step.emit", data)
        if journal.host.stop_error is not None:
            raise journal.host.stop_error
        if said:
            return said[0], "error"
        if not scope.cancelled_caught:
            return Fail("a wrapper of the iteration returned without running it"), "error"
        if bound == "max_duration":
            return None, bound
        return Fail(f"iteration {payload.iteration} took longer than {step.timeout:g} s"), "timeout"

    async def _move(
        self,
        journal: StepJournal,
        record: StepRecord,
        state: StepState,
        verdict: Verdict | None = None,
        *,
        goes_on: bool = False,
    ) -> None:
        before = journal.state
        await journal.move(state, goes_on=goes_on)
        if isinstance(verdict, Continue):
            await self._tell(record, before, "step.continue", verdict.output)
        if state.status == "completed":
            await self._tell(record, state, "step.completed", state.output)
        elif state.status == "failed":
            await self._tell(record, state, "step.failed")
        elif state.iteration == before.iteration:
            await self._tell(record, state, "step.retry")
        else:
            await self._tell(record, state, "step.queued")

    async def _tell(self, record: StepRecord, state: StepState, kind: StepEventKind, output: Any = None) -> None:
        await self.observers.emit(
            StepEvent(
                type=kind,
                run_id=record.run_id,
                workflow=record.workflow,
                step=record.definition.name,
                iteration=state.iteration,
                attempt=state.attempt,
                at=self._now,
                output=output,
                error=state.error,
                reason=state.reason,
            )
        )
