"""Threads that wait for a worker.

Taking is one statement that skips what another taker looks at. An offer is the row of its thread, due again when the
lease of the offer ends: what a dead worker was offered needs no one to clean up after it. `NOTIFY` in the transaction
of a submit is a hint that saves a waiting worker its next look, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from locus.core.journal import Body
from locus.journal import QueueDepth
from locus.journal.listing import NEW, About, about, progress
from locus_plugin_postgres.hints import key_of_queue
from locus_plugin_postgres.rows import about_of, body_of, decode, encode, key_of
from locus_plugin_postgres.session import Session

__all__ = ["depth", "end_offer", "extend", "give_back", "queues", "submit", "take"]

#: A thread, its first entries and its place, unless that thread has entries or a holder.
_SUBMIT = """
WITH t AS (
    INSERT INTO {s}.threads AS t (key, name, born, token, abandoned, created, updated, head, tip, status, node, about)
    VALUES ($1, $2, $3, '', false, clock_timestamp(), clock_timestamp(), $4, $3, $5, $6, $7)
    ON CONFLICT (key) DO UPDATE SET born = $3, token = '', worker = NULL, not_before = NULL, abandoned = false,
        created = clock_timestamp(), updated = clock_timestamp(), head = $4, tip = $3,
        status = $5, node = $6, about = $7
    WHERE t.head = 0 AND NOT {alive}
    RETURNING id
), e AS (
    INSERT INTO {s}.entries (thread, last, first, writer, parent, at, status, node, body)
    SELECT id, $4, 1, $3, '', clock_timestamp(), $5, $6, $8 FROM t WHERE $4 > 0
), q AS (
    INSERT INTO {s}.queue (thread, queue, priority, due, offer, ended, delivered, signalled)
    SELECT id, $9, $10, coalesce($11, clock_timestamp()), '', '', 0, false FROM t
    ON CONFLICT (thread) DO UPDATE SET queue = $9, priority = $10, due = coalesce($11, clock_timestamp()), offer = '',
        delivered = 0, signalled = false
    RETURNING thread
)
SELECT pg_notify($12, $13) FROM q
"""

# The places are looked at one after the other until one has a thread: a function is scanned in its order. The time of
# the statement, and not that of the clock, can be looked up in an index.
_TAKE = """
WITH found AS (
    SELECT c.thread FROM unnest($1::bytea[], $2::smallint[]) AS w(queue, priority) CROSS JOIN LATERAL (
        SELECT q.thread FROM {s}.queue q
        WHERE q.queue = w.queue AND q.priority = w.priority AND q.due <= statement_timestamp()
        ORDER BY q.due LIMIT 1 FOR UPDATE SKIP LOCKED
    ) c LIMIT 1
)
UPDATE {s}.queue q SET due = clock_timestamp() + $3, offer = $4, delivered = delivered + 1, signalled = false
FROM found, {s}.threads t WHERE q.thread = found.thread AND t.id = q.thread
RETURNING t.name, t.id, q.queue, q.priority, q.delivered
"""

_NEXT = """
SELECT extract(epoch FROM min(c.due) - clock_timestamp())::float8
FROM unnest($1::bytea[], $2::smallint[]) AS w(queue, priority) CROSS JOIN LATERAL (
    SELECT q.due FROM {s}.queue q WHERE q.queue = w.queue AND q.priority = w.priority AND q.due IS NOT NULL
    ORDER BY q.due LIMIT 1
) c
"""

_EXTEND = "UPDATE {s}.queue SET due = clock_timestamp() + $3 WHERE thread = $1 AND offer = $2 RETURNING thread"

_END = """
UPDATE {s}.queue SET due = CASE WHEN signalled THEN clock_timestamp() ELSE clock_timestamp() + $3::interval END,
    offer = '', ended = $2, delivered = 0, signalled = false, queue = coalesce($4, queue)
WHERE thread = $1 AND offer = $2 RETURNING queue, due IS NULL OR due > clock_timestamp() AS sleeps
"""

_WAS_ENDED = "SELECT 1 FROM {s}.queue WHERE thread = $1 AND ended = $2"

_DEPTH = """
SELECT count(*) FILTER (WHERE due <= c) AS ready,
    count(*) FILTER (WHERE due > c AND offer <> '') AS held,
    count(*) FILTER (WHERE due > c AND offer = '') AS sleeping,
    min(due) FILTER (WHERE due <= c) AS oldest,
    count(*) FILTER (WHERE delivered > (due > c)::integer) AS redelivered
FROM {s}.queue, clock_timestamp() AS c WHERE queue = $1 AND due IS NOT NULL
"""


async def submit(
    session: Session,
    thread_id: str,
    bodies: Sequence[Body],
    forms: list[dict[str, Any]],
    place: tuple[str, int, datetime | None],
    born: str,
) -> bool:
    """Begin a thread and put it into a queue.

    Args:
        session: of this store.
        thread_id: the new thread.
        bodies: its first entries.
        forms: the same as JSON.
        place: queue, priority, and when it is to be offered first.
        born: names this submit, and the writer of the bodies; unique.
    """
    queue, priority, not_before = place
    after = progress(bodies, NEW)
    values = (
        *(key_of(thread_id), encode(thread_id), born, len(bodies), after.status, encode(after.node)),
        *(about_of(about(bodies, About())), body_of(forms), encode(queue), priority, not_before),
        *(session.hints.channel, key_of_queue(queue)),
    )

    async def write(db: asyncpg.Connection, was_begun: bool) -> bool:  # noqa: FBT001 - as it is called
        if await db.fetch(session.sql(_SUBMIT), *values):
            return True
        there = "SELECT 1 FROM {s}.threads WHERE key = $1 AND born = $2"
        return was_begun and await db.fetchval(session.sql(there), values[0], born) is not None

    return await session.run(write)


async def take(
    session: Session, places: Sequence[tuple[str, int]], token: str
) -> tuple[int, str, str, int, int] | float | None:
    """A thread of the first of these places that has one, or the seconds until there is one.

    Args:
        session: of this store.
        places: queues with priorities.
        token: of the offer.

    Returns:
        The row's id, thread, queue, priority and how often it was offered; or seconds, None = not by itself.
    """
    where = [encode(queue) for queue, _ in places], [priority for _, priority in places]

    async def look(db: asyncpg.Connection, was_begun: bool) -> Any:  # noqa: FBT001 - as it is called
        if was_begun:
            again = "SELECT t.name, t.id, q.queue, q.priority, q.delivered FROM {s}.queue q "
            again += "JOIN {s}.threads t ON t.id = q.thread WHERE q.offer = $1"
            row = await db.fetchrow(session.sql(again), token)
            if row is not None:
                return row
        row = await db.fetchrow(session.sql(_TAKE), *where, session.lease, token)
        return row or await db.fetchval(session.sql(_NEXT), *where)

    found = await session.run(look)
    if isinstance(found, asyncpg.Record):
        return found["id"], decode(found["name"]), decode(found["queue"]), found["priority"], found["delivered"]
    return None if found is None else float(found)


async def extend(session: Session, place: int, token: str) -> bool:
    """Have an offer for another lease."""
    found = await session.run(lambda db, _: db.fetchval(session.sql(_EXTEND), place, token, session.lease))
    return found is not None


async def end_offer(session: Session, place: int, token: str, delay: float | None, queue: str | None) -> bool:
    """End an offer, and have the thread due after so many seconds; None = when it is signalled."""
    after = None if delay is None else timedelta(seconds=delay)
    moved = None if queue is None else encode(queue)

    async def end(db: asyncpg.Connection, was_begun: bool) -> bool:  # noqa: FBT001 - as it is called
        row = await db.fetchrow(session.sql(_END), place, token, after, moved)
        if row is None:
            return was_begun and await db.fetchval(session.sql(_WAS_ENDED), place, token) is not None
        if not row["sleeps"]:
            await session.hints.send(db, key_of_queue(decode(row["queue"])))
        return True

    return await session.run(end)


async def give_back(session: Session, token: str) -> None:
    """Take an offer back whose caller was cancelled: it counts as never made."""
    undo = "UPDATE {s}.queue SET due = clock_timestamp(), offer = '', delivered = delivered - 1 WHERE offer = $1"
    await session.run(lambda db, _: db.execute(session.sql(undo), token))


async def depth(session: Session, queue: str) -> QueueDepth:
    """What is in a queue."""
    row = await session.run(lambda db, _: db.fetchrow(session.sql(_DEPTH), encode(queue)))
    return QueueDepth(**row)


async def queues(session: Session) -> tuple[str, ...]:
    """The queues with something in them."""
    find = "SELECT DISTINCT queue FROM {s}.queue WHERE due IS NOT NULL"
    rows = await session.run(lambda db, _: db.fetch(session.sql(find)))
    return tuple(sorted(decode(row["queue"]) for row in rows))
