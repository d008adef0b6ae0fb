"""The states of runs that have yielded, for the next claim of their threads by this store.

A fold counts only while its thread ends with the row with which it ended then: of the same number, by the same writer.
Another store that has written since has written behind that row; the thread is then read from the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from locus_plugin_sqlite.journal_rows import MASK, SHIFT

if TYPE_CHECKING:
    import sqlite3

    from locus.core.state import AgentState
    from locus.journal import Snapshot
    from locus_kit.folds import Folds
    from locus_plugin_sqlite.journal_rows import ThreadRow

__all__ = ["KeptFold", "find_fold"]

_NEWEST = "SELECT key, checksum FROM snapshots WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"


@frozen
class KeptFold:
    """A state, and where the thread and its snapshots in the file ended then.

    Args:
        fold: the state after the newest transition.
        head: number of the thread's newest entry.
        token: of the claim that wrote that.
        at: number of the entry of the newest snapshot in the file; 0 = it had none.
        mark: checksum of that.
        state: the state there, from which the next one is written.
    """

    fold: Snapshot
    head: int
    token: str
    at: int
    mark: int
    state: AgentState

    def fits(self, db: sqlite3.Connection, row: ThreadRow) -> bool:
        """Whether the thread is as it was."""
        if row.head != self.head:
            return False
        key = row.id << SHIFT
        tip = db.execute("SELECT writer FROM entries WHERE key=?", (key | row.head,)).fetchone()
        newest = db.execute(_NEWEST, (key, key | MASK)).fetchone()
        return bool(tip == (self.token,) and newest == ((key | self.at, self.mark) if self.at else None))


def find_fold(folds: Folds[int, KeptFold], db: sqlite3.Connection, row: ThreadRow) -> KeptFold | None:
    """The one of a thread, if it still counts."""
    return folds.find(row.id, lambda kept: kept.fits(db, row))
