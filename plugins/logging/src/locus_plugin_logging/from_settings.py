"""The hooks as the settings of the plugin ask for them."""

from __future__ import annotations

from locus_plugin_logging.hooks import LoggingHook
from locus_plugin_logging.runlog import RunLogHook
from locus_plugin_logging.settings import LoggingSettings

__all__ = ["SettingsLoggingHook", "SettingsRunLogHook"]


class SettingsLoggingHook(LoggingHook):
    """The lines.

    Args:
        settings: of the plugin.
    """

    def __init__(self, settings: LoggingSettings) -> None:
        self._format = settings.format
        super().__init__(
            settings.level,
            payloads=settings.payloads,
            max_chars=settings.max_chars,
            levels=settings.levels,
            logger=settings.logger,
        )


class SettingsRunLogHook(RunLogHook):
    """The run log; writes nothing unless the settings name a file.

    Args:
        settings: of the plugin.
    """

    def __init__(self, settings: LoggingSettings) -> None:
        super().__init__(
            settings.run_log or "",
            max_bytes=settings.run_log_max_bytes,
            backups=settings.run_log_backups,
            chunks=settings.run_log_chunks and settings.run_log is not None,
            fsync=settings.run_log_fsync,
        )
        if settings.run_log is None:
            self.on_event = None  # type: ignore[method-assign,assignment]
