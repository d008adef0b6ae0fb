"""Threads as a whole: which there are, which want to go on, forks, and forgetting them."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from locus.core.errors import JournalError, NothingToResume
from locus.journal import ThreadInfo
from locus_plugin_sqlite import blobs
from locus_plugin_sqlite.bodies import to_json
from locus_plugin_sqlite.claims import busy, described, living
from locus_plugin_sqlite.job import Job
from locus_plugin_sqlite.liveness import from_micros, micros
from locus_plugin_sqlite.rows import MASK, SHIFT, head_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus.core.journal import Body
    from locus_plugin_sqlite.session import Session

__all__ = ["Deleting", "Forking", "Listing", "NextReady", "Vacuuming"]


_FORK = """
INSERT INTO threads (name, token, changed, updated, parent, parent_at)
VALUES (?, '', (SELECT max(changed) FROM threads) + 1, ?, ?, ?)
"""
_THREADS = (
    "SELECT id, name, parent_at, worker, token, holder, since, changed, updated FROM threads WHERE name IS NOT NULL"
)


class Listing(Job[tuple[ThreadInfo, ...]]):
    """All threads, the most recently changed first."""

    __slots__ = ()
    writes = False

    def __init__(self) -> None:
        super().__init__(())

    def apply(self, session: Session) -> None:
        """Read the threads and the newest row of each."""
        found = session.db.execute(_THREADS).fetchall()
        made = []
        for thread, name, shared, worker, token, holder, since, changed, updated in found:
            where = living(session, worker, token)
            last = _last(session.db, thread)
            at = max(updated, last[1]) if last is not None else updated
            info = ThreadInfo(
                thread_id=name,
                head=last[0] if last is not None else shared or 0,
                holder=None if where is None else described(holder, where),
                updated_at=from_micros(at),
                since=None if where is None else from_micros(since),
            )
            made.append((at, changed, info))
        made.sort(key=lambda each: each[:2], reverse=True)
        self.result = tuple(info for _, _, info in made)


def _last(db: sqlite3.Connection, thread: int) -> tuple[int, int] | None:
    """Number and time of a thread's own newest row."""
    newest = "SELECT key, at FROM entries WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"
    found = db.execute(newest, (thread << SHIFT, thread << SHIFT | MASK)).fetchone()
    return None if found is None else (found[0] & MASK, found[1])


class NextReady(Job[str | None]):
    """A thread whose time has come and that no live worker holds."""

    __slots__ = ("_now",)
    writes = False

    def __init__(self, now: datetime) -> None:
        super().__init__(None)
        self._now = micros(now)

    def apply(self, session: Session) -> None:
        """Look for it."""
        due = "SELECT name, worker, token FROM threads WHERE not_before <= ? AND name IS NOT NULL ORDER BY not_before"
        self.result = None
        for name, worker, token in session.db.execute(due, (self._now,)).fetchall():
            if living(session, worker, token) is None:
                self.result = name
                return


class Forking(Job[None]):
    """A thread that begins with the entries of another one, none of which is copied."""

    __slots__ = ("_at", "_bodies", "_into", "_name", "_row")

    def __init__(self, name: str, at: int, into: str, bodies: Sequence[Body]) -> None:
        super().__init__(None)
        self._name, self._at, self._into, self._bodies = name, at, into, bodies
        self._row: blobs.Row | None = None

    def prepare(self) -> None:
        """Encode what goes behind the shared entries."""
        if self._bodies:
            self._row = blobs.pack(to_json(self._bodies))

    def apply(self, session: Session) -> None:
        """Make the thread, and write what it begins with of its own."""
        owner = self._owner(session.db)
        self._make_room(session)
        now = session.now()
        thread = session.db.execute(_FORK, (self._into, now, owner, self._at)).lastrowid
        if self._row is not None:
            assert thread is not None
            key = thread << SHIFT | self._at + len(self._bodies)
            written = (key, uuid4().hex, now, self._row.body)
            session.db.execute("INSERT INTO entries (key, writer, at, body) VALUES (?, ?, ?, ?)", written)
            blobs.put(session.db, key, self._row.blobs)

    def _owner(self, db: sqlite3.Connection) -> int:
        """The thread whose own entry is the last one to be shared: a line of forks is as short as it can be."""
        found = db.execute("SELECT id, parent, parent_at FROM threads WHERE name=?", (self._name,)).fetchone()
        head = 0 if found is None else head_of(db, found[0], found[2])
        if not head:
            raise NothingToResume(f"there is no thread {self._name!r} to fork")
        if not 1 <= self._at <= head:
            raise JournalError(f"cannot fork {self._name!r} after entry {self._at}: it has the entries 1 to {head}")
        thread, parent, shared = found
        while parent is not None and self._at <= shared:
            thread = parent
            parent, shared = db.execute("SELECT parent, parent_at FROM threads WHERE id=?", (thread,)).fetchone()
        return int(thread)

    def _make_room(self, session: Session) -> None:
        taken = session.db.execute("SELECT id, parent_at FROM threads WHERE name=?", (self._into,)).fetchone()
        if taken is None:
            return
        if head_of(session.db, *taken) or busy(session, self._into) is not None:
            raise JournalError(f"cannot fork {self._name!r} into {self._into!r}: there is such a thread; name another")
        # Claimed once, and nothing was ever written to it.
        session.db.execute("DELETE FROM threads WHERE id=?", (taken[0],))


class Deleting(Job[bool]):
    """Forget a thread, except what its forks begin with."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__(result=False)
        self._name = name

    def apply(self, session: Session) -> None:
        """Delete what nothing else needs."""
        db = session.db
        session.settle()
        refusal = busy(session, self._name)
        if refusal is not None:
            raise refusal
        row = db.execute("SELECT id FROM threads WHERE name=?", (self._name,)).fetchone()
        self.result = row is not None
        if row is None:
            return
        db.execute(
            "UPDATE threads SET name=NULL, token='', worker=NULL, holder=NULL, not_before=NULL WHERE id=?", (row[0],)
        )
        thread: int | None = row[0]
        while thread is not None:
            thread = _trim(db, thread)


def _trim(db: sqlite3.Connection, thread: int) -> int | None:
    """Delete of a deleted thread what no fork needs; gives its parent where that may shrink as well."""
    name, parent = db.execute("SELECT name, parent FROM threads WHERE id=?", (thread,)).fetchone()
    if name is not None:
        return None
    (needed,) = db.execute("SELECT max(parent_at) FROM threads WHERE parent=?", (thread,)).fetchone()
    base, end = thread << SHIFT, thread << SHIFT | MASK
    first = after = base
    if needed is not None:
        # The row that holds the last entry that is needed may end behind it.
        holds = "SELECT min(key) FROM entries WHERE key BETWEEN ? AND ?"
        first, after = db.execute(holds, (base | needed, end)).fetchone()[0] + 1, (base | needed) + 1
    db.execute("DELETE FROM entries WHERE key BETWEEN ? AND ?", (first, end))
    db.execute("DELETE FROM snapshots WHERE key BETWEEN ? AND ?", (after, end))
    blobs.collect(db, [*blobs.drop(db, first, end), *blobs.drop(db, -end, -after)])
    if needed is not None:
        return None
    db.execute("DELETE FROM threads WHERE id=?", (thread,))
    return None if parent is None else int(parent)


class Vacuuming(Job[int]):
    """Give the room of what was deleted back to the disk; the result is how many bytes that were."""

    __slots__ = ()
    grouped = False

    def __init__(self) -> None:
        super().__init__(0)

    def apply(self, session: Session) -> None:
        """Write the file anew."""
        before = session.size()
        session.db.execute("VACUUM")
        # Readers of other processes may need the log: then the next checkpoint does it.
        session.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.result = before - session.size()
