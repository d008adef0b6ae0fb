"""Pricing: what model calls cost, in dollars.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_pricing.events import UnknownPriceEvent
    from locus_plugin_pricing.hook import PricingHook
    from locus_plugin_pricing.report import PricingReport
    from locus_plugin_pricing.settings import PricePerMillion, PricingSettings
    from locus_plugin_pricing.tables import Tables

__all__ = [
    "PricePerMillion",
    "PricingHook",
    "PricingReport",
    "PricingSettings",
    "Tables",
    "UnknownPriceEvent",
]

_MODULES = {
    "events": ("UnknownPriceEvent",),
    "hook": ("PricingHook",),
    "report": ("PricingReport",),
    "settings": ("PricePerMillion", "PricingSettings"),
    "tables": ("Tables",),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_pricing.{module}": names for module, names in _MODULES.items()}
)
