"""Checking a whole file, and saving what can be read of a damaged one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from locus.core.errors import CheckpointError, JournalError
from locus.core.journal import Entry
from locus_plugin_sqlite.errors import EntryDamaged, FileUnusable
from locus_plugin_sqlite.failures import problem
from locus_plugin_sqlite.file import open_file
from locus_plugin_sqlite.journal_rows import Journal, ThreadRow, check_absent, check_thread_row, read_journal
from locus_plugin_sqlite.schema import IDENTITY
from locus_plugin_sqlite.settings import SqliteSettings

__all__ = ["Damage", "Salvaged", "Verified", "readable", "verify"]

_ROWS = f"SELECT {IDENTITY}, head, tip, checksum FROM threads NOT INDEXED WHERE name IS NOT NULL ORDER BY id"  # noqa: S608


@frozen(kw_only=True)
class Damage:
    """Something in a file that is not what was written.

    Args:
        thread_id: the thread; ``""`` where it is the file as a whole.
        n: number of its first entry that cannot be trusted; None where that is not known.
        message: what is wrong.
    """

    thread_id: str = ""
    n: int | None = None
    message: str


@frozen(kw_only=True)
class Verified:
    """What a check of a file found.

    Args:
        threads: how many threads were read.
        entries: how many entries these have.
        damage: what is wrong; empty for a file in good order.
    """

    threads: int
    entries: int
    damage: tuple[Damage, ...] = ()


@frozen(kw_only=True)
class Salvaged:
    """What was saved of a damaged file.

    Args:
        entries: the thread -> how many of its first entries are in the new file.
        damage: what was lost, and why.
    """

    entries: dict[str, int]
    damage: tuple[Damage, ...] = ()


def verify(path: Path) -> Verified:
    """Read every row of a file and compare it with its checksums. Runs that are under way go on meanwhile.

    Raises:
        FileProblem: it cannot be opened at all.
    """
    if not path.exists():
        raise FileUnusable(path, "the file does not exist")
    try:
        with closing(open_file(path, SqliteSettings())) as db:
            db.execute("BEGIN")  # one moment of the file
            return _verify(db, path)
    except sqlite3.Error as e:
        raise problem(e, path, SqliteSettings().busy_timeout) from e


def _verify(db: sqlite3.Connection, path: Path) -> Verified:
    damage: list[Damage] = []
    for (line,) in _until_error(db, "PRAGMA integrity_check(20)", damage):
        if line != "ok":
            damage.append(Damage(message=f"SQLite: {line}"))
    try:
        check_absent(db, path, "", everything=False)
    except JournalError as e:
        damage.append(Damage(message=str(e)))
    threads = entries = 0
    for columns in _until_error(db, _ROWS, damage):
        threads += 1
        name = str(columns[1])
        try:
            found = read_journal(db, path, check_thread_row(path, columns), None)
            found.deltas()
            entries += len(read_journal(db, path, check_thread_row(path, columns), 0).entries(1))
        except EntryDamaged as e:
            damage.append(Damage(thread_id=name, n=e.n, message=str(e)))
        except CheckpointError as e:
            damage.append(Damage(thread_id=name, message=f"thread {name!r} cannot be read here: {e}"))
        except sqlite3.Error as e:
            damage.append(Damage(thread_id=name, message=f"thread {name!r}: SQLite: {e}"))
    return Verified(threads=threads, entries=entries, damage=tuple(damage))


def _until_error(db: sqlite3.Connection, statement: str, damage: list[Damage]) -> Iterator[Any]:
    try:
        yield from db.execute(statement)
    except sqlite3.Error as e:
        damage.append(Damage(message=f"SQLite: {e}"))


def readable(path: Path, damage: list[Damage]) -> Iterator[tuple[str, list[Entry]]]:
    """Each thread with those of its first entries that are what was written.

    Args:
        path: the file; neither its header nor the description of its tables need be in order.
        damage: gets what cannot be read.

    Raises:
        FileProblem: nothing of it can be read.
    """
    if not path.exists():
        raise FileUnusable(path, "the file does not exist")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            seen: set[int] = set()
            # A page that cannot be read hides what lies behind it; from the other end, that can be reached.
            for statement in (_ROWS, f"{_ROWS} DESC"):
                for columns in _until_error(db, statement, damage):
                    if columns[0] not in seen:
                        seen.add(columns[0])
                        yield str(columns[1]), _first_entries(db, path, columns, damage)
    except sqlite3.Error as e:
        raise problem(e, path, 0.0) from e


def _first_entries(db: sqlite3.Connection, path: Path, columns: Any, damage: list[Damage]) -> list[Entry]:
    row, name = ThreadRow(*columns[:-1]), str(columns[1])
    try:
        if row.checksum != columns[-1]:
            damage.append(Damage(thread_id=name, message=f"thread {name!r}: its row is not what was written"))
        found = read_journal(db, path, row, 0)
    except (sqlite3.Error, JournalError, TypeError) as e:
        damage.append(Damage(thread_id=name, n=1, message=f"thread {name!r} is lost: {e}"))
        return []
    while True:
        try:
            return found.entries(1)
        except EntryDamaged as e:
            if not any(each.thread_id == name and each.n is not None for each in damage):
                damage.append(
                    Damage(
                        thread_id=name, n=e.n, message=f"entry {e.n} of thread {name!r} and what follows it are lost"
                    )
                )
            found = _before(found, e.n or 1)
        except CheckpointError as e:
            damage.append(Damage(thread_id=name, n=1, message=f"thread {name!r} cannot be read here: {e}"))
            return []


def _before(found: Journal, n: int) -> Journal:
    """What comes before an entry that cannot be trusted."""
    rows = tuple(row for row in found.rows if row.last < n)
    if len(rows) == len(found.rows):  # the entries are there; the thread's own row names another end
        rows = found.rows if found.head > (min(rows[-1].last, rows[-1].upto) if rows else 0) else rows[:-1]
    if not rows:
        return evolve(found, rows=(), head=0, tip=0)
    return evolve(found, rows=rows, head=min(rows[-1].last, rows[-1].upto), tip=rows[-1].checksum)
