"""What the plugin offers, readable without importing OpenTelemetry."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="telemetry",
    api=(1, 0),
    summary="Traces runs, iterations, model calls and tool calls with OpenTelemetry, and measures them.",
    hooks=("locus_plugin_telemetry.hook:TelemetryHook",),
    provides={
        "command_session": "locus_plugin_telemetry.around:command_session",
        "worker_metrics": "locus_plugin_telemetry.prometheus:Endpoint",
        "worker_notices": "locus_plugin_telemetry.workers:WorkerMetrics",
    },
    settings="locus_plugin_telemetry.settings:TelemetrySettings",
    compat_paths={
        "locus.hooks.builtin:TelemetryHook": "locus_plugin_telemetry.hook:TelemetryHook",
        "locus.hooks.builtin:TelemetrySettings": "locus_plugin_telemetry.settings:TelemetrySettings",
    },
)
