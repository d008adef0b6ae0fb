"""What ``backend="sqlite:files.db"`` is: files in an SQLite file of their own."""

from __future__ import annotations

from locus.core.errors import ConfigError
from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_sqlite.settings import SqliteSettings

__all__ = ["make"]


def make(rest: str, settings: SqliteSettings | None = None) -> SqliteFiles:
    """The files behind ``"sqlite:files.db"``, which is not a file of journals.

    Args:
        rest: the path.
        settings: `sync`, `busy_timeout` and `max_bytes` are used; None = the defaults.

    Raises:
        ConfigError: the path is missing.
    """
    if not rest:
        raise ConfigError("'sqlite:' lacks the path of a file; write 'sqlite:files.db'")
    own = settings or SqliteSettings()
    return SqliteFiles(rest, busy_timeout=own.busy_timeout, sync=own.sync, max_bytes=own.max_bytes)
