"""`TaskPayload`: what a worker is given to run one iteration of a step."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from locus.core import freeze

__all__ = ["TaskPayload"]


@frozen(kw_only=True)
class TaskPayload:
    """One dispatch of a step.

    Args:
        run_id: the run of the workflow.
        step: the name of the step.
        iteration: which cycle of the loop this is, from 0; 0 for a normal step.
        attempt: which attempt at this iteration, from 0.
        input: what the iteration before gave to ``continue_``; of the first one, the outputs of the steps before it
            or the input of the run.
        traceparent: W3C trace context of whatever started the run, or ``""``.
        redelivered: a worker that had this very attempt before did not report how it ended.
    """

    run_id: str
    step: str
    iteration: int = 0
    attempt: int = 0
    input: Any = field(default=None, converter=freeze)
    traceparent: str = ""
    redelivered: bool = False

    RunID = property(lambda self: self.run_id)
    Step = property(lambda self: self.step)
    Iteration = property(lambda self: self.iteration)
    Attempt = property(lambda self: self.attempt)
    Input = property(lambda self: self.input)
