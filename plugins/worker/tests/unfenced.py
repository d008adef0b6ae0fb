"""When this is imported, the store takes what a worker writes that has lost its claim.

A judge that does not notice is worth nothing.
"""

from __future__ import annotations

from typing import Any

from locus_plugin_sqlite import entries
from locus_plugin_sqlite.session import Session

_entries: Any = entries
_session: Any = Session


def _find_held(session: Any, claim: Any) -> Any:
    row = _entries.read_thread_row(session.db, session.path, "name", claim.thread_id)
    return None if row is None else _entries.read_held(session.db, session.path, row)


_entries._find_held = _find_held
_entries._APPEND = _entries._APPEND.replace("AND token=?", "AND ? IS NOT NULL")
_session._look_around = lambda self: None
