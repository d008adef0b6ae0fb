"""What is known of a run's costs: ``result.reports["pricing"]``."""

from __future__ import annotations

from attrs import frozen

__all__ = ["PricingReport"]


@frozen(kw_only=True)
class PricingReport:
    """The model calls that a segment of a run made.

    Args:
        cost: dollars of the calls whose price is known.
        priced: how many these are.
        unknown: how many calls have no known price: what they cost is not in ``cost``.
        assumed: dollars that a ``CostLimit(unknown_price=...)`` charged for these.
        unknown_models: of these calls, each model once.
    """

    cost: float = 0.0
    priced: int = 0
    unknown: int = 0
    assumed: float = 0.0
    unknown_models: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether ``cost`` is all of it."""
        return not self.unknown
