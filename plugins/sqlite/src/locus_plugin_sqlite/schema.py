"""The contents of the file, and how a file of an older version becomes one of this version."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from types import MappingProxyType

from locus_plugin_sqlite.errors import FileDamaged, FileForeign, FileLocked, FileTooNew, FileTooOld, FileUnusable
from locus_plugin_sqlite.liveness import Holder, Process

__all__ = ["APPLICATION_ID", "IDENTITY", "MIGRATIONS", "OLDEST", "VERSION", "check_version", "settle"]

#: "LOCU", in the file's header.
APPLICATION_ID = 0x4C4F4355

#: The version of this schema, in the file's header.
VERSION = 3

#: The oldest version that can be migrated.
OLDEST = 2

#: The columns of a thread that are under its checksum.
IDENTITY = "id, name, parent, parent_at, created, status, node, title, model, agent_id, metadata"

# One row of `entries` is one append: its key is (thread << 32) + the number of its last entry. One tree of integer
# keys means one page written an append; a primary key of two columns would cost a second tree, or overflow pages.
_SCHEMA = """
CREATE TABLE file (                   -- one row
    id      INTEGER PRIMARY KEY,
    threads INTEGER NOT NULL,         -- how many rows `threads` has
    pruned  INTEGER NOT NULL          -- when it was looked for threads to forget, microseconds since 1970
);
INSERT INTO file VALUES (1, 0, 0);
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
    created    INTEGER NOT NULL,      -- when it was claimed first
    parent     INTEGER,               -- the thread whose entries 1..parent_at are the first of this one
    parent_at  INTEGER,
    head       INTEGER NOT NULL,      -- number of its newest entry
    tip        INTEGER NOT NULL,      -- checksum of the row that holds it, 0 where there is none
    status     TEXT NOT NULL,         -- of its newest run where it has no row of its own: of a fork, where it forked
    node       TEXT NOT NULL,         -- where that goes on
    title      TEXT NOT NULL,         -- the first words of its first prompt
    model      TEXT NOT NULL,         -- that answered last
    agent_id   TEXT NOT NULL,         -- the name of the agent whose run is the newest
    metadata   TEXT NOT NULL,         -- the short entries of its runs' metadata, a JSON object
    checksum   INTEGER NOT NULL       -- of what the thread is, see checks.py
);
CREATE INDEX threads_by_change ON threads (changed);
CREATE INDEX threads_by_parent ON threads (parent) WHERE parent IS NOT NULL;
CREATE INDEX threads_by_time ON threads (not_before) WHERE not_before IS NOT NULL;
CREATE TABLE entries (
    key      INTEGER PRIMARY KEY,     -- thread << 32 | number of the last entry in it
    writer   TEXT NOT NULL,           -- token of the claim
    at       INTEGER NOT NULL,        -- when, microseconds since 1970
    parent   INTEGER NOT NULL,        -- checksum of the row that it continues, 0 for the first of a thread
    status   TEXT NOT NULL,           -- of the thread's newest run from here on
    node     TEXT NOT NULL,           -- where that goes on
    content  INTEGER NOT NULL,        -- checksum of the body
    checksum INTEGER NOT NULL,        -- of all the rest, see checks.py
    body     BLOB NOT NULL            -- see blobs.py
);
CREATE TRIGGER tip AFTER INSERT ON entries BEGIN
    UPDATE threads SET head=NEW.key & 0xFFFFFFFF, tip=NEW.checksum WHERE id=NEW.key >> 32;
END;
CREATE TABLE snapshots (
    key      INTEGER PRIMARY KEY,     -- thread << 32 | number of the entry whose state it is
    parent   INTEGER NOT NULL,        -- checksum of the snapshot before, 0 for the first of a thread
    content  INTEGER NOT NULL,        -- checksum of the body
    checksum INTEGER NOT NULL,        -- of the rest
    body     BLOB NOT NULL            -- what became of the state since the snapshot before
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
    SELECT t.name AS thread, e.key & 0xFFFFFFFF AS last, e.writer, e.at, e.status, e.node, e.body
    FROM entries e JOIN threads t ON t.id = e.key >> 32
"""


# What version 3 has beyond version 2.
_QUEUE = """
CREATE TABLE queue (                  -- a thread that was submitted, or signalled as one
    thread    INTEGER PRIMARY KEY,    -- its row in `threads`
    queue     TEXT NOT NULL,
    priority  INTEGER NOT NULL,       -- 2 goes first
    due       INTEGER,                -- may be offered from then on, microseconds since 1970; NULL: when signalled
    offer     TEXT NOT NULL,          -- token of the offer under way, '' where there is none
    delivered INTEGER NOT NULL,       -- how often it was offered in a row
    signalled INTEGER NOT NULL        -- whether a signal came since it was offered
);
CREATE INDEX queue_by_due ON queue (queue, priority, due) WHERE due IS NOT NULL;
CREATE TABLE signals (
    thread INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    id     TEXT NOT NULL,
    body   BLOB,                      -- JSON, as an entry; NULL: it is forgotten
    PRIMARY KEY (thread, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX signals_by_id ON signals (thread, id);
CREATE TRIGGER forgotten AFTER UPDATE OF name ON threads WHEN NEW.name IS NULL BEGIN
    DELETE FROM queue WHERE thread=NEW.id;
    DELETE FROM signals WHERE thread=NEW.id;
END;
CREATE TRIGGER removed AFTER DELETE ON threads BEGIN
    DELETE FROM queue WHERE thread=OLD.id;
    DELETE FROM signals WHERE thread=OLD.id;
END;
"""


def _statements(script: str) -> list[str]:
    """The statements of a script; one that makes a trigger holds others."""
    made: list[str] = []
    for line in script.splitlines():
        if not made or sqlite3.complete_statement(made[-1]):
            made.append("")
        made[-1] += f"{line}\n"
    return [statement.strip() for statement in made if statement.strip()]


_STATEMENTS = [*_statements(_SCHEMA), *_statements(_QUEUE)]


def _add_queue(db: sqlite3.Connection) -> None:
    for statement in _statements(_QUEUE):
        db.execute(statement)


#: From a version to what makes the next one of it, within a transaction.
MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = MappingProxyType({2: _add_queue})

#: Those that leave exactly what a new file has.
_SAME_AS_NEW = frozenset({2})


def settle(db: sqlite3.Connection, path: Path, wait: float) -> None:
    """Make a connection's file one of this version: create it, migrate it, or refuse it.

    Args:
        db: a connection that commits by itself.
        path: its file.
        wait: seconds to wait for another process that does the same.

    Raises:
        FileForeign: it holds something else.
        FileTooNew: it is of a newer version.
        FileTooOld: it is of a version that was never released.
        FileDamaged: its tables are not those of its version.
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
        _insist_on_the_schema(db, path)
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = _examine(db, path)  # another process may have been faster
        if found == 0:
            for statement in _STATEMENTS:
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
    # So that the header tells the version to a program that reads the file without its log.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _insist_on_the_schema(db: sqlite3.Connection, path: Path) -> None:
    """Notice that a table, an index or a trigger is not the one that was created: SQLite reads their text."""
    if MIGRATIONS.keys() - _SAME_AS_NEW:  # what other migrations add is theirs to know
        return
    if _describe(db) != _describe_current():
        raise FileDamaged(path, "the description of its tables is not what was written; restore it from a backup")


def _describe(db: sqlite3.Connection) -> set[tuple[str, str, str]]:
    return set(db.execute("SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


@cache
def _describe_current() -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in _STATEMENTS:
            db.execute(statement)
        return _describe(db)


def _insist_on_being_alone(db: sqlite3.Connection, path: Path, found: int) -> None:
    now = int(time.time() * 1_000_000)
    for host, machine, pid, started, lease in db.execute("SELECT host, machine, pid, started, lease FROM workers"):
        if Holder(Process(host, machine, pid, started), lease).is_alive(now):
            raise FileLocked(
                path,
                f"it has schema version {found} and must be upgraded to {VERSION}, but pid {pid} on {host} uses it; "
                "end that process first (nothing was changed)",
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
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        if found < OLDEST:
            raise FileTooOld(path, found)
        return found
    if application or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise FileForeign(path, "it is a database of another program; choose another path (nothing was changed)")
    return 0
