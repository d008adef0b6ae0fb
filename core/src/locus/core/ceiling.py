"""`Ceiling`: what the machine that runs a condition needs to know about it, read off the tree once."""

from __future__ import annotations

from datetime import datetime

from locus.core.frozen import frozen
from locus.core.termination import (
    Bounds,
    CostLimit,
    Deadline,
    OrCondition,
    TerminationCondition,
    TimeLimit,
)

__all__ = ["Ceiling"]


@frozen(kw_only=True)
class Ceiling:
    """What a condition says about time and money.

    Args:
        bounds: what it guarantees.
        timed: its answer can change by time alone.
        stops_at: the wall-clock time at which it stops the run for certain, or None.
        unknown_price: dollars per million tokens to charge for a model without a price, or None.
    """

    bounds: Bounds
    timed: bool
    stops_at: datetime | None
    unknown_price: float | None

    @classmethod
    def of(cls, condition: TerminationCondition) -> Ceiling:
        """The ceiling of a condition."""
        leaves = tuple(condition.leaves())
        branches = condition.conditions if isinstance(condition, OrCondition) else (condition,)
        prices = [c.unknown_price for c in leaves if isinstance(c, CostLimit) and c.unknown_price is not None]
        return cls(
            bounds=condition.bounds(),
            timed=any(isinstance(leaf, TimeLimit | Deadline) for leaf in leaves),
            stops_at=min((b.at for b in branches if isinstance(b, Deadline)), default=None),
            unknown_price=max(prices, default=None),
        )
