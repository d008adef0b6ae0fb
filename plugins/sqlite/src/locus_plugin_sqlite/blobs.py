r"""Large payloads, kept once: under the hash of their content, in rows of their own, for all that refer to them.

A tool result of a megabyte would otherwise stand in the journal four times. A row up to `LIMIT` is left alone, at no
cost; in a larger one each long text is lifted out. The text of a row then has one of three forms::

    [...]                      the entries
    {"lifted": [...]}          the entries; a text "\0<hash>" stands for a blob, and "\0\0..." for a text "\0..."
    {"blob": "<hash>"}         all of it lies in a blob: it is large without any long text
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen

from locus_plugin_sqlite.bodies import from_bytes, packed, to_bytes, unpacked

__all__ = ["LIMIT", "Row", "collect", "drop", "load", "pack", "put", "unpack"]

#: Bytes of JSON up to which a row holds everything itself.
LIMIT = 256 * 1024

#: Characters from which a text in a larger row becomes a blob.
_LONG = 32 * 1024

_MARK = "\0"


@frozen
class Row:
    """What is written for one append.

    Args:
        body: of the row.
        blobs: hash -> content of what was lifted out of it.
    """

    body: bytes
    blobs: Mapping[str, bytes] = field(factory=dict)


def pack(forms: list[Any]) -> Row:
    """A row from the JSON forms of its entries."""
    text = to_bytes(forms)
    if len(text) <= LIMIT:
        return Row(packed(text))
    found: dict[str, bytes] = {}
    text = to_bytes({"lifted": _walk(forms, lambda long: _lift(long, found))})
    if len(text) > LIMIT:
        text = to_bytes({"blob": _add(text, found)})
    return Row(packed(text) if text[:1] == b"[" else zlib.compress(text, 1), found)


def unpack(body: bytes, blobs: Mapping[str, bytes]) -> list[Any]:
    """The JSON forms of a row's entries.

    Args:
        body: of the row.
        blobs: hash -> compressed content, with at least those that the row uses.

    Raises:
        ValueError, KeyError, zlib.error: it is damaged.
    """
    form = from_bytes(unpacked(body))
    if isinstance(form, dict) and "blob" in form:
        form = from_bytes(zlib.decompress(blobs[form["blob"]]))
    if isinstance(form, dict):
        form = _walk(form["lifted"], lambda text: _restore(text, blobs))
    if not isinstance(form, list):
        raise ValueError(f"a list of entries was expected, not {form!r:.60}")
    return form


def _walk(form: Any, change: Callable[[str], str]) -> Any:
    if type(form) is str:
        return change(form)
    if type(form) is dict:
        return {key: _walk(value, change) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [_walk(value, change) for value in form]
    return form


def _lift(text: str, found: dict[str, bytes]) -> str:
    if len(text) >= _LONG:
        return _MARK + _add(text.encode("utf-8", "surrogatepass"), found)
    return _MARK + text if text[:1] == _MARK else text


def _add(content: bytes, found: dict[str, bytes]) -> str:
    sha = hashlib.sha256(content).hexdigest()
    found[sha] = content
    return sha


def _restore(text: str, blobs: Mapping[str, bytes]) -> str:
    if text[:1] != _MARK:
        return text
    if text[1:2] == _MARK:
        return text[1:]
    return zlib.decompress(blobs[text[1:]]).decode("utf-8", "surrogatepass")


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
    unused = "DELETE FROM blobs WHERE sha=?1 AND NOT EXISTS (SELECT 1 FROM uses WHERE sha=?1)"
    db.executemany(unused, [(sha,) for sha in candidates])
