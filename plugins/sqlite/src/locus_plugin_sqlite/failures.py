"""From what SQLite reports to what a user can do about it."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from locus_plugin_sqlite.errors import (
    DiskFull,
    FileDamaged,
    FileFailed,
    FileGone,
    FileLocked,
    FileProblem,
    FileReadOnly,
    FileUnusable,
)

try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["problem", "problem_of"]


def problem(error: sqlite3.Error, path: Path, busy_timeout: float) -> FileProblem:
    """What is wrong with the file, from SQLite's error.

    Args:
        error: with SQLite's code.
        path: the file.
        busy_timeout: how long was waited for a lock.
    """
    code = getattr(error, "sqlite_errorcode", None) or 0
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return FileLocked(
                path,
                f"another process kept it locked for {busy_timeout:g} s; nothing was written: close what holds it "
                "open (a database browser, a backup), or raise busy_timeout",
            )
        # A text that is not UTF-8 has no code; a table that is not there, or is another one, is a mere "error".
        case 0 | sqlite3.SQLITE_ERROR | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return FileDamaged(
                path,
                f"it is damaged ({error}); nothing was written: restore it from a backup, or write what can be read "
                "into a new file with SqliteStore.salvage()",
            )
        case sqlite3.SQLITE_FULL:
            return _full(path, str(error))
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return FileGone(path, "it was deleted or moved while it was in use")
        case sqlite3.SQLITE_READONLY:
            return _read_only(path)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if not os.access(path.parent, os.W_OK):
            return _read_only(path)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return FileUnusable(path, f"it cannot be opened ({error}); check its owner and permissions")
        case sqlite3.SQLITE_IOERR if _no_room(path):
            return _full(path, str(error))
    return FileFailed(path, f"reading or writing failed ({error}); nothing is half-written: see the system's log")


def problem_of(error: OSError, path: Path) -> FileProblem:
    """What is wrong with the file, from the operating system's error when it was to be created or looked at."""
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return _read_only(path)
    return FileUnusable(path, f"it cannot be opened: {error.strerror or error}")


def _read_only(path: Path) -> FileReadOnly:
    return FileReadOnly(
        path,
        "the file or its folder may not be written by this user; SQLite needs both: change the permissions or the path",
    )


def _full(path: Path, said: str) -> DiskFull:
    return DiskFull(
        path,
        f"no room to write ({said}{_limit()}); what was committed is kept, and nothing is half-written: make room, "
        "then resume the run",
    )


def _limit() -> str:
    limit = _size_limit()
    return "" if limit is None else f"; this process may write files of {limit} bytes at most"


def _size_limit() -> int | None:
    if resource is None:  # pragma: no cover - Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _no_room(path: Path) -> bool:
    """Whether a failed write has to do with room: SQLite calls only one of the reasons "full"."""
    if _size_limit() is not None:
        return True
    try:
        return os.statvfs(path.parent).f_bavail == 0
    except (AttributeError, OSError):  # pragma: no cover - Windows, or a folder that is gone
        return False
