"""The row of a thread: making it, and bringing what it is about up to date."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from attrs import evolve

from locus.journal.listing import NEW, About, Progress
from locus_plugin_sqlite.journal_rows import SHIFT, ThreadRow
from locus_plugin_sqlite.session import Held

__all__ = ["forget_name", "insert_thread", "parse_about", "read_held", "read_progress", "update_about"]

_MAKE = """
INSERT INTO threads (id, name, parent, parent_at, created, status, node, title, model, agent_id, metadata, head, tip,
                     checksum, token, changed, updated)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', coalesce((SELECT max(changed) FROM threads), 0) + 1, ?)
"""


def insert_thread(
    db: sqlite3.Connection,
    name: str,
    now: int,
    *,
    fork_of: tuple[int, int, int] | None = None,
    progress: Progress = NEW,
    about: About | None = None,
) -> ThreadRow:
    """Write the row of a new thread, which is not held.

    Args:
        db: the connection, in a transaction.
        name: of the thread.
        now: microseconds since 1970.
        fork_of: the thread that owns its first entries, how many these are, and the checksum of the row of the last.
        progress: of its newest run there.
        about: what it is about; None = not known yet.
    """
    (newest,) = db.execute("SELECT max(id) FROM threads").fetchone()
    parent, head, tip = fork_of or (None, 0, 0)
    about = about or About()
    row = ThreadRow(
        id=(newest or 0) + 1,
        name=name,
        parent=parent,
        parent_at=None if parent is None else head,
        created=now,
        status=progress.status,
        node=progress.node,
        title=about.title,
        model=about.model,
        agent_id=about.agent_id,
        metadata=json.dumps(dict(about.metadata)),
        head=head,
        tip=tip,
    )
    place = (row.id, name, parent, row.parent_at, now, row.status, row.node)
    known = (row.title, row.model, row.agent_id, row.metadata)
    db.execute(_MAKE, (*place, *known, head, tip, row.checksum, now))
    db.execute("UPDATE file SET threads=threads+1")
    return row


def update_about(db: sqlite3.Connection, row: ThreadRow, about: About) -> None:
    """Write what a thread is about."""
    metadata = json.dumps(dict(about.metadata))
    new = evolve(row, title=about.title, model=about.model, agent_id=about.agent_id, metadata=metadata)
    db.execute(
        "UPDATE threads SET title=?, model=?, agent_id=?, metadata=?, checksum=? WHERE id=?",
        (new.title, new.model, new.agent_id, new.metadata, new.checksum, new.id),
    )


def forget_name(db: sqlite3.Connection, row: ThreadRow) -> None:
    """Write that a thread was deleted; what its forks need is still there."""
    new = evolve(row, name=None)
    db.execute(
        "UPDATE threads SET name=NULL, token='', worker=NULL, holder=NULL, not_before=NULL, checksum=? WHERE id=?",
        (new.checksum, new.id),
    )


def parse_about(row: ThreadRow) -> About:
    """What a thread is about."""
    return About(row.title, row.model, row.agent_id, json.loads(row.metadata))


def read_progress(db: sqlite3.Connection, row: ThreadRow) -> Progress:
    """How far the newest run of a thread is."""
    newest = db.execute("SELECT status, node FROM entries WHERE key=?", (row.id << SHIFT | row.head,)).fetchone()
    return Progress(row.status, row.node) if newest is None else Progress(*newest)


def read_held(db: sqlite3.Connection, path: Path, row: ThreadRow) -> Held:
    """What the holder of a thread knows of it."""
    return Held(row.id, row.head, row.tip, read_progress(db, row), parse_about(row))
