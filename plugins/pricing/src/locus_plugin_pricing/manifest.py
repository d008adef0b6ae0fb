"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="pricing",
    api=(1, 0),
    summary="Knows what model calls cost, in dollars, and reports unknown prices.",
    hooks=("locus_plugin_pricing.hook:PricingHook",),
    settings="locus_plugin_pricing.settings:PricingSettings",
    compat_paths={
        "locus.hooks.builtin:PricingHook": "locus_plugin_pricing.hook:PricingHook",
        "locus.hooks.builtin:PricingSettings": "locus_plugin_pricing.settings:PricingSettings",
    },
)
