"""What a handler gets: the input of its iteration, its checkpoint, and the ways in which an iteration ends.

An async handler gets a `TaskContext`, whose methods that write are awaited. A plain function runs in a worker thread,
and gets a `SyncTaskContext`: the same methods, not awaited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from locus.core import thaw
from locus.core.journal import STEP, Outcome, Policy, StepId
from locus_plugin_workflow.definition import Duration, StepDef, due_after, seconds_of
from locus_plugin_workflow.errors import ConflictingVerdicts, WorkflowError
from locus_plugin_workflow.journal import StepJournal
from locus_plugin_workflow.payload import TaskPayload
from locus_plugin_workflow.records import SLEPT, StepRecord
from locus_plugin_workflow.sleeping import SHORT_SLEEP, Sleeps
from locus_plugin_workflow.staying import Stay
from locus_plugin_workflow.verdicts import Complete, Continue, Fail, Verdict

__all__ = ["SyncTaskContext", "TaskContext"]

_Said = TypeVar("_Said", Continue, Complete, Fail)


class _Context:
    """What both contexts have: everything that needs no waiting."""

    def __init__(
        self,
        payload: TaskPayload,
        journal: StepJournal,
        emit: Callable[[Any], None],
        stay: Stay,
        short_sleep: float = SHORT_SLEEP,
    ) -> None:
        self._payload, self._journal, self._emit = payload, journal, emit
        #: For how long its worker stays with the step.
        self.stay = stay
        self._used: Counter[tuple[StepId | None, str, str]] = Counter()
        self._asleep: set[tuple[StepId | None, str]] = set()
        self.sleeps = Sleeps(journal.host.effects.now, short_sleep)
        #: How the iteration ends, as far as the handler has said so.
        self.verdict: Verdict | None = None
        self._is_over = False

    @property
    def payload(self) -> TaskPayload:
        """What was dispatched."""
        return self._payload

    @property
    def definition(self) -> StepDef:
        """The step, as it was recorded when the run began."""
        assert isinstance(self._journal.record, StepRecord)
        return self._journal.record.definition

    @property
    def run_id(self) -> str:
        """The run of the workflow."""
        return self._payload.run_id

    @property
    def iteration(self) -> int:
        """Which cycle of the loop this is, from 0."""
        return self._payload.iteration

    @property
    def attempt(self) -> int:
        """Which attempt at this iteration, from 0."""
        return self._payload.attempt

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt at this iteration, and in no other one: for services that know what they did."""
        return f"{self._payload.run_id}/{self._payload.step}/{self._payload.iteration}"

    @property
    def now(self) -> datetime:
        """The worker's time, UTC."""
        return self._journal.host.effects.now()

    def input(self) -> Any:
        """What the iteration before gave to ``continue_``; at first what the steps before it gave, or the run's."""
        return thaw(self._payload.input)

    def continue_(self, output: Any = None) -> Continue:
        """Ask for another iteration, whose input this is. It counts when the handler returns."""
        return self._say(Continue(output))

    def complete(self, output: Any = None) -> Complete:
        """Complete the step: the steps behind it get this output. It counts when the handler returns."""
        return self._say(Complete(output))

    def fail(self, error: Any) -> Fail:
        """Fail this attempt; the retry policy says what follows. It counts when the handler returns.

        Args:
            error: an exception or a text.
        """
        return self._say(Fail(error))

    def fail_permanent(self, error: Any) -> Fail:
        """Fail the step, whatever the retry policy says. It counts when the handler returns."""
        return self._say(Fail(error, is_permanent=True))

    def emit(self, data: Any) -> None:
        """Show something to those who watch the worker, as an event ``step.emit``; it is not recorded."""
        self._emit(data)

    def _say(self, verdict: _Said) -> _Said:
        if self.verdict is not None and self.verdict != verdict:
            raise ConflictingVerdicts(
                f"step {self._payload.step!r}, iteration {self._payload.iteration}: the handler has said "
                f"{self.verdict!r:.200} and now says {verdict!r:.200}; say one of them"
            )
        self.verdict = verdict
        return verdict

    def close(self) -> None:
        """The iteration is over: a handler that was abandoned in its thread writes nothing more."""
        self._is_over = True

    def _check(self) -> None:
        if self._is_over:
            raise WorkflowError(
                f"step {self._payload.step!r}, iteration {self._payload.iteration} is over for this handler: its time "
                "was up, or another worker has the step; nothing was written"
            )
        self.sleeps.check()

    async def _load(self) -> Any:
        self._check()
        return await self._journal.load_checkpoint()

    async def _save(self, data: Any) -> None:
        self._check()
        await self._journal.save_checkpoint(data)

    def _step_id(self, node: str, name: str = "") -> StepId:
        """The id of the next step of a name, in the body of the step that it is called from, if there is one.

        A step whose result is on record is not entered: what it did inside must not count for what comes behind it.
        """
        around = self.sleeps.around
        parent = around[-1].step_id if around else None
        ordinal = self._used[parent, node, name]
        self._used[parent, node, name] += 1
        return StepId(self._payload.iteration, node, ordinal, 0, name, parent)

    async def _run_step(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], effect: Policy) -> Any:
        host = self._journal.host
        # What has failed in an attempt before this one is tried again; what had succeeded is not.
        while step_id.attempt < self._payload.attempt:
            found = host.find_unchecked(step_id)
            if not isinstance(found, Outcome) or found.error is None:
                break
            step_id = step_id.at_attempt(step_id.attempt + 1)
        with self.sleeps.undertake(step_id, effect):
            return thaw(await host.step(step_id, fn, effect))

    async def _step(self, name: str, fn: Callable[[], Awaitable[Any]], effect: Policy) -> Any:
        self._check()
        return await self._run_step(self._step_id(STEP, name), fn, effect)

    async def _sleep(self, duration: Duration, name: str) -> None:
        self._check()
        seconds = seconds_of("sleep", duration)
        once = next((each for each in self.sleeps.around if each.policy == "once"), None)
        if seconds > self.sleeps.short and once is not None:
            raise WorkflowError(
                f"step {once.step_id.name!r} may happen once only, so it is not entered again after a sleep of "
                f"{seconds:g} s; sleep before it or behind it, or have it `effect='keyed'` and its effects in steps"
            )
        now = self._journal.host.effects.now

        async def wake() -> datetime:
            return due_after(now(), seconds)

        step_id = self._step_id(SLEPT, name)
        same = (step_id.parent, name)
        if same in self._asleep:
            raise WorkflowError(
                "two sleeps at the same time would be told apart by the order in which they are called; give each of "
                "them a name: sleep(..., name=...)"
            )
        self._asleep.add(same)
        try:
            await self.sleeps.sleep(step_id, await self._run_step(step_id, wake, "pure"))
        finally:
            self._asleep.remove(same)

    Input = input  # noqa: A003  the method above
    Continue = continue_
    again = continue_
    Complete = complete
    Fail = fail
    FailPermanent = fail_permanent


class TaskContext(_Context):
    """The context of an async handler."""

    async def load_checkpoint(self) -> Any:
        """What was saved last, in whatever iteration, attempt and worker; None at first."""
        return await self._load()

    async def checkpoint(self, data: Any) -> None:
        """Save bytes, or data with a JSON form, now; it survives this iteration, a retry and the worker.

        Raises:
            Fenced: another worker has the step; nothing was written.
            NotSerialisable: the data has no JSON form.
        """
        await self._save(data)

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], *, effect: Policy = "once") -> Any:
        """Run an effect unless its result is on record from an attempt or a worker before.

        Args:
            name: what it is called; the second one of a name in an iteration is another step.
            fn: the effect; its result is data with a JSON form.
            effect: what follows a crash in its middle: ``"pure"`` and ``"keyed"`` run again, ``"once"`` does not.

        Raises:
            OutcomeUnknown: it is ``"once"``, and its worker died in it.
            StepFailed: it is recorded that it raised.
        """
        return await self._step(name, fn, effect)

    async def sleep(self, duration: Duration, *, name: str = "") -> None:
        """Wait, from when this was asked first: a sleep that is over is not slept again.

        A long one, of more than 5 seconds, gives the step back, once the steps beside it have ended: the handler is
        left by a `BaseException`, and entered again from its top when it is time. What is on record is not done again;
        what else the handler did is.

        Args:
            duration: seconds, or a timedelta; more than a century is a century.
            name: what it is called; sleeps in tasks beside one another need names.

        Raises:
            ConfigError: it cannot be one, such as a negative number or a text.
            WorkflowError: a long one inside of a step that may happen once only, or two at the same time with one name.
        """
        await self._sleep(duration, name)

    LoadCheckpoint = load_checkpoint
    Checkpoint = checkpoint


class SyncTaskContext(_Context):
    """The context of a handler that is a plain function; it runs in a worker thread."""

    def load_checkpoint(self) -> Any:
        """See `TaskContext.load_checkpoint`."""
        return anyio.from_thread.run(self._load)

    def checkpoint(self, data: Any) -> None:
        """See `TaskContext.checkpoint`."""
        anyio.from_thread.run(self._save, data)

    def step(self, name: str, fn: Callable[[], Any], *, effect: Policy = "once") -> Any:
        """See `TaskContext.step`; here ``fn`` is a plain function, too."""

        async def run() -> Any:
            return await anyio.to_thread.run_sync(fn)

        return anyio.from_thread.run(self._step, name, run, effect)

    def sleep(self, duration: Duration, *, name: str = "") -> None:
        """See `TaskContext.sleep`."""
        anyio.from_thread.run(self._sleep, duration, name)

    LoadCheckpoint = load_checkpoint
    Checkpoint = checkpoint
