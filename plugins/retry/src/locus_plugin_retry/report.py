"""What the plugin says of a run: ``result.reports["retry"]``."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import RunContext, StashKey

__all__ = ["NAME", "RetryReport", "count"]

#: The plugin's name.
NAME = "retry"


@frozen(kw_only=True)
class RetryReport:
    """What was tried again in this segment of a run.

    Args:
        retries: how often a model was asked again.
        empty: how many answers were empty.
        waited: seconds of all waits.
        fallbacks: the models that answered in place of the run's own, once for each answer.
        refused: calls of models and tools that an open breaker refused.
    """

    retries: int = 0
    empty: int = 0
    waited: float = 0.0
    fallbacks: tuple[str, ...] = ()
    refused: int = 0


_REPORT: StashKey[RetryReport] = StashKey("retry.report")


def count(
    run: RunContext,
    *,
    retries: int = 0,
    empty: int = 0,
    waited: float = 0.0,
    fallbacks: tuple[str, ...] = (),
    refused: int = 0,
) -> None:
    """Add to a run's report."""
    report = run.stash.get(_REPORT, RetryReport())
    report = run.stash[_REPORT] = RetryReport(
        retries=report.retries + retries,
        empty=report.empty + empty,
        waited=report.waited + waited,
        fallbacks=(*report.fallbacks, *fallbacks),
        refused=report.refused + refused,
    )
    run.report(NAME, report)
