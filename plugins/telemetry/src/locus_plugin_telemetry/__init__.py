"""Telemetry: what a run does, as OpenTelemetry traces and metrics.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_telemetry.hook import TelemetryHook
    from locus_plugin_telemetry.settings import TelemetrySettings
    from locus_plugin_telemetry.workers import WorkerMetrics

__all__ = ["TelemetryHook", "TelemetrySettings", "WorkerMetrics"]

_MODULES = {"hook": ("TelemetryHook",), "settings": ("TelemetrySettings",), "workers": ("WorkerMetrics",)}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_telemetry.{module}": names for module, names in _MODULES.items()}
)
