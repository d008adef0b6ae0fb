"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="retry",
    api=(1, 0),
    summary="Asks a model again when its failure may pass, or another model; circuit breakers.",
    hooks=("locus_plugin_retry.hook:ModelRetryHook",),
    settings="locus_plugin_retry.settings:RetrySettings",
    compat_paths={
        "locus.hooks.builtin:BreakerSettings": "locus_plugin_retry.settings:BreakerSettings",
        "locus.hooks.builtin:ModelRetryHook": "locus_plugin_retry.hook:ModelRetryHook",
        "locus.hooks.builtin:RetrySettings": "locus_plugin_retry.settings:RetrySettings",
    },
)
