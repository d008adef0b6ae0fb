"""What the plugin did in a run."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ProvenanceReport"]


@frozen(kw_only=True)
class ProvenanceReport:
    """``result.reports["provenance"]``: decisions of this segment of the run.

    Args:
        asked: about how many calls a person was asked, an answered question included.
        rejected: how many calls were rejected.
    """

    asked: int = 0
    rejected: int = 0
