"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_BUILTIN = "locus.hooks.builtin"

plugin = Plugin(
    name="logging",
    api=(1, 0),
    summary="Logs one line an event, and on request every event in full to a file that reads back.",
    hooks=(
        "locus_plugin_logging.from_settings:SettingsLoggingHook",
        "locus_plugin_logging.from_settings:SettingsRunLogHook",
    ),
    settings="locus_plugin_logging.settings:LoggingSettings",
    harmless=("format",),
    compat_paths={
        f"{_BUILTIN}:LoggingHook": "locus_plugin_logging.hooks:LoggingHook",
        f"{_BUILTIN}:StructuredLoggingHook": "locus_plugin_logging.hooks:StructuredLoggingHook",
        f"{_BUILTIN}:RunLogHook": "locus_plugin_logging.runlog:RunLogHook",
        f"{_BUILTIN}:LoggingSettings": "locus_plugin_logging.settings:LoggingSettings",
        f"{_BUILTIN}:read_run_log": "locus_plugin_logging.reading:read_run_log",
    },
)
