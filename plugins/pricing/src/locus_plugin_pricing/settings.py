"""The settings of the plugin: the table ``[plugins.pricing]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.messages import Usage
from locus.models import Price
from locus_kit.validators import number, optional

__all__ = ["PricePerMillion", "PricingSettings"]


_DOLLARS = number(0, unit="dollars per million tokens")


@frozen(kw_only=True)
class PricePerMillion:
    """The price of a model, in dollars per million tokens.

    Args:
        input: tokens of the request that were neither read from a cache nor written to one.
        output: tokens of the answer, reasoning included.
        cached: tokens read from a cache; None = as ``input``.
        cache_write: tokens written to a cache; None = as ``input``.
    """

    input: float = field(validator=_DOLLARS)
    output: float = field(validator=_DOLLARS)
    cached: float | None = field(default=None, validator=optional(_DOLLARS))
    cache_write: float | None = field(default=None, validator=optional(_DOLLARS))

    def of(self, usage: Usage) -> float:
        """Dollars of one usage."""
        price = Price(prompt=self.input, completion=self.output, cached=self.cached, cache_write=self.cache_write)
        return max(0.0, price.of(usage))


def _prices(given: Mapping[str, Any]) -> FrozenDict[str, PricePerMillion]:
    return FrozenDict({k: PricePerMillion(**v) if isinstance(v, Mapping) else v for k, v in given.items()})


@frozen(kw_only=True)
class PricingSettings:
    """Where prices come from.

    Args:
        prices: of your own, by globs of model names (``"provider:model"``): they come before everything but what a
            provider says itself. Of several that match, the longest glob counts.
        table: ask the table of public prices (genai-prices) too. False does not even import it.
        providers: the provider's name in the table, by the scheme here, where the two differ.
    """

    prices: FrozenDict[str, PricePerMillion] = field(default=EMPTY, converter=_prices)
    table: bool = True
    providers: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)
