"""What ``AgentResult.reports["toolsearch"]`` holds."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ToolSearchReport"]


@frozen(kw_only=True)
class ToolSearchReport:
    """Which tools the model was sent. Absent if all of them were.

    Args:
        sent: their names, in the order in which they were sent.
        total: how many tools there are, the one that searches not counted.
        failure: why the embedding model could not be used, and tools were found by words alone; or ``""``.
    """

    sent: tuple[str, ...]
    total: int
    failure: str = ""
