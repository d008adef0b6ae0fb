"""Adding entries, and reading them.

An append is one statement: it looks at the fence, moves the head and inserts a row, or does nothing. It names the head
that it expects, so it can be sent again when its answer was lost, and is stored once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import asyncpg

from locus.core.journal import Body, Entry
from locus.journal import Appended, Claim
from locus.journal.listing import about, progress
from locus_plugin_postgres.claims import find_held
from locus_plugin_postgres.errors import PostgresUnreachable
from locus_plugin_postgres.rows import about_of, body_of, encode, entries_of, key_of
from locus_plugin_postgres.session import Held, Session

__all__ = ["append", "read", "read_head"]

_APPEND = """
WITH t AS (
    UPDATE {s}.threads SET head = head + $4, tip = $2, status = $6, node = $7, about = coalesce($8, about),
        updated = clock_timestamp()
    WHERE id = $1 AND token = $2 AND head = $3
    RETURNING id
)
INSERT INTO {s}.entries (thread, last, first, writer, parent, at, status, node, body)
SELECT id, $3 + $4, $3 + 1, $2, $5, clock_timestamp(), $6, $7, $9 FROM t
"""

_IS_STORED = "SELECT 1 FROM {s}.entries WHERE thread = $1 AND last = $2 AND first = $3 AND writer = $4"

_IS_HELD = "SELECT head FROM {s}.threads WHERE id = $1 AND token = $2"

_HEAD = "SELECT head FROM {s}.threads WHERE key = $1"

_READ = """
SELECT t.head, e.first, e.last, e.writer, e.parent, e.body
FROM {s}.threads t LEFT JOIN {s}.entries e ON e.thread = t.id AND e.last > $2
WHERE t.key = $1 ORDER BY e.last LIMIT $3
"""


async def append(session: Session, claim: Claim, bodies: Sequence[Body], forms: list[dict[str, Any]]) -> Appended:
    """Add entries, all or none.

    Args:
        session: of this store.
        claim: the right to it.
        bodies: the entries.
        forms: the same as JSON.
    """
    while True:
        held = await find_held(session, claim)
        if held is None:
            return Appended.FENCED
        try:
            found = await _append(session, held, claim, bodies, forms)
        except PostgresUnreachable as e:
            held.head = None
            if e.is_unknown:
                return Appended.UNKNOWN
            raise
        except BaseException:
            held.head = None
            raise
        if found is not None:
            return found
        held.head = None  # another store writes with this claim as well


async def _append(
    session: Session, held: Held, claim: Claim, bodies: Sequence[Body], forms: list[dict[str, Any]]
) -> Appended | None:
    head, count, token = held.head, len(bodies), claim.token
    assert head is not None
    after, known = progress(bodies, held.progress), about(bodies, held.about)
    said = None if known is held.about else about_of(known)
    body = body_of(forms) if forms else b""
    values = held.thread, token, head, count, held.tip, after.status, encode(after.node), said, body

    async def write(db: asyncpg.Connection, was_begun: bool) -> Appended | None:  # noqa: FBT001 - as it is called
        if count and await db.execute(session.sql(_APPEND), *values) == "INSERT 0 1":
            return Appended.OK
        if was_begun and await db.fetchval(session.sql(_IS_STORED), held.thread, head + count, head + 1, token):
            return Appended.OK  # by the call whose answer was lost
        there = await db.fetchval(session.sql(_IS_HELD), held.thread, token)
        if there is None:
            return Appended.FENCED
        return None if count else Appended.OK

    found = await session.run(write)
    if found is Appended.FENCED:
        session.lose_claim(token)
    elif found is Appended.OK and count:
        held.head, held.tip, held.progress, held.about = head + count, token, after, known
    return found


async def read(session: Session, thread_id: str, after: int, count: int | None = None) -> tuple[Entry, ...]:
    """The entries of a thread after a number, at most so many."""
    start = max(0, after)
    rows = await session.run(lambda db, _: db.fetch(session.sql(_READ), key_of(thread_id), start, count))
    if not rows:
        return ()
    head = rows[0]["head"]
    found = [row for row in rows if row["last"] is not None]
    upto = math.inf if count is None else start + count
    return tuple(entries_of(thread_id, found, start + 1, head, upto))


async def read_head(session: Session, thread_id: str) -> int:
    """The number of a thread's newest entry; 0 for an unknown one."""
    return await session.run(lambda db, _: db.fetchval(session.sql(_HEAD), key_of(thread_id))) or 0
