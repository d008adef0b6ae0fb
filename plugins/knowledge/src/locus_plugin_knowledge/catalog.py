"""`SqliteCatalog`: rows in one SQLite file, found by words (FTS5, bm25) and by typed columns.

A row is kept as its JSON form under its key. Beside it are columns: those of `KnowledgeRow`, and one for each text,
number and boolean that the class of the rows adds; a class that grows adds columns, filled from the forms. Any number
of processes may read and write one file: a write is one transaction, and waits for another one.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import anyio.to_thread

from locus_plugin_knowledge.database import (
    columns_of,
    explain_error,
    fill_columns,
    form_of,
    names_of,
    prepare_file,
    writing,
)
from locus_plugin_knowledge.errors import CatalogError
from locus_plugin_knowledge.protocol import KnowledgeRow
from locus_plugin_knowledge.query import Found, conditions_of, match_of, quote_name, storable
from locus_plugin_knowledge.rows import read_row

__all__ = ["SqliteCatalog"]

T = TypeVar("T")

#: How much a word in the name, the tags and the rest counts.
_WEIGHTS = "8.0, 4.0, 1.0"


class SqliteCatalog:
    """A catalog in a file. Its methods may be called from any number of tasks.

    Args:
        path: the file, made by the first write; ``":memory:"`` for one that ends with this object.
        row_type: the class of the rows, whose plain fields become columns; rows of other classes are read as far as
            this one, or `KnowledgeRow`, knows them.
        busy_timeout: seconds to wait for another process's write.

    Raises:
        TypeError: the class is not a `KnowledgeRow`.
    """

    def __init__(
        self, path: str | Path, *, row_type: type[KnowledgeRow] = KnowledgeRow, busy_timeout: float = 10.0
    ) -> None:
        if not (isinstance(row_type, type) and issubclass(row_type, KnowledgeRow)):
            raise TypeError(f"row_type must be a KnowledgeRow class, got {row_type!r:.80}")
        self.path, self.row_type = str(path), row_type
        self._busy_timeout = busy_timeout
        self._columns = columns_of(row_type)
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"<SqliteCatalog {self.path!r} of {self.row_type.__name__}>"

    async def __aenter__(self) -> SqliteCatalog:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def aclose(self) -> None:
        """Close the file; the next use opens it again."""
        await self._in_thread(self._close)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``where=`` and ``order_by=`` may name."""
        return ("key", *self._columns)

    # -- writing ----------------------------------------------------------------------------------

    async def upsert(self, rows: Iterable[KnowledgeRow]) -> int:
        """Write rows, each in place of the one with its key, all or none; gives how many.

        Raises:
            TypeError: one is not a `KnowledgeRow`.
            ValueError: one is larger than 1 MB of JSON, or has an int of more than 64 bits in a column.
            CatalogError: the file cannot be written.
        """
        return await self._in_thread(partial(self._upsert, [(row, *form_of(row)) for row in rows]))

    async def delete(self, keys: Iterable[str]) -> int:
        """Delete the rows with these keys; gives how many there were.

        Raises:
            CatalogError: the file cannot be written.
        """
        return await self._in_thread(partial(self._delete, [storable(key) for key in keys]))

    # -- reading ----------------------------------------------------------------------------------

    async def get(self, key: str) -> KnowledgeRow | None:
        """The row with a key, or None."""
        found = await self.search("", 1, where={"key": key})
        return found[0].row if found else None

    async def count(self, where: Mapping[str, Any] | None = None) -> int:
        """How many rows there are; ``where`` as for `search`."""
        condition, values = conditions_of(where or {}, self.columns)
        found = await self._in_thread(partial(self._read, f"SELECT count(*) FROM rows WHERE {condition}", values))  # noqa: S608
        return int(found[0][0]) if found else 0

    async def search(
        self, query: str, limit: int = 10, *, where: Mapping[str, Any] | None = None, order_by: str | None = None
    ) -> tuple[Found, ...]:
        """The rows that have any of the query's words, the best first.

        Args:
            query: words; ``""`` for any row. Nothing in it is taken for an operator.
            limit: how many, from 1.
            where: column -> value, or ``(operator, value)`` with one of ``= != < <= > >=``.
            order_by: a column, ``-`` before it for the largest first; None = by how well they fit.

        Raises:
            ValueError: the column or the operator is unknown, no column can have the value, or the limit is below 1.
            CatalogError: the file cannot be read.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit must be an int of 1 or more, got {limit!r}")
        condition, values = conditions_of(where or {}, self.columns)
        order = "score DESC, key" if order_by is None else self._order(order_by)
        match = match_of(query)
        if not match and query.strip():
            return ()  # signs alone, which no row has
        if match:
            condition += " AND words MATCH ?"
            values.append(match)
            source, score = "words JOIN rows ON rows.id = words.rowid", f"-bm25(words, {_WEIGHTS})"
        else:
            source, score = "rows", "0.0"
        # All that is put into the text are names of columns, which are known, and constants.
        sql = f"SELECT data, {score} AS score FROM {source} WHERE {condition} ORDER BY {order} LIMIT ?"  # noqa: S608
        found = await self._in_thread(partial(self._read, sql, [*values, min(limit, 2**31)]))
        return tuple(Found(read_row(json.loads(data), self.row_type), float(score)) for data, score in found)

    def _order(self, order_by: str) -> str:
        name = order_by.removeprefix("-")
        conditions_of({name: None}, self.columns)
        return f"{quote_name(name)} {'DESC' if order_by.startswith('-') else 'ASC'} NULLS LAST, key"

    # -- in a worker thread -----------------------------------------------------------------------

    async def _in_thread(self, function: Callable[[], T]) -> T:
        # Not given up when cancelled: a write that has begun is whole, and its thread holds the lock.
        return await anyio.to_thread.run_sync(self._call_locked, function)

    def _call_locked(self, function: Callable[[], T]) -> T:
        with self._lock:
            try:
                return function()
            except sqlite3.Error as e:
                raise CatalogError(f"{self.path}: {explain_error(e, self._busy_timeout)}") from e

    def _upsert(self, kept: list[tuple[KnowledgeRow, str, tuple[str, str, str]]]) -> int:
        db = self._open(make=True)
        assert db is not None
        with writing(db):
            names = sorted(names_of(db))  # another process may have added some
            for row, data, words in kept:
                (number,) = db.execute(
                    "INSERT INTO rows (key, data) VALUES (?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET data = excluded.data RETURNING id",
                    (storable(row.key), data),
                ).fetchone()
                fill_columns(db, number, row, names)
                db.execute("DELETE FROM words WHERE rowid = ?", (number,))
                db.execute("INSERT INTO words (rowid, name, tags, body) VALUES (?, ?, ?, ?)", (number, *words))
        return len(kept)

    def _delete(self, keys: list[str]) -> int:
        db = self._open(make=False)
        if db is None:
            return 0
        count = 0
        with writing(db):
            for key in keys:
                for (number,) in db.execute("DELETE FROM rows WHERE key = ? RETURNING id", (key,)).fetchall():
                    db.execute("DELETE FROM words WHERE rowid = ?", (number,))
                    count += 1
        return count

    def _read(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        db = self._open(make=False)
        return [] if db is None else db.execute(sql, values).fetchall()

    def _close(self) -> None:
        if self._db is not None:
            self._finalizer()
            self._db = None

    def _open(self, *, make: bool) -> sqlite3.Connection | None:
        """The connection; None if the file does not exist and is not to be made."""
        if self._db is None:
            if not make and self.path != ":memory:" and not Path(self.path).exists():
                return None
            db = sqlite3.connect(self.path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False)
            try:
                prepare_file(db, self.path, self.row_type, self._busy_timeout)
            except BaseException:
                db.close()
                raise
            self._db = db
            # A catalog that is dropped closes its file; a connection that is not closed warns since Python 3.13.
            self._finalizer = weakref.finalize(self, db.close)
        return self._db
