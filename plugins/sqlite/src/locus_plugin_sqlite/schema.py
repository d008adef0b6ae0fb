"""What stands in the file, and how a file of an older version becomes one of this version."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from locus_plugin_sqlite.errors import FileForeign, FileLocked, FileTooNew, FileUnusable
from locus_plugin_sqlite.liveness import Holder, Process

__all__ = ["APPLICATION_ID", "MIGRATIONS", "VERSION", "check_version", "settle"]

#: "LOCU", in the file's header.
APPLICATION_ID = 0x4C4F4355

#: The version of this schema, in the file's header.
VERSION = 1

# One row of `entries` is one append: its key is (thread << 32) + the number of its last entry. One tree of integer
# keys means one page written an append; a primary key of two columns would cost a second tree, or overflow pages.
_SCHEMA = """
CREATE TABLE workers (                -- one open store of one process
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    host    TEXT NOT NULL,            -- for people
    machine TEXT NOT NULL,            -- which processes can see this one
    pid     INTEGER NOT NULL,
    started TEXT NOT NULL,            -- tells two processes of one pid apart
    lease   INTEGER NOT NULL          -- taken for dead from then on, microseconds since 1970
);
CREATE TABLE threads (
    id         INTEGER PRIMARY KEY,
    name       TEXT UNIQUE,           -- NULL: deleted, and its forks still need its entries
    token      TEXT NOT NULL,         -- of the claim that holds it, '' when nobody does
    worker     INTEGER,               -- whose claim that is
    holder     TEXT,                  -- what that worker calls itself
    since      INTEGER,               -- of the claim, microseconds since 1970
    not_before INTEGER,               -- when the run wants to go on
    changed    INTEGER NOT NULL,      -- grows with every claim and release
    updated    INTEGER NOT NULL,      -- when that was
    parent     INTEGER,               -- the thread whose entries 1..parent_at are the first of this one
    parent_at  INTEGER
);
CREATE INDEX threads_by_change ON threads (changed);
CREATE INDEX threads_by_parent ON threads (parent) WHERE parent IS NOT NULL;
CREATE INDEX threads_by_time ON threads (not_before) WHERE not_before IS NOT NULL;
CREATE TABLE entries (
    key    INTEGER PRIMARY KEY,       -- thread << 32 | number of the last entry in it
    writer TEXT NOT NULL,             -- token of the claim
    at     INTEGER NOT NULL,          -- when, microseconds since 1970
    body   BLOB NOT NULL              -- see blobs.py
);
CREATE TABLE snapshots (
    key  INTEGER PRIMARY KEY,         -- thread << 32 | number of the entry it stands for
    body BLOB NOT NULL                -- what became of the state since the snapshot before
);
CREATE TABLE blobs (
    sha  BLOB PRIMARY KEY,            -- SHA-256 of the content
    body BLOB NOT NULL                -- JSON, compressed by zlib
) WITHOUT ROWID;
CREATE TABLE uses (
    key INTEGER NOT NULL,             -- of the row of `entries`, negative for one of `snapshots`
    sha BLOB NOT NULL,
    PRIMARY KEY (key, sha)
) WITHOUT ROWID;
CREATE INDEX uses_by_sha ON uses (sha);
CREATE VIEW journal AS
    SELECT t.name AS thread, e.key & 0xFFFFFFFF AS last, e.writer, e.at, e.body
    FROM entries e JOIN threads t ON t.id = e.key >> 32
"""

#: From a version to what makes the next one of it, within a transaction.
MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = MappingProxyType({})


def settle(db: sqlite3.Connection, path: Path, wait: float) -> None:
    """Make a connection's file one of this version: create it, migrate it, or refuse it.

    Args:
        db: a connection that commits by itself.
        path: its file.
        wait: seconds to wait for another process that does the same.

    Raises:
        FileForeign: it holds something else.
        FileTooNew: it is of a newer version.
        FileUnusable: its place does not allow for write-ahead logging.
        FileLocked: it is to be migrated, and another process is at work on it.
        sqlite3.Error: anything else.
    """
    found = _examine(db, path)
    # The switch to write-ahead logging does not wait for others that do the same: SQLite's timeout is not for it.
    until = time.monotonic() + wait
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise FileUnusable(path, f"its place allows journal mode {mode!r} only; put it on a local disk")
    if found == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = _examine(db, path)  # somebody else may have been faster
        if found == 0:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            found = VERSION
        elif found < VERSION:
            _insist_on_being_alone(db, path, found)
        while found < VERSION:
            MIGRATIONS[found](db)
            found += 1
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={VERSION}")
        db.execute("COMMIT")
    except BaseException:
        # SQLite may have ended the transaction by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    # So that the header tells the version to whoever reads the file without its log.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _insist_on_being_alone(db: sqlite3.Connection, path: Path, found: int) -> None:
    now = int(time.time() * 1_000_000)
    for host, machine, pid, started, lease in db.execute("SELECT host, machine, pid, started, lease FROM workers"):
        if Holder(Process(host, machine, pid, started), lease).is_alive(now):
            raise FileLocked(
                path,
                f"it has schema version {found} and is to get {VERSION}, but pid {pid} on {host} uses it as it is; end "
                "that process first (nothing was changed)",
            )


def check_version(db: sqlite3.Connection, path: Path) -> None:
    """Notice that another process has migrated the file since it was opened.

    Raises:
        FileTooNew: it has.
    """
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise FileTooNew(path, found, VERSION)


def _examine(db: sqlite3.Connection, path: Path) -> int:
    """The version of a file; 0 for an empty one."""
    if db.in_transaction:
        return _version(db, path)
    # All of it at one moment: another process may be creating the file.
    db.execute("BEGIN")
    try:
        return _version(db, path)
    finally:
        if db.in_transaction:
            db.execute("COMMIT")


def _version(db: sqlite3.Connection, path: Path) -> int:
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application == APPLICATION_ID:
        check_version(db, path)
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    if application or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise FileForeign(path, "it is a database of another program; choose another path (nothing was changed)")
    return 0
