"""Plugins: their manifests, how they are found, chosen and configured, and the import paths that they fill."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.plugins.activation import Activation, PluginRequest, activate
    from locus.plugins.discovery import GROUP, Catalogue, pip_hint
    from locus.plugins.manifest import load
    from locus.plugins.providers import plugin_settings, provide, scheme_of
    from locus.plugins.report import HookFailure, PluginReport, RunReport, Status, run_report
    from locus.plugins.secret import Secret, redacted, scrubbed, shown_values
    from locus.plugins.settings import Layer, structure

__all__ = [
    "GROUP",
    "Activation",
    "Catalogue",
    "HookFailure",
    "Layer",
    "PluginReport",
    "PluginRequest",
    "RunReport",
    "Secret",
    "Status",
    "activate",
    "load",
    "pip_hint",
    "plugin_settings",
    "provide",
    "redacted",
    "run_report",
    "scheme_of",
    "scrubbed",
    "shown_values",
    "structure",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.plugins.activation": ("Activation", "PluginRequest", "activate"),
        "locus.plugins.discovery": ("Catalogue", "GROUP", "pip_hint"),
        "locus.plugins.manifest": ("load",),
        "locus.plugins.providers": ("plugin_settings", "provide", "scheme_of"),
        "locus.plugins.report": ("HookFailure", "PluginReport", "RunReport", "Status", "run_report"),
        "locus.plugins.secret": ("Secret", "redacted", "scrubbed", "shown_values"),
        "locus.plugins.settings": ("Layer", "structure"),
    },
)
