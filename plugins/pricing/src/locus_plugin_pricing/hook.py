"""`PricingHook`: tells the run what its calls cost, and people which ones it could not price."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from locus.core.events import ModelCompleteEvent
from locus.models import PriceSource
from locus.plugin import Event, Hook, RunContext, StashKey, hookimpl
from locus_plugin_pricing.events import UnknownPriceEvent
from locus_plugin_pricing.report import PricingReport
from locus_plugin_pricing.settings import PricePerMillion, PricingSettings
from locus_plugin_pricing.tables import Tables

__all__ = ["PricingHook"]

_REPORT: StashKey[PricingReport] = StashKey("pricing")


class PricingHook(Hook):
    """Knows what model calls cost.

    Args:
        settings: all of them; None = `PricingSettings()`.
        prices: in place of the settings' own.
    """

    name = "pricing"

    def __init__(
        self,
        settings: PricingSettings | None = None,
        *,
        prices: Mapping[str, PricePerMillion | Mapping[str, float]] | None = None,
    ) -> None:
        given = PricingSettings() if settings is None else settings
        self.settings = given if prices is None else evolve(given, prices=prices)
        self.tables = Tables(self.settings)

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own event."""
        return [UnknownPriceEvent]

    @hookimpl
    def locus_register_prices(self) -> list[PriceSource]:
        """What knows prices."""
        return [self.tables.dollars]

    async def on_model_complete(self, event: ModelCompleteEvent, run: RunContext) -> None:
        """Count a call; emit an event if its price is unknown."""
        if event.replayed:
            return
        report, cost = run.stash.get(_REPORT, PricingReport()), event.usage.cost
        known = cost is not None and not self.tables.is_unknown(event.model)
        if known:
            report = evolve(report, cost=report.cost + (cost or 0.0), priced=report.priced + 1)
        else:
            models = tuple(dict.fromkeys((*report.unknown_models, event.model)))
            assumed = report.assumed + (cost or 0.0)
            report = evolve(report, unknown=report.unknown + 1, unknown_models=models, assumed=assumed)
        run.stash[_REPORT] = report
        run.report(self.name, report)
        if not known:
            await run.emit(UnknownPriceEvent(model=event.model, tokens=event.usage.total_tokens))
