"""Where a thread's rows lie, how they become entries again, and how damage is found on the way.

A fork has no rows of what it shares: its first entries are its parent's, and its parent's may be those of another
thread. The line of these threads is walked whenever one is read; reading a thread that is not a fork costs one look.

Every row that is read is compared with its checksum, and with the row before it: its first entry has the next number,
and its parent is that row. The last one must be the thread's newest. What fails this is an `EntryDamaged` with the
number of the first entry that cannot be trusted.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from attrs import frozen

from locus.core.errors import CheckpointError
from locus.core.journal import Body, Entry, Fold, StateDelta, Transition, entry_from_json
from locus.core.state import AgentState
from locus_plugin_sqlite.blobs import load, unpack, unpack_texts
from locus_plugin_sqlite.checks import body_check, row_check, thread_check
from locus_plugin_sqlite.errors import EntryDamaged, FileDamaged
from locus_plugin_sqlite.schema import IDENTITY

__all__ = [
    "MASK",
    "SHIFT",
    "Form",
    "Journal",
    "Part",
    "StoredRow",
    "ThreadRow",
    "find_parts",
    "fold",
    "read_journal",
    "read_thread_row",
]

#: A key is ``thread << SHIFT | number``.
SHIFT = 32
MASK = (1 << SHIFT) - 1

T = TypeVar("T")

#: An entry as it is stored: its number, its writer, its parent, and the JSON text of what happened.
Form: TypeAlias = tuple[int, str, str, bytes]

_ROWS = "SELECT key, writer, at, parent, status, node, content, checksum, body FROM entries"
_SNAPSHOTS = "SELECT key, parent, content, checksum, body FROM snapshots"


@frozen
class ThreadRow:
    """The row of a thread: what it is, and where its journal ends.

    Args:
        head: number of its newest entry.
        tip: checksum of the row that holds it.
        status: of its newest run, there or in the row of its newest entry.
        node: where that goes on.
    """

    id: int
    name: str | None
    parent: int | None
    parent_at: int | None
    created: int
    status: str
    node: str
    title: str
    model: str
    agent_id: str
    metadata: str
    head: int
    tip: int

    @property
    def checksum(self) -> int:
        """Of what the thread is."""
        return thread_check(
            self.id,
            self.name,
            self.parent,
            self.parent_at,
            self.created,
            self.status,
            self.node,
            self.title,
            self.model,
            self.agent_id,
            self.metadata,
        )


def read_thread_row(db: sqlite3.Connection, path: Path, where: str, value: Any) -> ThreadRow | None:
    """The row of a thread, compared with its checksum.

    Args:
        db: the connection.
        path: its file.
        where: ``"name"`` or ``"id"``.
        value: the name or the number.

    Raises:
        EntryDamaged: it is not what was written.
    """
    found = db.execute(f"SELECT {IDENTITY}, head, tip, checksum FROM threads WHERE {where}=?", (value,)).fetchone()  # noqa: S608
    return None if found is None else check_thread_row(path, found)


def check_thread_row(path: Path, found: Sequence[Any]) -> ThreadRow:
    """A thread's row from its columns, compared with its checksum.

    Raises:
        EntryDamaged: it is not what was written.
    """
    row = ThreadRow(*found[:-1])
    if row.checksum != found[-1] or type(row.head) is not int or type(row.tip) is not int:
        raise EntryDamaged(path, str(row.name), None, "is damaged: its row is not what was written")
    return row


@frozen
class Part:
    """A part of a thread's journal: the entries ``after + 1`` to ``upto`` lie in the rows of one thread."""

    thread: int
    after: int
    upto: int


def find_parts(db: sqlite3.Connection, path: Path, row: ThreadRow) -> list[Part]:
    """The parts of a thread's journal, oldest first.

    Raises:
        EntryDamaged: a thread that it was forked from is missing, or not what was written.
    """
    parts = [Part(row.id, row.parent_at or 0, MASK)]
    at, upto = row.parent, row.parent_at
    while at is not None and upto is not None:
        found = read_thread_row(db, path, "id", at)
        if found is None:
            raise EntryDamaged(path, str(row.name), upto, "is missing: the thread that it was forked from is not there")
        parts.append(Part(at, found.parent_at or 0, upto))
        at, upto = found.parent, found.parent_at
    parts.reverse()
    return parts


@frozen
class StoredRow:
    """One row of entries: the number of its last one, and up to which they count."""

    upto: int
    key: int
    writer: str
    at: int
    parent: int
    status: str
    node: str
    content: int
    checksum: int
    body: bytes

    @property
    def last(self) -> int:
        """The number of its last entry."""
        return self.key & MASK

    @property
    def is_whole(self) -> bool:
        """Whether it is what was written."""
        of_row = row_check(self.key, self.writer, self.at, self.parent, self.status, self.node, self.content)
        return type(self.body) is bytes and of_row == self.checksum and body_check(self.body) == self.content


@frozen
class Journal:
    """The bytes of a thread, read in one transaction and decoded outside of it.

    Args:
        path: the file, for messages.
        name: the thread, for messages.
        rows: of entries, oldest first.
        chunks: of snapshots, as they lie in the file.
        blobs: hash -> compressed content.
        head: number of the thread's newest entry, or of the last one that is wanted.
        tip: checksum of the row that holds the newest; None where that one is not wanted.
    """

    path: Path
    name: str
    rows: tuple[StoredRow, ...]
    chunks: tuple[tuple[int, int, int, int, bytes], ...]
    blobs: dict[str, bytes]
    head: int
    tip: int | None

    @property
    def at(self) -> int:
        """The number of the entry whose state the newest snapshot is; 0 = without a snapshot."""
        return self.chunks[-1][0] & MASK if self.chunks else 0

    @property
    def mark(self) -> int:
        """The checksum of the newest snapshot."""
        return self.chunks[-1][3] if self.chunks else 0

    def entries(self, start: int) -> list[Entry]:
        """The entries from a number on. The parent of the first is known where it is the first of the thread.

        Raises:
            EntryDamaged: one of them is missing, or not what was written.
        """
        found = self._unpack(start, unpack)
        return [Entry(n, writer, parent, self._body(n, form)) for n, writer, parent, form in found]

    def forms(self, start: int) -> list[Form]:
        """The same as they are stored: number, writer, parent, and the JSON text of what happened.

        Raises:
            EntryDamaged: as for `entries`.
        """
        return self._unpack(start, unpack_texts)

    def _unpack(
        self, start: int, unpack_row: Callable[[bytes, Mapping[str, bytes]], list[T]]
    ) -> list[tuple[int, str, str, T]]:
        made: list[tuple[int, str, str, T]] = []
        parent = ""
        before: StoredRow | None = None
        reached = start - 1
        for row in self.rows:
            if not row.is_whole:
                raise self._damage_at(row.last)
            forms = self._forms(row.last, row.body, unpack_row)
            first = row.last - len(forms) + 1
            self._check_place(row, first, before, start)
            if row.last >= start:
                skip = max(0, start - first)
                for n, form in enumerate(forms[skip : row.upto - first + 1], first + skip):
                    made.append((n, row.writer, parent if n == first else f"{n - 1}:{row.writer}", form))
            before, reached = row, min(row.last, row.upto)
            parent = f"{reached}:{row.writer}"
        is_newest = self.tip is None or before is None or (reached, before.checksum) == (self.head, self.tip)
        if reached < self.head or not is_newest:
            raise self._damage_at(min(reached, self.head) + 1, "is missing, or is not the newest one")
        return made

    def _check_place(self, row: StoredRow, first: int, before: StoredRow | None, start: int) -> None:
        if before is None:
            if first > max(1, start) or (first == 1 and row.parent != 0):
                raise self._damage_at(start if first > start else 1, "is missing, or is not the first one")
            return
        expected = min(before.last, before.upto) + 1
        if first != expected:
            raise self._damage_at(expected, "is missing")
        if row.parent != before.checksum:
            raise self._damage_at(first, "does not continue the entry before it")

    def deltas(self) -> list[StateDelta]:
        """What became of the state from snapshot to snapshot, beginning with a blank one.

        Raises:
            EntryDamaged: a snapshot is missing, or not what was written.
        """
        made: list[StateDelta] = []
        before = 0
        for key, parent, content, checksum, body in self.chunks:
            at = key & MASK
            whole = type(body) is bytes and body_check(body) == content
            if not whole or row_check(key, "", 0, parent, "", "", content) != checksum:
                raise self._damage_at(at, "has a snapshot that is not what was written")
            if parent != before:
                raise self._damage_at(at, "has a snapshot that does not continue the one before it")
            forms = self._forms(at, body, unpack)
            found = self._body(at, forms[0]) if len(forms) == 1 else None
            if not isinstance(found, Transition):
                raise self._damage_at(at)
            made.append(found.delta)
            before = checksum
        return made

    def _forms(self, at: int, body: bytes, unpack_row: Callable[[bytes, Mapping[str, bytes]], list[T]]) -> list[T]:
        try:
            return unpack_row(body, self.blobs)
        except (ValueError, LookupError, TypeError, zlib.error) as e:
            raise self._damage_at(at) from e

    def _body(self, n: int, form: dict[str, object]) -> Body:
        try:
            return entry_from_json(form)
        except CheckpointError as e:
            e.add_note(f"in entry {n} of thread {self.name!r} of {self.path}")
            raise

    def _damage_at(self, n: int, what: str = "cannot be read") -> EntryDamaged:
        return EntryDamaged(self.path, self.name, n, what)


def read_journal(db: sqlite3.Connection, path: Path, row: ThreadRow, after: int | None, upto: int = MASK) -> Journal:
    """Read what is needed of a thread.

    Args:
        db: the connection, within a transaction.
        path: its file.
        row: of the thread.
        after: number of the last entry that is known; None: read the snapshots up to ``upto``, and the entries from the
            newest of them on.
        upto: number of the last entry that is wanted; the row that holds it is read whole.

    Raises:
        EntryDamaged: a row is missing.
    """
    parts = find_parts(db, path, row)
    chunks: list[tuple[int, int, int, int, bytes]] = []
    blobs: dict[str, bytes] = {}
    if after is None:
        for part in parts:
            first, last = part.thread << SHIFT, part.thread << SHIFT | min(part.upto, upto)
            found = db.execute(f"{_SNAPSHOTS} WHERE key BETWEEN ? AND ? ORDER BY key", (first, last)).fetchall()
            if found:
                chunks += found
                blobs |= load(db, -last, -first)
        after = chunks[-1][0] & MASK if chunks else 0
    rows: list[StoredRow] = []
    for part in parts:
        if part.upto >= after and part.after < upto:
            rows += _rows(db, path, row, part, max(after, part.after + 1), blobs, upto)
    tip = row.tip if upto >= row.head else None
    return Journal(path, str(row.name), tuple(rows), tuple(chunks), blobs, min(row.head, upto), tip)


def _rows(
    db: sqlite3.Connection, path: Path, row: ThreadRow, part: Part, start: int, blobs: dict[str, bytes], upto: int
) -> list[StoredRow]:
    """The rows with the entries from ``start`` on: the first and the last may hold others beside these."""
    base = part.thread << SHIFT
    last = base | MASK
    stop = min(part.upto, upto)
    if stop != MASK:
        # The row that holds the last shared entry, or the last that is wanted, may end behind it.
        holds = "SELECT min(key) FROM entries WHERE key BETWEEN ? AND ?"
        last = db.execute(holds, (base | stop, last)).fetchone()[0]
        if last is None:
            if stop <= row.head:
                raise EntryDamaged(path, str(row.name), stop, "is missing")
            last = base | MASK
    found = db.execute(f"{_ROWS} WHERE key BETWEEN ? AND ? ORDER BY key", (base | start, last)).fetchall()
    if found:
        blobs |= load(db, base | start, last)
    return [StoredRow(part.upto, *each) for each in found]


def fold(state: AgentState, deltas: Sequence[StateDelta]) -> AgentState:
    """The state after some changes."""
    folded = Fold(state)
    for change in deltas:
        folded.add(change)
    return folded.state()


def check_absent(db: sqlite3.Connection, path: Path, name: str, *, everything: bool) -> None:
    """Insist that a thread that was not found was never there.

    Args:
        db: the connection.
        path: its file.
        name: the thread that an index does not know.
        everything: whether to compare the row of each thread with its checksum, too; it takes a microsecond a thread.

    Raises:
        FileDamaged: the row of a thread is missing, is not what was written, or cannot be found by its name.
    """
    (expected,) = db.execute("SELECT threads FROM file").fetchone() or (None,)
    (count,) = db.execute("SELECT count(*) FROM threads").fetchone()
    if count != expected:
        raise FileDamaged(path, f"it had {expected} threads and has {count}; restore it from a backup")
    if not everything:
        return
    rows = db.execute(f"SELECT {IDENTITY}, head, tip, checksum FROM threads NOT INDEXED").fetchall()  # noqa: S608
    found = [check_thread_row(path, row) for row in rows]
    if len(found) != expected or any(row.name == name for row in found):
        raise FileDamaged(path, f"its index does not list all of its threads, such as {name!r}; restore it")
