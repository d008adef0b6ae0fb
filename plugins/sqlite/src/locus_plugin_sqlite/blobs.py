"""The blobs of rows: large texts, once for all the rows that use them, under the hash of their content."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping

from locus_kit.packing import LIMIT, NEAR, Row, pack, pack_texts, unpack, unpack_texts

__all__ = ["LIMIT", "NEAR", "Row", "collect", "drop", "load", "pack", "pack_texts", "put", "unpack", "unpack_texts"]


def put(db: sqlite3.Connection, key: int, blobs: Mapping[str, bytes]) -> None:
    """Write the blobs of a row, those that are not there yet."""
    for sha, content in blobs.items():
        name = bytes.fromhex(sha)
        if db.execute("SELECT 1 FROM blobs WHERE sha=?", (name,)).fetchone() is None:
            db.execute("INSERT INTO blobs (sha, body) VALUES (?, ?)", (name, zlib.compress(content, 1)))
        db.execute("INSERT OR IGNORE INTO uses (key, sha) VALUES (?, ?)", (key, name))


def load(db: sqlite3.Connection, first: int, last: int) -> dict[str, bytes]:
    """The blobs of the rows whose keys lie in a range: hash -> compressed content."""
    used = "SELECT sha FROM uses WHERE key BETWEEN ? AND ?"
    found = db.execute(f"SELECT sha, body FROM blobs WHERE sha IN ({used})", (first, last))  # noqa: S608
    return {sha.hex(): body for sha, body in found}


def drop(db: sqlite3.Connection, first: int, last: int) -> list[bytes]:
    """Forget that the rows whose keys lie in a range use blobs; gives what they used."""
    used = [sha for (sha,) in db.execute("SELECT DISTINCT sha FROM uses WHERE key BETWEEN ? AND ?", (first, last))]
    if used:
        db.execute("DELETE FROM uses WHERE key BETWEEN ? AND ?", (first, last))
    return used


def collect(db: sqlite3.Connection, candidates: Iterable[bytes]) -> None:
    """Delete those blobs that nothing uses any more."""
    unused = "DELETE FROM blobs WHERE sha=? AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.sha=blobs.sha)"
    db.executemany(unused, [(sha,) for sha in candidates])
