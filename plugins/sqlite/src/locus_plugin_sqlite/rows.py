"""Where a thread's rows lie, and how they become entries again.

A fork has no rows of what it shares: its first entries are its parent's, and its parent's may be those of another
thread. The line of these threads is walked whenever one is read; reading a thread that is no fork costs one look.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from locus.core.journal import Entry, StateDelta, Transition, apply
from locus.core.state import AgentState
from locus_plugin_sqlite.blobs import load, unpack
from locus_plugin_sqlite.bodies import from_json
from locus_plugin_sqlite.errors import FileDamaged

__all__ = ["MASK", "SHIFT", "Journal", "Part", "fold", "head_of", "journal", "line"]

#: A key is ``thread << SHIFT | number``.
SHIFT = 32
MASK = (1 << SHIFT) - 1


@frozen
class Part:
    """A part of a thread's journal: the entries ``after + 1`` to ``upto`` lie in the rows of one thread."""

    thread: int
    after: int
    upto: int


def line(db: sqlite3.Connection, thread: int) -> list[Part]:
    """The parts of a thread's journal, oldest first."""
    parts: list[Part] = []
    at: int | None = thread
    upto = MASK
    while at is not None:
        parent, shared = db.execute("SELECT parent, parent_at FROM threads WHERE id=?", (at,)).fetchone()
        parts.append(Part(at, shared or 0, upto))
        at, upto = parent, shared
    parts.reverse()
    return parts


def head_of(db: sqlite3.Connection, thread: int, shared: int | None) -> int:
    """Number of the newest entry of a thread; ``shared`` is how many it has from its parent."""
    last = "SELECT key FROM entries WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"
    row = db.execute(last, (thread << SHIFT, thread << SHIFT | MASK)).fetchone()
    return (shared or 0) if row is None else row[0] & MASK


@frozen
class Stored:
    """One row of entries: the number of its last one, and up to which they count."""

    last: int
    upto: int
    writer: str
    body: bytes


@frozen
class Journal:
    """The bytes of a thread, read in one transaction and decoded outside of it.

    Args:
        path: the file, for messages.
        name: the thread, for messages.
        rows: of entries, oldest first.
        chunks: of snapshots: the number of the entry, and the body.
        blobs: hash -> compressed content.
    """

    path: Path
    name: str
    rows: tuple[Stored, ...]
    chunks: tuple[tuple[int, bytes], ...]
    blobs: dict[str, bytes]

    def entries(self, start: int) -> list[Entry]:
        """The entries from a number on. The parent of the first is known where it is the first of the thread."""
        made: list[Entry] = []
        parent = ""
        for row in self.rows:
            if row.last >= start:
                forms = self._forms(row.last, row.body)
                first = row.last - len(forms) + 1
                skip = max(0, start - first)
                for n, body in enumerate(from_json(forms[skip : row.upto - first + 1]), first + skip):
                    made.append(Entry(n, row.writer, parent if n == first else f"{n - 1}:{row.writer}", body))
            parent = f"{min(row.last, row.upto)}:{row.writer}"
        return made

    def deltas(self) -> list[StateDelta]:
        """What became of the state from snapshot to snapshot, beginning with a blank one."""
        made: list[StateDelta] = []
        for at, body in self.chunks:
            (found,) = from_json(self._forms(at, body))
            if not isinstance(found, Transition):
                raise self._damaged(at)
            made.append(found.delta)
        return made

    def _forms(self, at: int, body: bytes) -> list[dict[str, object]]:
        try:
            return unpack(body, self.blobs)
        except (ValueError, LookupError, TypeError, zlib.error) as e:
            raise self._damaged(at) from e

    def _damaged(self, at: int) -> FileDamaged:
        return FileDamaged(
            self.path,
            f"entry {at} of thread {self.name!r} cannot be read; restore the file from a backup, or delete the thread",
        )


def journal(db: sqlite3.Connection, path: Path, name: str, thread: int, after: int | None, upto: int = MASK) -> Journal:
    """Read what is needed of a thread.

    Args:
        db: the connection, within a transaction.
        path: its file.
        name: the thread.
        thread: its row.
        after: number of the last entry that is known; None: read the snapshots, and the entries from the newest on.
        upto: number of the last entry that is wanted; the row that holds it is read whole.
    """
    parts = line(db, thread)
    chunks: list[tuple[int, bytes]] = []
    blobs: dict[str, bytes] = {}
    if after is None:
        for part in parts:
            first, last = part.thread << SHIFT, part.thread << SHIFT | part.upto
            within = "SELECT key, body FROM snapshots WHERE key BETWEEN ? AND ? ORDER BY key"
            found = [(key & MASK, body) for key, body in db.execute(within, (first, last))]
            if found:
                chunks += found
                blobs |= load(db, -last, -first)
        after = chunks[-1][0] if chunks else 0
    rows: list[Stored] = []
    for part in parts:
        if part.upto >= after and part.after < upto:
            rows += _rows(db, part, max(after, part.after + 1), blobs, upto)
    return Journal(path, name, tuple(rows), tuple(chunks), blobs)


def _rows(db: sqlite3.Connection, part: Part, start: int, blobs: dict[str, bytes], upto: int) -> list[Stored]:
    """The rows with the entries from ``start`` on: the first and the last may hold others beside these."""
    base = part.thread << SHIFT
    last = base | MASK
    stop = min(part.upto, upto)
    if stop != MASK:
        # The row that holds the last shared entry, or the last that is wanted, may end behind it.
        holds = "SELECT min(key) FROM entries WHERE key BETWEEN ? AND ?"
        last = db.execute(holds, (base | stop, last)).fetchone()[0] or last
    within = "SELECT key, writer, body FROM entries WHERE key BETWEEN ? AND ? ORDER BY key"
    found = db.execute(within, (base | start, last)).fetchall()
    if found:
        blobs |= load(db, base | start, last)
    return [Stored(key & MASK, part.upto, writer, body) for key, writer, body in found]


def fold(state: AgentState, deltas: Sequence[StateDelta]) -> AgentState:
    """The state after some changes."""
    for change in deltas:
        state = apply(state, change)
    return state
