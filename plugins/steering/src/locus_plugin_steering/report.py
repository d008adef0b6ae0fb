"""What the judge did in a run."""

from __future__ import annotations

from attrs import evolve, frozen

__all__ = ["SteeringReport"]


@frozen(kw_only=True)
class SteeringReport:
    """``result.reports["steering"]``: votes of this segment of the run.

    Args:
        proceed, reject, cancel, ask: how many votes of each kind.
        failed: how often the judge failed, was too slow, or could not be understood.
        passed: calls of tools that need no vote.
    """

    proceed: int = 0
    reject: int = 0
    cancel: int = 0
    ask: int = 0
    failed: int = 0
    passed: int = 0

    def count(self, what: str) -> SteeringReport:
        """The report with one more of a kind."""
        return evolve(self, **{what: getattr(self, what) + 1})
