"""SQLite without waiting for the disk: what a killed process has written is safe with the operating system.

For programs of these proofs that are about processes, and share a disk with everything else that is tested.
"""

from __future__ import annotations

import sqlite3
from typing import Any

__all__ = ["Unsynced", "connect_through"]

_OFF = "PRAGMA synchronous=off"

_connect = sqlite3.connect


class Unsynced(sqlite3.Connection):
    """A connection that leaves the disk to the operating system."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        super().execute(_OFF)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(_OFF if sql.startswith("PRAGMA synchronous") else sql, *parameters)


def connect_through(connection: type[sqlite3.Connection]) -> None:
    """Have every connection of this process that is opened from now on be of a class."""
    sqlite3.connect = lambda *args, **options: _connect(*args, factory=connection, **options)  # type: ignore[assignment]
