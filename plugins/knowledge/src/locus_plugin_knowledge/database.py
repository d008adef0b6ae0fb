"""The file of a catalog: its tables, its columns, and how it is written."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from typing import get_args

from attrs import fields, resolve_types

from locus.core import encode
from locus_plugin_knowledge.errors import CatalogError
from locus_plugin_knowledge.protocol import KnowledgeRow
from locus_plugin_knowledge.query import check_number, quote_name, storable
from locus_plugin_knowledge.rows import read_row

__all__ = ["columns_of", "explain_error", "fill_columns", "form_of", "names_of", "prepare_file", "writing"]

#: What marks the file as a catalog ("Lkno"), and the version of its tables.
APPLICATION_ID, VERSION = 0x4C6B6E6F, 1

#: The largest row, as JSON.
MAX_ROW_BYTES = 1_000_000

_TABLES = """
CREATE TABLE rows (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(name, tags, body, tokenize="porter unicode61 remove_diacritics 2");
"""

_KINDS = {str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}


def prepare_file(db: sqlite3.Connection, path: str, row_type: type[KnowledgeRow], busy_timeout: float) -> None:
    """Make the tables if the file is new, and the columns that the class of the rows adds.

    Raises:
        CatalogError: the file is another program's, of a newer version, or damaged.
    """
    db.execute("PRAGMA trusted_schema=OFF")  # the file may come from anybody: nothing in it may call functions
    # All of it at one moment: another process may be making the tables.
    with _transaction(db, "BEGIN"):
        found = db.execute("PRAGMA application_id").fetchone()[0]
        has_tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    if has_tables and found != APPLICATION_ID:
        raise CatalogError(f"{path} is a SQLite file, and not a catalog; give the catalog a file of its own")
    if version > VERSION:
        raise CatalogError(f"{path} was written by a newer version of the plugin, with tables of {version}")
    _use_wal(db, busy_timeout)
    columns = columns_of(row_type)
    with writing(db):
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in filter(str.strip, _TABLES.split(";")):
                db.execute(statement)
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            db.execute(f"PRAGMA user_version={VERSION}")
        missing = columns.keys() - names_of(db)
        for name in sorted(missing):
            db.execute(f"ALTER TABLE rows ADD COLUMN {quote_name(name)} {columns[name]}")
        if missing:
            _fill_old_rows(db, path, row_type, sorted(missing))


def _fill_old_rows(db: sqlite3.Connection, path: str, row_type: type[KnowledgeRow], names: Iterable[str]) -> None:
    """Set new columns of the rows that are kept already; one that cannot have a row's value is NULL there."""
    for number, data in db.execute("SELECT id, data FROM rows").fetchall():
        try:
            row = read_row(json.loads(data), row_type)
        except ValueError as e:
            # A ValueError would say that a row cannot be written.
            raise CatalogError(f"{path}: the row with the id {number} is damaged: {e}") from e
        for name in names:
            with contextlib.suppress(ValueError):
                fill_columns(db, number, row, [name])


def names_of(db: sqlite3.Connection) -> set[str]:
    """The columns that the file has, from whatever class."""
    return {row[1] for row in db.execute("PRAGMA table_info(rows)")} - {"id", "key", "data"}


def fill_columns(db: sqlite3.Connection, number: int, row: KnowledgeRow, names: Iterable[str]) -> None:
    """Set columns of a row; those that its class does not have are NULL.

    Raises:
        ValueError: a number is too large for a column.
    """
    values = {name: _cell(row, name) for name in names}
    if values:
        assigned = ", ".join(f"{quote_name(name)} = ?" for name in values)
        db.execute(f"UPDATE rows SET {assigned} WHERE id = ?", [*values.values(), number])  # noqa: S608  # of columns


def _cell(row: KnowledgeRow, name: str) -> str | float | None:
    value = getattr(row, name, None)
    check_number(f"row {row.key!r:.80}: field {name!r}", value)
    if isinstance(value, str):
        return storable(value)
    return value if isinstance(value, int | float) else None


def columns_of(row_type: type[KnowledgeRow]) -> dict[str, str]:
    """The columns of a class: its fields that are texts, numbers or booleans, maybe None, with their types in SQL."""
    columns: dict[str, str] = {}
    taken = {"id", "key", "data", "score", "rowid", "oid", "_rowid_"}
    for each in fields(resolve_types(row_type)):
        kinds = [kind for kind in get_args(each.type) or (each.type,) if kind is not type(None)]
        if len(kinds) == 1 and kinds[0] in _KINDS and each.name.lower() not in taken:
            taken.add(each.name.lower())
            columns[each.name] = _KINDS[kinds[0]]
    return columns


def form_of(row: KnowledgeRow) -> tuple[str, tuple[str, str, str]]:
    """A row as it is kept: its JSON form, and its words."""
    if not isinstance(row, KnowledgeRow):
        raise TypeError(f"a catalog keeps KnowledgeRows, got {row!r:.80}")
    data = json.dumps(encode(row))
    if len(data) > MAX_ROW_BYTES:
        raise ValueError(f"row {row.key!r:.80} has {len(data):,} bytes of JSON; at most {MAX_ROW_BYTES:,} are kept")
    base = {each.name for each in fields(KnowledgeRow)}
    own = [getattr(row, each.name) for each in fields(type(row)) if each.name not in base]
    body = [*row.descriptions, row.search_text, *row.domains, *(text for text in own if isinstance(text, str))]
    words = row.name, " ".join(row.tags), "\n".join(body)
    return data, (storable(words[0]), storable(words[1]), storable(words[2]))


def writing(db: sqlite3.Connection) -> contextlib.AbstractContextManager[None]:
    """A transaction that writes: all of it, or nothing where it is left by an error."""
    return _transaction(db, "BEGIN IMMEDIATE")


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite may have ended the transaction by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _use_wal(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Let readers and a writer not wait for each other; SQLite does not wait by itself when two make it so at once."""
    until = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def explain_error(error: sqlite3.Error, busy_timeout: float) -> str:
    """What went wrong, and what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_BUSY:
        return f"another process kept it locked for {busy_timeout:g} s; nothing was written"
    if code is not None and code & 0xFF == sqlite3.SQLITE_NOTADB:
        return "it is not a SQLite file; give the catalog a file of its own"
    return f"{error}"
