"""What can be wrong with a workflow, and what a handler can do wrong."""

from __future__ import annotations

from collections.abc import Iterable

from locus.core.errors import ConfigError, LocusError

__all__ = ["ConflictingVerdicts", "FailPermanent", "InvalidWorkflow", "NoVerdict", "StepEnded", "WorkflowError"]


class WorkflowError(LocusError):
    """The root of the errors of workflows that run."""


class InvalidWorkflow(ConfigError):
    """A workflow cannot be built.

    Args:
        workflow: its name.
        problems: one line each; each names the step that it is about.
    """

    def __init__(self, workflow: str, problems: Iterable[str]) -> None:
        self.workflow, self.problems = workflow, tuple(problems)
        super().__init__(f"workflow {workflow!r} cannot be built: {'; '.join(self.problems)}")


class NoVerdict(WorkflowError):
    """A handler returned without saying how its iteration ended: it called none of continue_, complete and fail."""


class ConflictingVerdicts(WorkflowError):
    """A handler said in two ways how its iteration ended."""


class FailPermanent(WorkflowError):
    """Raised by a handler: the step fails, and its retry policy does not apply."""


class StepEnded(WorkflowError):
    """A step, or a run, has failed; the text says why."""
