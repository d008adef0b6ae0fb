"""What planning did in a run."""

from __future__ import annotations

from attrs import frozen

__all__ = ["PlanningReport"]


@frozen(kw_only=True)
class PlanningReport:
    """``result.reports["planning"]``: of the whole run, over all its segments.

    Args:
        plans: how many plans there were.
        steps: how many steps are done.
        turns: how many times Think asked for calls without asking the model.
        planner_calls, executor_calls: how often those were asked, refused answers included.
        replans: how often the rest was planned again.
        how: what became of the plan: ``"running"``, or as in `PlanEndEvent`.
        reason: why it was given up, or ``""``.
    """

    plans: int = 0
    steps: int = 0
    turns: int = 0
    planner_calls: int = 0
    executor_calls: int = 0
    replans: int = 0
    how: str = "running"
    reason: str = ""
