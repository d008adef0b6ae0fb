"""Whole files in one SQLite file, shared by threads and processes: a `locus.files.FileStore`.

It is here because two plugins offer it and neither may import the other: ``filesystem`` as ``StoreBackend(path)``, and
``sqlite`` as ``backend="sqlite:files.db"``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from locus.core.errors import ConfigError, StoreError
from locus.files import BackendError, FileContent, FileInfo, virtual_path
from locus.plugin import Lazy

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Lazy("ctypes")

__all__ = ["APPLICATION_ID", "VERSION", "SqliteFiles"]

#: "LOCF", in the file's header.
APPLICATION_ID = 0x4C4F4346

#: The version of the tables, in the file's header.
VERSION = 1

#: Bytes of a file that are indexed; a larger one is a candidate of every search.
_INDEXED = 200_000

#: Sequences of three characters that one search asks the index for.
_TRIGRAMS = 40

_BEGINNING = datetime.fromtimestamp(0, UTC)

_SCHEMA = (
    """
    CREATE TABLE files (
        id        INTEGER PRIMARY KEY,
        namespace TEXT NOT NULL,
        path      TEXT NOT NULL,     -- absolute, normalised
        body      BLOB NOT NULL,
        size      INTEGER NOT NULL,  -- bytes
        modified  INTEGER NOT NULL,  -- microseconds since 1970
        version   INTEGER NOT NULL,  -- of all changes of all files: no two are alike
        indexed   INTEGER NOT NULL,  -- whether `trigrams` has it
        UNIQUE (namespace, path)
    )
    """,
    # Which files have which three characters in a row, whatever their case. It keeps no copy of the texts.
    "CREATE VIRTUAL TABLE trigrams USING fts5(body, content='', detail=none, columnsize=0, tokenize='trigram')",
    "CREATE TABLE changes (id INTEGER PRIMARY KEY, last INTEGER NOT NULL)",
    "INSERT INTO changes VALUES (1, 0)",
)

#: The process in which SQLite knows a file: in a forked one it would take the locks of the process before for its own.
_opened: dict[tuple[int, int], int] = {}


class SqliteFiles:
    """Files in an SQLite file. Safe to use from several threads; every method blocks.

    A save is one transaction: other threads and processes see the old content or the new one. The file is created with
    access for its owner alone.

    Args:
        path: the SQLite file. Its folder must exist.
        namespace: files of different namespaces know nothing of each other.
        busy_timeout: seconds to wait for a write of another process.
        sync: ``"full"``: what was saved survives a power cut; ``"normal"``: it survives the death of the process.
        max_bytes: how far the SQLite file may grow; None = as far as the disk.

    Raises:
        ConfigError: the path is not one of a file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        namespace: str = "",
        busy_timeout: float = 10.0,
        sync: Literal["full", "normal"] = "full",
        max_bytes: int | None = None,
    ) -> None:
        text = os.fspath(path)
        if not text or "\0" in text or text == ":memory:":
            raise ConfigError(f"expected the path of an SQLite file such as 'files.db', got {text!r:.100}")
        #: The SQLite file.
        self.path = Path(text).expanduser().absolute()
        self.namespace, self.busy_timeout, self.sync, self.max_bytes = namespace, busy_timeout, sync, max_bytes
        self._idle: list[sqlite3.Connection] = []
        self._known: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, _close_all, self._idle)

    def __repr__(self) -> str:
        return f"SqliteFiles({str(self.path)!r}, namespace={self.namespace!r})"

    def close(self) -> None:
        """Close what is open; the next call opens the file again."""
        with self._lock:
            _close_all(self._idle)

    # -- files --------------------------------------------------------------------------------------

    def load(self, path: str) -> FileContent:
        """See `locus.files.FileStore.load`."""
        path = virtual_path(path)
        with self._transaction(writes=False) as db:
            row = db.execute("SELECT body, version FROM files WHERE namespace=? AND path=?", self._key(path)).fetchone()
            if row is None:
                raise BackendError("is_directory" if self._is_directory(db, path) else "file_not_found", path)
            return FileContent(row[0], str(row[1]))

    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        """See `locus.files.FileStore.save`."""
        path = virtual_path(path)
        with self._transaction(writes=True) as db:
            old = self._old(db, path, version)
            if old is None:
                self._insist_on_room(db, path)
            text = _text(data)
            number = db.execute("UPDATE changes SET last=last+1 RETURNING last").fetchone()[0]
            now = time.time_ns() // 1000
            row = (data, len(data), now, number, text is not None)
            if old is None:
                values = (*self._key(path), *row)
                made = db.execute(
                    "INSERT INTO files (namespace, path, body, size, modified, version, indexed) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    values,
                ).lastrowid
            else:
                made = old
                self._forget(db, old)
                db.execute("UPDATE files SET body=?, size=?, modified=?, version=?, indexed=? WHERE id=?", (*row, old))
            if text is not None:
                db.execute("INSERT INTO trigrams (rowid, body) VALUES (?, ?)", (made, text))

    def remove(self, path: str, *, version: str | None = None) -> None:
        """See `locus.files.FileStore.remove`."""
        path = virtual_path(path)
        with self._transaction(writes=True) as db:
            old = self._old(db, path, version)
            if old is None:
                raise BackendError("is_directory" if self._is_directory(db, path) else "file_not_found", path)
            self._forget(db, old)
            db.execute("DELETE FROM files WHERE id=?", (old,))

    def list(self, folder: str) -> list[FileInfo]:
        """See `locus.files.FileStore.list`."""
        folder = virtual_path(folder)
        with self._transaction(writes=False) as db:
            rows = db.execute(
                "SELECT path, size, modified FROM files "
                "WHERE namespace=? AND (path=? OR (path>=? AND path<?)) ORDER BY path",
                (self.namespace, folder, *_below(folder)),
            ).fetchall()
        return [
            FileInfo(path, size=size, modified_at=_BEGINNING + timedelta(microseconds=at)) for path, size, at in rows
        ]

    def candidates(self, folder: str, texts: Sequence[str]) -> tuple[str, ...]:
        """The files at or below a folder that may hold all of some texts, whatever their case, by path.

        Args:
            folder: see `locus.files.virtual_path`.
            texts: of three characters or more each; shorter ones are not looked for.
        """
        folder = virtual_path(folder)
        parts = list(dict.fromkeys(t[n : n + 3] for t in texts for n in range(len(t) - 2) if "\0" not in t))[:_TRIGRAMS]
        found, values = "", [self.namespace, folder, *_below(folder)]
        if parts:
            found = " AND (NOT indexed OR id IN (SELECT rowid FROM trigrams WHERE trigrams MATCH ?))"
            values.append(" AND ".join('"' + part.replace('"', '""') + '"' for part in parts))
        with self._transaction(writes=False) as db:
            query = (
                f"SELECT path FROM files WHERE namespace=? AND (path=? OR (path>=? AND path<?)){found} ORDER BY path"  # noqa: S608  # constants
            )
            return tuple(path for (path,) in db.execute(query, values))

    # -- rows ---------------------------------------------------------------------------------------

    def _key(self, path: str) -> tuple[str, str]:
        return self.namespace, path

    def _old(self, db: sqlite3.Connection, path: str, version: str | None) -> int | None:
        """The row of a file that is to be changed, if it has that version."""
        found = db.execute("SELECT id, version FROM files WHERE namespace=? AND path=?", self._key(path)).fetchone()
        if version is not None and version != ("" if found is None else str(found[1])):
            raise BackendError("conflict", f"{path} was changed meanwhile")
        return None if found is None else int(found[0])

    def _forget(self, db: sqlite3.Connection, row: int) -> None:
        """Take a file out of the index, which must be given what was put in."""
        db.execute(
            "INSERT INTO trigrams (trigrams, rowid, body) "
            "SELECT 'delete', id, CAST(body AS TEXT) FROM files WHERE id=? AND indexed",
            (row,),
        )

    def _is_directory(self, db: sqlite3.Connection, path: str) -> bool:
        query = "SELECT 1 FROM files WHERE namespace=? AND path>=? AND path<? LIMIT 1"
        return path == "/" or db.execute(query, (self.namespace, *_below(path))).fetchone() is not None

    def _insist_on_room(self, db: sqlite3.Connection, path: str) -> None:
        """A new file takes the place of no directory and is below no other file."""
        if self._is_directory(db, path):
            raise BackendError("is_directory", path)
        above = path.rpartition("/")[0]
        while above:
            if db.execute("SELECT 1 FROM files WHERE namespace=? AND path=?", self._key(above)).fetchone():
                raise BackendError("invalid_path", f"{path}: {above} is a file")
            above = above.rpartition("/")[0]

    # -- connections --------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        try:
            db = self._connection()
            try:
                db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield db
                db.execute("COMMIT")
            except BaseException:
                # SQLite may have ended the transaction by itself.
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            finally:
                with self._lock:
                    self._idle.append(db)
        except sqlite3.Error as e:
            raise _problem(e, self.path) from e

    def _connection(self) -> sqlite3.Connection:
        with self._lock:
            found = _identity(self.path)
            if self._pid != os.getpid() or (self._known is not None and found != self._known):
                # Of the process before a fork, or of a file that is gone: closing them would touch what is not theirs.
                for db in self._idle:
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))
                self._idle.clear()
                self._pid, self._known = os.getpid(), None
            if self._idle:
                return self._idle.pop()
            if _opened.get(found or (0, 0), self._pid) != self._pid:
                raise ConfigError(
                    f"{self.path} was open when this process was forked, and SQLite cannot open it again here: start "
                    "processes with 'spawn' or 'forkserver', or fork before it is first used"
                )
            db = _connect(self.path, self.busy_timeout)
            db.execute(f"PRAGMA synchronous={self.sync}")
            if self.max_bytes is not None:
                page = db.execute("PRAGMA page_size").fetchone()[0]
                db.execute(f"PRAGMA max_page_count={max(1, self.max_bytes // page)}")
            self._known = _identity(self.path)
            if self._known is not None:
                _opened[self._known] = self._pid
            return db


def _connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as e:
        raise ConfigError(f"the file {str(path)!r} cannot be created: {e.strerror or e}") from e
    db = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    try:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            _create(db, path)
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found != VERSION:
            raise ConfigError(
                f"{path} was written by another version of Locus (it has version {found}, this one reads {VERSION}); "
                "nothing was changed"
            )
    except BaseException:
        db.close()
        raise
    return db


def _create(db: sqlite3.Connection, path: Path) -> None:
    until = time.monotonic() + 10.0
    while True:
        try:
            # SQLite's own patience is not for this switch.
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
    db.execute("BEGIN IMMEDIATE")
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID:  # else another process was faster
            if application or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise ConfigError(f"{path} is a database of something else; choose another path (nothing was changed)")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            db.execute(f"PRAGMA user_version={VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _problem(error: sqlite3.Error, path: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BackendError("timeout", "another process keeps the file of these files locked; try again")
        case sqlite3.SQLITE_FULL:
            return BackendError("permission_denied", "no room is left on the disk")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return BackendError("permission_denied", "these files are read-only")
        case sqlite3.SQLITE_TOOBIG:
            return BackendError("too_large", "the file has more bytes than SQLite can keep")
    if "fts5" in str(error):
        return ConfigError(f"{path}: this Python's SQLite {sqlite3.sqlite_version} was built without FTS5")
    return StoreError(
        f"{path}: it cannot be used ({error}); restore it from a backup, or choose another path", store=""
    )


def _close_all(idle: list[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()


def _below(folder: str) -> tuple[str, str]:
    """The bounds of the paths below a folder: from the first, up to the second."""
    start = folder.rstrip("/")
    return f"{start}/", f"{start}0"  # the character behind the slash


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # twice as fast as pathlib, and done for each call
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(data: bytes) -> str | None:
    """What the index gets; None for what it cannot have."""
    if len(data) > _INDEXED or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
