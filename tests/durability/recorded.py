"""Everything that SQLite writes, in order: recorded below the real store, and below the real library.

Python's sqlite3 has no way in, and not every Python has a library that could be reached from outside: many have it
built in. So the store gets a connection of `apsw`, a package that brings SQLite with it and lets a program stand
between SQLite and the system's files. What the store does with its connection is the store's own code.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import apsw
from attrs import define, field
from tests.durability.disk import Create, Disk, Op, Resize, Sync, SyncNames, Unlink, Write

__all__ = ["NamedVFS", "Recording", "connecting_through", "recorded"]

_KEPT = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


@define
class Recording:
    """What was done to the files of a folder.

    Args:
        facts: how many facts are known of the world outside; asked before each operation.
        ops: what was done.
        known: per operation, how many facts were known before it.
    """

    facts: Callable[[], int] = lambda: 0
    ops: list[Op] = field(factory=list)
    known: list[int] = field(factory=list)
    _names: dict[str, int] = field(factory=dict)
    _lock: Lock = field(factory=Lock)

    def add(self, op: Op) -> None:
        """Note what is about to be done."""
        with self._lock:
            self.known.append(self.facts())
            self.ops.append(op)

    def file(self, name: str) -> int:
        """The number of a file that is opened, which it may not have had yet."""
        if name not in self._names:
            self._names[name] = len(self.ops) + 1
            self.add(Create(name, self._names[name]))
        return self._names[name]

    def forget(self, name: str) -> None:
        """A name goes."""
        self._names.pop(name, None)
        self.add(Unlink(name))

    def moments(self) -> Iterator[tuple[int, Disk, int]]:
        """The disk before each operation and after the last, its number, and the facts that were known by then."""
        disk = Disk()
        for at, (op, known) in enumerate(zip(self.ops, self.known, strict=True)):
            yield at, disk, known
            disk.do(op)
        yield len(self.ops), disk, self.facts()


class _File(apsw.VFSFile):
    def __init__(self, name: apsw.URIFilename | str, flags: list[int], recording: Recording) -> None:
        super().__init__("", name, flags)
        self._recording = recording
        self._file = recording.file(Path(_text(name)).name)
        # SQLite's own file systems sync the folder when a journal that they may have created is first synced:
        # https://sqlite.org/src/file/src/os_unix.c, UNIXFILE_DIRSYNC. Its next step relies on that.
        self._names_too = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _JOURNALS)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._recording.add(Write(self._file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._recording.add(Resize(self._file, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # A disk in memory has nothing to wait for.
        self._recording.add(Sync(self._file))
        if self._names_too:
            self._recording.add(SyncNames())
            self._names_too = False


class NamedVFS(apsw.VFS):
    """A file system that stands between SQLite and that of the system."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name


class _Files(NamedVFS):
    def __init__(self, name: str, recording: Recording) -> None:
        super().__init__(name)
        self._recording = recording

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None or not flags[0] & _KEPT:
            return apsw.VFSFile("", name, flags)
        return _File(name, flags, self._recording)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, False)
        self._recording.forget(Path(filename).name)
        if syncdir:
            self._recording.add(SyncNames())


def _text(name: apsw.URIFilename | str) -> str:
    return name if isinstance(name, str) else name.filename()


# -- as sqlite3 does it ----------------------------------------------------------------------------------


@define
class _Rows:
    rows: Iterator[tuple[Any, ...]]
    rowcount: int
    lastrowid: int

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self.rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self.rows)


class _Connection:
    """As much of `sqlite3.Connection` as the store uses."""

    def __init__(self, path: str | os.PathLike[str], files: str, synchronous: str | None, **options: Any) -> None:
        with _as_sqlite3_says_it():
            self._db = apsw.Connection(os.fspath(path), vfs=files, statementcachesize=options["cached_statements"])
        self._db.set_busy_timeout(round(options["timeout"] * 1000))
        self._synchronous = None if synchronous is None else f"PRAGMA synchronous={synchronous}"
        if self._synchronous is not None:
            self.execute(self._synchronous)

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> _Rows:
        if self._synchronous is not None and sql.startswith("PRAGMA synchronous"):
            sql = self._synchronous
        with _as_sqlite3_says_it():
            rows = list(self._db.execute(sql, tuple(parameters)))
        return _Rows(iter(rows), self._db.changes(), self._db.last_insert_rowid())

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        for each in parameters:
            self.execute(sql, each)

    def close(self) -> None:
        with _as_sqlite3_says_it():
            self._db.close()


@contextmanager
def _as_sqlite3_says_it() -> Iterator[None]:
    try:
        yield
    except apsw.Error as e:
        error = sqlite3.OperationalError(str(e))
        error.sqlite_errorcode = getattr(e, "extendedresult", apsw.SQLITE_ERROR)
        raise error from e


@contextmanager
def recorded(recording: Recording, synchronous: str | None = None) -> Iterator[None]:
    """Have every connection of this process to a file that is opened meanwhile leave a record.

    Args:
        recording: of the one folder that their files are in; it is new.
        synchronous: what connections are set to, whatever the store asks for; None = what it asks for.
    """
    with connecting_through(_Files(f"recorded-{uuid4().hex}", recording), synchronous):
        yield


@contextmanager
def connecting_through(files: NamedVFS, synchronous: str | None = None) -> Iterator[None]:
    """Have every connection of this process to a file that is opened meanwhile write through a file system of apsw.

    Args:
        files: the file system; it is given back at the end.
        synchronous: what connections are set to, whatever the store asks for; None = what it asks for.
    """
    connect = sqlite3.connect

    def instead(path: Any, **options: Any) -> Any:
        if path == ":memory:":  # no file: a store compares its tables with those of an empty database
            return connect(path, **options)
        return _Connection(path, files.name, synchronous, **options)

    sqlite3.connect = instead  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite3.connect = connect
        files.unregister()
