"""Logging: what a run does, as lines for people and collectors, and as a file for programs.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_logging.hooks import LoggingHook, StructuredLoggingHook
    from locus_plugin_logging.reading import RunLog, RunLogEntry, read_run_log
    from locus_plugin_logging.runlog import RunLogHook
    from locus_plugin_logging.settings import LoggingSettings
    from locus_plugin_logging.usage import RunUsage

__all__ = [
    "LoggingHook",
    "LoggingSettings",
    "RunLog",
    "RunLogEntry",
    "RunLogHook",
    "RunUsage",
    "StructuredLoggingHook",
    "read_run_log",
]

_MODULES = {
    "hooks": ("LoggingHook", "StructuredLoggingHook"),
    "reading": ("RunLog", "RunLogEntry", "read_run_log"),
    "runlog": ("RunLogHook",),
    "settings": ("LoggingSettings",),
    "usage": ("RunUsage",),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_logging.{module}": names for module, names in _MODULES.items()}
)
