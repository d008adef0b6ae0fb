"""Threads as a whole: which there are, which want to go on, forks, and forgetting them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from locus.core.errors import JournalError, NothingToResume
from locus.journal import ThreadInfo, ThreadQuery
from locus.journal.listing import OPEN, Progress, progress, progress_of_fork, status_of, unknown_page
from locus_kit.entry_json import from_json, to_json
from locus_plugin_sqlite import blobs
from locus_plugin_sqlite.checks import body_check, row_check
from locus_plugin_sqlite.claims import busy_error, describe_holder, find_holder
from locus_plugin_sqlite.errors import EntryDamaged, FileUnusable
from locus_plugin_sqlite.journal_rows import MASK, SHIFT, ThreadRow, check_absent, check_thread_row, read_thread_row
from locus_plugin_sqlite.liveness import from_micros, micros
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.schema import IDENTITY
from locus_plugin_sqlite.thread_rows import forget_name, insert_thread, parse_about

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from locus.core.journal import Body
    from locus_plugin_sqlite.session import Session

__all__ = ["BackingUp", "Deleting", "Forking", "Listing", "NextReady", "Vacuuming"]

_COLUMNS = ", ".join(f"t.{name}" for name in f"{IDENTITY}, head, tip, checksum".split(", "))

#: A thread, who holds it, and the row of its newest entry; the tables themselves are read, not their indexes.
_THREADS = f"""
SELECT {_COLUMNS}, t.worker, t.token, t.holder, t.since, e.key, e.writer, e.at, e.parent, e.status, e.node, e.content,
       e.checksum, max(t.updated, coalesce(e.at, 0)) AS moved, t.changed, coalesce(e.status, t.status) AS run_status
FROM threads AS t NOT INDEXED LEFT JOIN entries AS e ON e.key = (t.id << {SHIFT}) | t.head
WHERE t.name IS NOT NULL
"""  # noqa: S608

_IDENTITY_COLUMNS = _COLUMNS.count(",") + 1

#: What JSON calls the type of a value of Python.
_JSON_TYPES = {str: "text", int: "integer", float: "real", type(None): "null"}


#: Threads that were deleted and that no fork needs: a deletion in pieces did not get to its end.
_LEFT = "SELECT id FROM threads WHERE name IS NULL AND id NOT IN (SELECT parent FROM threads WHERE parent IS NOT NULL)"

#: Rows that are deleted at once on a full disk: some 40 pages of the log.
_PIECE = 32


class Listing(Operation[tuple[ThreadInfo, ...]]):
    """The threads that a query selects, the most recently changed first."""

    __slots__ = ("_query",)
    writes = False

    def __init__(self, query: ThreadQuery | None) -> None:
        super().__init__(())
        self._query = query or ThreadQuery()

    def apply(self, session: Session) -> None:
        """Read the threads and the newest row of each."""
        query = self._query
        check_absent(session.db, session.path, "", everything=False)
        if query.limit is not None and query.limit < 1:
            return
        found: list[ThreadInfo] = []
        for info in self.select(session):
            if not query.status or info.status in query.status:
                found.append(info)
                if len(found) == query.limit:
                    break
        self.result = tuple(found)

    def select(self, session: Session) -> Iterator[ThreadInfo]:
        """The threads that the query selects, those with another status among them, in the order of the listing."""
        conditions, values = self._conditions(session)
        statement = f"SELECT * FROM ({_THREADS}) WHERE {' AND '.join(conditions)} ORDER BY moved DESC, changed DESC"  # noqa: S608
        for columns in session.db.execute(statement, values):
            try:
                yield _info(session, columns)
            except EntryDamaged:  # one thread, which is shown as such: the others can be read
                row = ThreadRow(*columns[: _IDENTITY_COLUMNS - 1])
                head = row.head if type(row.head) is int else 0
                yield ThreadInfo(thread_id=str(row.name), head=head, status="damaged")

    def _conditions(self, session: Session) -> tuple[list[str], list[Any]]:
        """What SQLite can decide; whether a holder lives is not in the file."""
        query = self._query
        conditions, values = ["true"], list[Any]()
        if query.updated_before is not None:
            conditions.append("moved < ?")
            values.append(micros(query.updated_before))
        for name, value in query.metadata.items():
            kind = str(value).lower() if isinstance(value, bool) else _JSON_TYPES.get(type(value), "")
            conditions.append("EXISTS (SELECT 1 FROM json_each(metadata) WHERE key=? AND type=? AND atom IS ?)")
            values += [name, kind, value]
        if query.agent_id is not None:
            conditions.append("agent_id = ?")
            values.append(query.agent_id)
        if query.status and "damaged" not in query.status:  # which only a reader finds out
            wanted = [OPEN if status == "crashed" else status for status in sorted(query.status)]
            held = "worker IS NOT NULL" if "running" in wanted else "false"
            conditions.append(f"(run_status IN ({', '.join('?' * len(wanted))}) OR {held})")
            values += wanted
        if query.after is not None:
            place = f"SELECT moved, changed FROM ({_THREADS}) WHERE name=?"  # noqa: S608
            at = session.db.execute(place, (query.after,)).fetchone()
            if at is None:
                raise unknown_page(query.after)
            conditions.append("(moved, changed) < (?, ?)")
            values += at
        return conditions, values


def _info(session: Session, columns: Sequence[Any]) -> ThreadInfo:
    """A thread for a listing.

    Raises:
        EntryDamaged: its row, or that of its newest entry, is not what was written.
    """
    row = check_thread_row(session.path, columns[:_IDENTITY_COLUMNS])
    worker, token, holder, since, key, writer, at, parent, status, node, content, checksum, moved, *_ = columns[
        _IDENTITY_COLUMNS:
    ]
    if key is None:
        if row.head != (row.parent_at or 0):
            raise EntryDamaged(session.path, str(row.name), row.head, "is missing")
        status, node = row.status, row.node
    elif row_check(key, writer, at, parent, status, node, content) != checksum or checksum != row.tip:
        raise EntryDamaged(session.path, str(row.name), row.head, "is not what was written")
    where, about = find_holder(session, worker, token), parse_about(row)
    return ThreadInfo(
        thread_id=str(row.name),
        head=row.head,
        holder=None if where is None else describe_holder(holder, where),
        updated_at=from_micros(moved),
        since=None if where is None else from_micros(since),
        status=status_of(status, is_held=where is not None),
        node=node,
        title=about.title,
        model=about.model,
        agent_id=about.agent_id,
        forked_from=_origin(session, row),
        created_at=from_micros(row.created),
        metadata=about.metadata,
    )


def _origin(session: Session, row: ThreadRow) -> str | None:
    """The thread whose entries a fork shares; where that one was deleted, the one whose entries it shared itself."""
    at = row.parent
    while at is not None:
        name, at = session.db.execute("SELECT name, parent FROM threads WHERE id=?", (at,)).fetchone() or (None, None)
        if name is not None:
            return str(name)
    return None


class NextReady(Operation[str | None]):
    """A thread whose time has come and that no live worker holds."""

    __slots__ = ("_now",)
    writes = False

    def __init__(self, now: datetime) -> None:
        super().__init__(None)
        self._now = micros(now)

    def apply(self, session: Session) -> None:
        """Look for it."""
        due = "SELECT id, worker, token FROM threads WHERE not_before <= ? AND name IS NOT NULL ORDER BY not_before"
        self.result = None
        for thread, worker, token in session.db.execute(due, (self._now,)).fetchall():
            if find_holder(session, worker, token) is None:
                row = read_thread_row(session.db, session.path, "id", thread)
                self.result = None if row is None else row.name
                return


class Forking(Operation[None]):
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
        db, path = session.db, session.path
        source = read_thread_row(db, path, "name", self._name)
        if source is None or not source.head:
            raise NothingToResume(f"thread {self._name!r} does not exist, so it cannot be forked")
        if not 1 <= self._at <= source.head:
            raise JournalError(
                f"cannot fork {self._name!r} after entry {self._at}: it has the entries 1 to {source.head}"
            )
        owner = self._owner(session, source)
        tip, there = self._newest_shared(session, owner)
        self._make_room(session)
        now = session.now()
        fork_of = (owner.id, self._at, tip)
        here = there if self._row is not None else progress_of_fork(there)
        made = insert_thread(db, self._into, now, fork_of=fork_of, progress=here, about=parse_about(source))
        if self._row is None:
            return
        key, writer, after = made.id << SHIFT | self._at + len(self._bodies), uuid4().hex, progress(self._bodies, there)
        content = body_check(self._row.body)
        checksum = row_check(key, writer, now, tip, after.status, after.node, content)
        written = (key, writer, now, tip, after.status, after.node, content, checksum, self._row.body)
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", written)
        blobs.put(db, key, self._row.blobs)

    def _owner(self, session: Session, source: ThreadRow) -> ThreadRow:
        """The thread whose own entry is the last one to be shared: a line of forks is as short as it can be."""
        thread = source
        while thread.parent is not None and self._at <= (thread.parent_at or 0):
            found = read_thread_row(session.db, session.path, "id", thread.parent)
            if found is None:
                raise EntryDamaged(session.path, self._name, self._at, "is missing")
            thread = found
        return thread

    def _newest_shared(self, session: Session, owner: ThreadRow) -> tuple[int, Progress]:
        """The checksum of the row that holds the last shared entry, and how far the newest run is there."""
        db, base, key = session.db, owner.id << SHIFT, owner.id << SHIFT | self._at
        row = "SELECT key, checksum, status, node, body FROM entries WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
        found = db.execute(row, (key, base | MASK)).fetchone()
        if found is None:
            raise EntryDamaged(session.path, self._name, self._at, "is missing")
        last, checksum, status, node, body = found
        if last == key:
            return checksum, Progress(status, node)
        before = "SELECT status, node FROM entries WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"
        earlier = db.execute(before, (base, key)).fetchone() or (owner.status, owner.node)
        forms = blobs.unpack(body, blobs.load(db, last, last))
        return checksum, progress(from_json(forms[: key - last]), Progress(*earlier))

    def _make_room(self, session: Session) -> None:
        taken = read_thread_row(session.db, session.path, "name", self._into)
        if taken is None:
            return
        if taken.head or busy_error(session, self._into) is not None:
            raise JournalError(
                f"cannot fork {self._name!r} into {self._into!r}: that thread exists already; choose another name"
            )
        # Claimed once, and nothing was ever written to it.
        _remove(session.db, taken.id)


class Deleting(Operation[bool]):
    """Forget a thread, except what its forks begin with.

    On a full disk, in pieces: SQLite logs every page that it takes a row from. The thread's name is deleted first; of
    what a crash leaves behind, the next deletion deletes the rest.
    """

    __slots__ = ("_head", "_name", "_thread")

    def __init__(self, name: str, head: int | None = None) -> None:
        super().__init__(result=False)
        self._name, self._head = name, head
        #: The thread, once its name was deleted in a transaction of its own.
        self._thread: int | None = None

    def apply(self, session: Session) -> None:
        """Delete what nothing else needs."""
        session.write_owed()
        thread = self._forget(session) if self._thread is None else self._thread
        self.result = thread is not None
        if thread is not None:
            for left in (thread, *(left for (left,) in session.db.execute(_LEFT).fetchall())):
                _trim_line(session.db, left)

    def _forget(self, session: Session) -> int | None:
        refusal = busy_error(session, self._name)
        if refusal is not None:
            raise refusal
        # Not compared with its checksum: a damaged thread can be deleted.
        found = session.db.execute(f"SELECT {IDENTITY}, head, tip FROM threads WHERE name=?", (self._name,)).fetchone()  # noqa: S608
        row = None if found is None else ThreadRow(*found)
        if row is None or self._head not in (None, row.head):
            return None
        forget_name(session.db, row)
        return row.id

    def squeeze(self, session: Session) -> None:
        """Delete it with the room that is held for that, or, where this is not enough, without a log."""
        session.release_reserve()
        try:
            self._delete_in_pieces(session)
        except sqlite3.Error:
            session.do_without_log()
        with session.transaction():
            self.apply(session)

    def _delete_in_pieces(self, session: Session) -> None:
        with session.transaction():
            session.write_owed()
            thread = self._forget(session)
        self._thread = thread
        going = thread is not None
        while thread is not None and going:
            with session.transaction():
                going = _delete_rows(session.db, thread)
            session.copy_log()

    def finish(self, session: Session) -> None:
        """Hold again what was let go for it."""
        session.restore_room()


def _remove(db: sqlite3.Connection, thread: int) -> None:
    db.execute("DELETE FROM threads WHERE id=?", (thread,))
    db.execute("UPDATE file SET threads=threads-1")


def _trim_line(db: sqlite3.Connection, thread: int | None) -> None:
    """Delete of a deleted thread what no fork needs, and of those that it is a fork of."""
    while thread is not None:
        thread = _trim(db, thread)


def _trim(db: sqlite3.Connection, thread: int) -> int | None:
    """Delete of a deleted thread what no fork needs; gives its parent where that may shrink as well."""
    name, parent = db.execute("SELECT name, parent FROM threads WHERE id=?", (thread,)).fetchone() or ("", None)
    if name is not None:
        return None
    first, after, end = _find_unneeded(db, thread)
    db.execute("DELETE FROM entries WHERE key BETWEEN ? AND ?", (first, end))
    db.execute("DELETE FROM snapshots WHERE key BETWEEN ? AND ?", (after, end))
    blobs.collect(db, [*blobs.drop(db, first, end), *blobs.drop(db, -end, -after)])
    if first != thread << SHIFT:
        return None
    _remove(db, thread)
    return None if parent is None else int(parent)


def _find_unneeded(db: sqlite3.Connection, thread: int) -> tuple[int, int, int]:
    """What no fork needs of a thread: the keys of the first row, of the first snapshot, and of the last of both."""
    (needed,) = db.execute("SELECT max(parent_at) FROM threads WHERE parent=?", (thread,)).fetchone()
    base, end = thread << SHIFT, thread << SHIFT | MASK
    if needed is None:
        return base, base, end
    # The row that holds the last entry that is needed may end behind it.
    holds = "SELECT min(key) FROM entries WHERE key BETWEEN ? AND ?"
    last = db.execute(holds, (base | needed, end)).fetchone()[0] or base | needed
    return last + 1, (base | needed) + 1, end


def _delete_rows(db: sqlite3.Connection, thread: int) -> bool:
    """Delete some of the rows that no fork needs, the newest first; whether there may be more."""
    first, after, end = _find_unneeded(db, thread)
    newest = "SELECT key FROM {} WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT ?"
    entries = [key for (key,) in db.execute(newest.format("entries"), (first, end, _PIECE))]
    snapshots = [key for (key,) in db.execute(newest.format("snapshots"), (after, end, _PIECE))]
    db.executemany("DELETE FROM entries WHERE key=?", [(key,) for key in entries])
    db.executemany("DELETE FROM snapshots WHERE key=?", [(key,) for key in snapshots])
    used = blobs.drop(db, entries[-1], end) if entries else []
    used += blobs.drop(db, -end, -snapshots[-1]) if snapshots else []
    blobs.collect(db, used)
    return bool(entries or snapshots)


class BackingUp(Operation[None]):
    """Copy the file as it is at one moment, by SQLite's own means; others may write meanwhile."""

    __slots__ = ("_into",)
    grouped = False

    def __init__(self, into: Path) -> None:
        super().__init__(None)
        self._into = into

    def apply(self, session: Session) -> None:
        """Copy it; no thread of the copy is held."""
        try:
            self._into.touch(0o600, exist_ok=False)
        except OSError as e:
            raise FileUnusable(self._into, f"it cannot be created: {e.strerror or e}") from e
        with closing(sqlite3.connect(self._into, isolation_level=None)) as copy:
            session.db.backup(copy)
            copy.execute("UPDATE threads SET token='', worker=NULL")
            copy.execute("DELETE FROM workers")


class Vacuuming(Operation[int]):
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
