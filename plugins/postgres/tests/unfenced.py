"""When this is imported, the store takes what a worker writes that has lost its claim.

A judge that does not notice is worth nothing.
"""

from __future__ import annotations

from typing import Any

from locus_plugin_postgres import claims, entries, handle

_claims: Any = claims
_entries: Any = entries
_handle: Any = handle

_HELD = "SELECT id, head, tip, status, node, about FROM {s}.threads WHERE key = $1 AND $2::text <> ''"


async def _find_held(session: Any, claim: Any) -> Any:
    """What any worker has that had a claim once, at the head that the thread has now."""
    key = _entries.key_of(claim.thread_id), claim.token
    row = await session.run(lambda db, _: db.fetchrow(session.sql(_HELD), *key))
    return None if row is None else _claims._read_held(row)


async def _watch(session: Any) -> None:
    """Find no lost claim."""


_entries.find_held = _find_held
_entries._APPEND = _entries._APPEND.replace("AND token = $2 AND head", "AND head")
_handle.signals.watch = _watch
