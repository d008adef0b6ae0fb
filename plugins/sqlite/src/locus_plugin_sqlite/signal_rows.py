"""Reading signals."""

from __future__ import annotations

import sqlite3
from typing import Any

from locus.journal import Signal
from locus_kit.entry_json import from_bytes, from_json

__all__ = ["read_signals"]


def read_signals(db: sqlite3.Connection, thread: int, after: int = 0) -> tuple[Signal, ...]:
    """The signals of a thread behind a number that were not forgotten."""
    wanted = "SELECT n, id, body FROM signals WHERE thread=? AND n>? AND body IS NOT NULL ORDER BY n"
    made: list[Signal] = []
    for n, name, text in db.execute(wanted, (thread, after)).fetchall():
        body: Any = from_json(from_bytes(text))[0]
        made.append(Signal(body=body, id=name, n=n))
    return tuple(made)
