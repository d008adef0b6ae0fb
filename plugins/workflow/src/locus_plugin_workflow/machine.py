"""The state of a step as a pure machine: no store, no clock. What a worker records is what these functions give.

::

    queued -> running -> continue -> queued     the next iteration
                                  -> failed     a bound was reached
                      -> completed
                      -> failed
                      -> queued                 another attempt at the same iteration

``continue`` is passed through within one write: no reader finds a step in it. ``completed`` and ``failed`` are final.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve, field, frozen

from locus.core import freeze
from locus_plugin_workflow.definition import AgentLoopConfig, StepDef, bound_after, due_after
from locus_plugin_workflow.errors import WorkflowError
from locus_plugin_workflow.verdicts import Complete, Continue, Fail, Verdict

__all__ = [
    "ARROWS",
    "FINAL",
    "IllegalTransition",
    "Reason",
    "StepState",
    "StepStatus",
    "deadline",
    "expire",
    "give_up",
    "over_time",
    "settle",
]

#: How a step is.
StepStatus: TypeAlias = Literal["queued", "running", "continue", "completed", "failed"]

#: Why a step is as it is, where its status alone does not say so.
Reason: TypeAlias = Literal[
    "", "error", "permanent", "timeout", "max_iterations", "max_duration", "no_verdict", "dead_letter", "cancelled"
]

#: The statuses that nothing follows.
FINAL: Final = frozenset({"completed", "failed"})

#: What may follow what. The last is another attempt; a `running` step that is begun again was given to another worker.
ARROWS: Final = frozenset(
    {
        ("queued", "running"),
        ("queued", "failed"),
        ("running", "running"),
        ("running", "continue"),
        ("running", "completed"),
        ("running", "failed"),
        ("continue", "queued"),
        ("continue", "failed"),
        ("running", "queued"),
    }
)


class IllegalTransition(WorkflowError):
    """A step was to become what cannot follow from how it is."""


@frozen(kw_only=True)
class StepState:
    """How a step is, folded from its journal.

    Args:
        status: queued, running, completed or failed; ``"continue"`` only between two of them.
        iteration: the cycle that is queued or under way, from 0; of an ended step its last one.
        attempt: the attempt at that iteration, from 0.
        deliveries: how many workers have begun this attempt.
        first_started: when the first iteration began, from which ``max_duration`` counts.
        started: when the worker began the attempt, from which its time-out counts; where it was left in good order,
            in a sleep or because the worker was leaving, when it was begun before that.
        not_before: when the next attempt or iteration is due, or None: at once; of a running step that sleeps, when it
            goes on.
        input: of the iteration that is queued or under way.
        output: of a completed step; of one that failed by a bound, what its last iteration gave to ``continue_``.
        error: why the step, or its last attempt, has failed.
        reason: the kind of that failure.
    """

    status: StepStatus = "queued"
    iteration: int = 0
    attempt: int = 0
    deliveries: int = 0
    first_started: datetime | None = None
    started: datetime | None = None
    not_before: datetime | None = None
    input: Any = field(default=None, converter=freeze)
    output: Any = field(default=None, converter=freeze)
    error: str = ""
    reason: Reason = ""

    @property
    def is_final(self) -> bool:
        """Whether the step is completed or has failed."""
        return self.status in FINAL

    def begin(self, now: datetime) -> StepState:
        """A worker begins the attempt, or begins it again after another one that did not report how it ended.

        After a worker that died the attempt has all of its time again: the time-out bounds what a handler takes, and
        how many workers may die in it is bounded apart.
        """
        again = self.status == "running"
        is_resumed = again and not self.deliveries
        return _become(
            self,
            "running",
            first_started=self.first_started or now,
            started=self.started if is_resumed else now,
            deliveries=self.deliveries + 1 if again else 1,
            not_before=None,
        )

    def reopen(self) -> StepState:
        """A step that has failed, as a person begins it again: at the same iteration, with its input and checkpoint.

        One that a bound has ended gets that bound anew: its iterations, or its time, count from here.
        """
        if self.status != "failed":
            raise IllegalTransition(f"a step that is {self.status} cannot be begun again; only one that has failed can")
        again = self.iteration
        given = self.input
        if self.reason == "max_iterations":
            again, given = 0, self.output
        return StepState(iteration=again, input=given)


def _become(state: StepState, status: StepStatus, **changes: Any) -> StepState:
    if (state.status, status) not in ARROWS:
        raise IllegalTransition(f"a step that is {state.status} cannot become {status}")
    return evolve(state, **{"status": status, "not_before": None, **changes})


def deadline(state: StepState, step: StepDef) -> tuple[datetime | None, Reason]:
    """When the attempt under way is over, and by which bound; None where nothing bounds it.

    Both count from what is recorded. A worker that froze finds its own over when it thaws; the one that took the step
    over meanwhile has a time-out of its own, and the same end of the loop.
    """
    found: tuple[datetime | None, Reason] = (None, "")
    over = _attempt_end(state, step)
    if over is not None:
        found = (over, "timeout")
    end = loop_end(state, step.config)
    if end is not None and (found[0] is None or end <= found[0]):
        found = (end, "max_duration")
    return found


def loop_end(state: StepState, config: AgentLoopConfig | None) -> datetime | None:
    """When the loop is over whatever it does, or None."""
    if config is None or not config.max_duration or state.first_started is None:
        return None
    return bound_after(state.first_started, config.max_duration)


def _attempt_end(state: StepState, step: StepDef) -> datetime | None:
    """When the time-out of the attempt is over, or None."""
    return bound_after(state.started, step.timeout) if step.timeout and state.started is not None else None


def _next_due(state: StepState, config: AgentLoopConfig | None, now: datetime, wait: float) -> datetime | None:
    """When a step is to be taken up that waits; None: at once. At the end of its loop it is, too: then it fails."""
    if not wait:
        return None
    due, end = due_after(now, wait), loop_end(state, config)
    return due if end is None else min(due, end)


def expire(state: StepState, step: StepDef, now: datetime, luck: float = 0.0) -> StepState:
    """The state after a look at the clock: the very same one while no bound was reached.

    Args:
        state: queued or running.
        step: its bounds.
        now: the time.
        luck: from 0 to 1, see `RetryPolicy.delay`.
    """
    if state.is_final:
        return state
    end = loop_end(state, step.config)
    if end is not None and now >= end:
        return over_time(state, step)
    over = _attempt_end(state, step)
    # How long the handler of a worker that died took is not known; a step that was left in good order is out of time.
    if state.status == "running" and not state.deliveries and over is not None and now >= over:
        error = f"iteration {state.iteration} took longer than {step.timeout:g} s"
        return _fail_attempt(state, step, now, error, "timeout", luck)
    return state


def settle(
    state: StepState, step: StepDef, verdict: Verdict, now: datetime, *, reason: Reason = "error", luck: float = 0.0
) -> StepState:
    """The state after an attempt.

    Args:
        state: the state of the attempt, running.
        step: its bounds and its retry policy.
        verdict: how it ended.
        now: when.
        reason: of a `Fail`, its kind.
        luck: from 0 to 1, see `RetryPolicy.delay`.

    Raises:
        IllegalTransition: the step is not running; a final state stays as it is.
    """
    if state.status != "running":
        raise IllegalTransition(f"a step that is {state.status} has no attempt under way that could end")
    if isinstance(verdict, Complete):
        return _become(state, "completed", output=verdict.output, error="", reason="", started=None)
    if isinstance(verdict, Fail):
        if verdict.is_permanent:
            return _become(state, "failed", error=verdict.error, reason="permanent" if reason == "error" else reason)
        return _fail_attempt(state, step, now, verdict.error, reason, luck)
    assert isinstance(verdict, Continue)
    if step.config is None:
        error = f"step {step.name!r} is a normal step, which is executed once; only an agent loop may continue"
        return _become(state, "failed", error=error, reason="permanent")
    return _next_iteration(_become(state, "continue", output=verdict.output), step, step.config, now)


def _next_iteration(state: StepState, step: StepDef, config: AgentLoopConfig, now: datetime) -> StepState:
    """From ``continue``: the bounds are checked, and the next iteration is queued."""
    if state.iteration + 1 >= config.max_iterations:
        error = f"step {step.name!r} was not completed in {config.max_iterations} iterations"
        return _become(state, "failed", error=error, reason="max_iterations")
    end = loop_end(state, config)
    if end is not None and now >= end:
        return over_time(state, step)
    return _become(
        state,
        "queued",
        iteration=state.iteration + 1,
        attempt=0,
        deliveries=0,
        started=None,
        not_before=_next_due(state, config, now, config.loop_delay),
        input=state.output,
        output=None,
        error="",
        reason="",
    )


def over_time(state: StepState, step: StepDef) -> StepState:
    """The state after the time of the whole loop is up."""
    limit = 0.0 if step.config is None else step.config.max_duration
    error = f"step {step.name!r} was not completed in {limit:g} s, counted from the start of its first iteration"
    return _become(state, "failed", error=error, reason="max_duration")


def give_up(state: StepState, error: str) -> StepState:
    """The state of a step that has not ended, and whose next state cannot be computed: it fails."""
    return _become(state, "failed", error=error, reason="permanent")


def _fail_attempt(state: StepState, step: StepDef, now: datetime, error: str, reason: Reason, luck: float) -> StepState:
    """After a failed attempt: another one, or the end."""
    failed = state.attempt + 1
    if failed >= step.retry.max_attempts:
        return _become(state, "failed", error=error, reason=reason)
    wait = step.retry.delay(failed, luck)
    return _become(
        state,
        "queued",
        attempt=failed,
        deliveries=0,
        started=None,
        not_before=_next_due(state, step.config, now, wait),
        error=error,
        reason=reason,
    )
