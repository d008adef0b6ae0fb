"""Opening the file, and noticing that it is no longer the one that was opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from locus.plugin import Lazy
from locus_plugin_sqlite.errors import FileDamaged, FileGone, FileTooNew, FileUnusable
from locus_plugin_sqlite.failures import problem_of
from locus_plugin_sqlite.schema import APPLICATION_ID, VERSION, settle
from locus_plugin_sqlite.settings import SqliteSettings

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Lazy("ctypes")

__all__ = ["Files", "forget", "open_file"]

_MAGIC = b"SQLite format 3\0"

#: Pages of 4 KB after which the log is copied into the file: it is as long as this, and no longer.
_LOG_PAGES = 256


#: Files that were open when this process was forked. SQLite would take the locks of the process before for its own.
_inherited: set[tuple[int, int]] = set()


def open_file(path: Path, settings: SqliteSettings, *, alone: bool = False) -> sqlite3.Connection:
    """A connection that commits by itself to a file of this version, which is created where it is missing.

    Args:
        path: the file.
        settings: how it is kept.
        alone: keep all others out until the connection is closed: then SQLite needs no shared memory, which is a file,
            and can read on a full disk.

    Raises:
        FileProblem: it cannot be used.
        sqlite3.Error: the same, as SQLite reports it.
    """
    _look(path)
    wait = 0.0 if alone else settings.busy_timeout
    db = sqlite3.connect(path, timeout=wait, isolation_level=None, cached_statements=64)
    try:
        if alone:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("PRAGMA temp_store=MEMORY")
        settle(db, path, wait)
        db.execute(f"PRAGMA synchronous={settings.sync}")
        if sys.platform == "darwin":  # fsync alone does not empty the disk's cache there
            db.execute("PRAGMA fullfsync=1")
        db.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        db.execute(f"PRAGMA journal_size_limit={_LOG_PAGES * 4096}")
        if settings.max_bytes is not None:
            page = db.execute("PRAGMA page_size").fetchone()[0]
            db.execute(f"PRAGMA max_page_count={max(1, settings.max_bytes // page)}")
    except UnicodeDecodeError as e:  # an error of SQLite with the name of a table that is not text any more
        db.close()
        raise FileDamaged(path, "the description of its tables is not text; restore it from a backup") from e
    except BaseException:
        db.close()
        raise
    return db


def _look(path: Path) -> None:
    """Create the file, readable for its owner alone, or see from its header that SQLite should not open it."""
    if path.is_dir():
        raise FileUnusable(path, "it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileUnusable(path, f"the folder {path.parent} does not exist; create it")
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as e:
        raise problem_of(e, path) from e
    if _identity(str(path)) in _inherited:
        raise FileUnusable(
            path,
            "it was open when this process was forked, and SQLite cannot open it again here: start processes with "
            "'spawn' or 'forkserver', or fork before the store is first used",
        )
    if not header.strip(b"\0"):
        # Empty, or the power was cut while it was created: the journal beside it tells SQLite what it was before.
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise FileDamaged(
            path, "it is not an SQLite database; choose another path, or restore it (nothing was changed)"
        )
    version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if application == APPLICATION_ID and version > VERSION:
        raise FileTooNew(path, version, VERSION)


class Files:
    """The file and its log, as they were when the connection had opened them."""

    __slots__ = ("_known", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        seen = {each: _identity(each) for each in (str(path), f"{path}-wal")}
        self._known = {each: found for each, found in seen.items() if found is not None}

    def check(self) -> None:
        """Insist that they are still there: SQLite would go on writing to files that can no longer be found.

        Raises:
            FileGone: one of them was deleted or replaced.
        """
        for each, known in self._known.items():
            found = _identity(each)
            if found != known:
                self._disown()
                what = "the file" if each == str(self.path) else f"its log {each}"
                how = "deleted" if found is None else "replaced by another one"
                raise FileGone(
                    self.path,
                    f"{what} was {how} while it was in use, and what had been committed to it went with it: stop what "
                    "did that, put a copy in its place if there is one, then start the run anew",
                )

    @property
    def has_lost_its_log(self) -> bool:
        """Whether the file is the same and its log was deleted: a connection that has that open can still read it."""
        log = f"{self.path}-wal"
        same = _identity(str(self.path)) == self._known[str(self.path)]
        return same and log in self._known and _identity(log) is None

    def _disown(self) -> None:
        """Delete the log where another file has taken the place of ours: SQLite would take it for that file's."""
        log, place = f"{self.path}-wal", _identity(str(self.path))
        replaced = place is not None and place != self._known[str(self.path)]
        if replaced and _identity(log) == self._known.get(log):
            for each in (log, f"{self.path}-shm"):
                Path(each).unlink(missing_ok=True)

    def inherit(self) -> None:
        """Remember, in a forked process, that the process before has them open."""
        _inherited.update(self._known.values())


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast as pathlib, and done for each commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


def forget(db: sqlite3.Connection) -> None:
    """Never close a connection that is not this process's, or whose file is gone: SQLite would delete a log in use."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))
