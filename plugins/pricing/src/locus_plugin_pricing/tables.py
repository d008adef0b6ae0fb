"""The sources of prices: the user's own list, the model's attribute, the table of public prices; in this order.

The table is the one that genai-prices ships: nothing is fetched. It is a large import, made only when it is wanted.
"""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from locus.core.messages import Usage
from locus.models import Model
from locus.plugin import Lazy
from locus_plugin_pricing.settings import PricePerMillion, PricingSettings

if TYPE_CHECKING:
    import genai_prices
else:
    genai_prices = Lazy("genai_prices")

__all__ = ["Tables"]

#: What providers are called in the table, where a scheme differs.
_CALLED = {
    "bedrock": "aws",
    "gemini": "google",
    "vertex": "google",
    "xai": "x-ai",
    "grok": "x-ai",
    "azure-openai": "azure",
}


class Tables:
    """A `locus.models.PriceSource`.

    Args:
        settings: the plugin's.
    """

    def __init__(self, settings: PricingSettings) -> None:
        self._prices = sorted(settings.prices.items(), key=lambda entry: len(entry[0]), reverse=True)
        self._table = settings.table
        self._called = {**_CALLED, **settings.providers}
        self._own: dict[str, PricePerMillion | None] = {}
        self._unknown = set[str]()
        if settings.table:
            self.load()

    @staticmethod
    def load() -> None:
        """Import the table now, while an agent is built, and not in the middle of its first run."""
        genai_prices.data_snapshot.get_snapshot()

    def dollars(self, model: Model, answered: str, usage: Usage, at: datetime) -> float | None:
        """Dollars of one call, or None where its price is not known.

        Args:
            model: the model that was asked.
            answered: the model that answered, as its provider names it, or ``""``.
            usage: what the call used.
            at: when: what counts is the price of that day.
        """
        cost = self._find(model, answered, usage, at)
        if cost is None and getattr(model, "price", None) is None:
            self._unknown.add(answered or model.name)
        return cost

    def is_unknown(self, model: str) -> bool:
        """Whether the price of a model that answered was looked for and not found."""
        return model in self._unknown

    def _find(self, model: Model, answered: str, usage: Usage, at: datetime) -> float | None:
        own = self._of_the_user(model.name)
        if own is not None:
            return own.of(usage)
        if getattr(model, "price", None) is not None or not self._table:
            return None  # the kernel asks the model itself
        provider, _, name = model.name.partition(":")
        provider = self._called.get(provider, provider)
        asked = self._public(provider, answered, usage, at) if answered and answered != model.name else None
        return asked if asked is not None else self._public(provider, name, usage, at)

    def _of_the_user(self, name: str) -> PricePerMillion | None:
        if name not in self._own:
            found = (price for glob, price in self._prices if fnmatchcase(name, glob))
            self._own[name] = next(found, None)
        return self._own[name]

    @staticmethod
    def _public(provider: str, name: str, usage: Usage, at: datetime) -> float | None:
        counted = genai_prices.Usage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            found = genai_prices.calc_price(counted, name, provider_id=provider, genai_request_timestamp=at)
        except (LookupError, ValueError):  # not in the table, or not with such a usage
            return None
        return float(found.total_price)
