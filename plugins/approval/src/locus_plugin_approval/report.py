"""What the plugin did in a run."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ApprovalReport"]


@frozen(kw_only=True)
class ApprovalReport:
    """``result.reports["approval"]``: decisions of this segment of the run.

    Args:
        asked: about how many calls a person was asked, an answered question included.
        always: the tools whose calls run without a question for the rest of this run, sorted.
    """

    asked: int = 0
    always: tuple[str, ...] = ()
