"""What a model call costs: as the provider says, as a price source says, by the model's own price, or unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from attrs import evolve

from locus.core.messages import Usage

if TYPE_CHECKING:
    from locus.models.protocol import Model, Price

_LITTLE = Usage(prompt_tokens=1, completion_tokens=1)


class PriceSource(Protocol):
    """Knows what calls cost; contributed through ``locus_register_prices``. Sync, quick and without I/O."""

    def __call__(self, model: Model, answered: str, usage: Usage, at: datetime, /) -> float | None:
        """Dollars of one call, or None where its price is not known.

        Args:
            model: the model that was asked; its ``price``, where it has one, is asked only after all sources.
            answered: the model that answered, as the provider names it, or ``""``.
            usage: what the call used, its cost None: what a provider says itself always counts.
            at: when, UTC.
        """


def add_cost(model: Model, usage: Usage, unknown: float | None = None) -> Usage:
    """The usage with its dollars: the provider's, or by the model's price, or by the one assumed for it.

    Args:
        model: the model that was asked.
        usage: what it says it used.
        unknown: dollars per million tokens of a model without a price, or None.
    """
    if usage.cost is not None:
        return usage
    price: Price | None = getattr(model, "price", None)
    if price is not None:
        # A provider that counts cached tokens apart from the prompt's would be paid back for them.
        return evolve(usage, cost=max(0.0, price.of(usage)))
    return usage if unknown is None else evolve(usage, cost=usage.total_tokens * unknown / 1_000_000)


def has_price(model: Model, sources: Iterable[PriceSource]) -> bool:
    """Whether calls of a model have a price, as far as is known before the first one."""
    if getattr(model, "price", None) is not None:
        return True
    for source in sources:
        try:
            if dollars(source(model, "", _LITTLE, datetime.now(UTC))) is not None:
                return True
        except Exception:  # noqa: BLE001, S112 - asked again at the first call, where there is a run to report it
            continue
    return False


def dollars(cost: object) -> float | None:
    """What a price source returned.

    Raises:
        ValueError: it is not a number of dollars.
    """
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        raise ValueError(f"the cost of a call must be a finite number of dollars, 0 or more, or None, got {cost!r:.80}")
    return float(cost)
