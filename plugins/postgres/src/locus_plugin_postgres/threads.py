"""Threads as a whole: which there are, which want to go on, forks, and forgetting them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg

from locus.core.errors import JournalError, NothingToResume
from locus.core.journal import Body
from locus.journal import ThreadInfo, ThreadQuery
from locus.journal.listing import NEW, Progress, progress, progress_of_fork, status_of, unknown_page
from locus_plugin_postgres.claims import busy_error, holder_name
from locus_plugin_postgres.rows import about_from, bodies_of, body_of, decode, encode, key_of
from locus_plugin_postgres.session import Session

__all__ = ["delete", "fork", "next_ready", "threads"]

#: Seconds for what grows with the number of threads or entries.
_LONG = 300.0

#: Threads that are read at once where a query selects by what the server cannot see.
_PAGE = 1000

_THREADS = """
SELECT id, name, head, status, node, about, alive, worker, holder, since, updated, created, place, origin FROM (
    SELECT t.*, {alive} AS alive, (SELECT w.place FROM {s}.workers w WHERE w.id = t.worker) AS place,
        (SELECT p.name FROM {s}.threads p WHERE p.id = t.parent) AS origin
    FROM {s}.threads t
) AS t
"""

_ORDER = " ORDER BY updated DESC, id DESC LIMIT "

_SHOWN = "CASE WHEN alive THEN 'running' WHEN status = 'open' THEN 'crashed' ELSE status END"

_READY = """
SELECT name FROM {s}.threads t WHERE not_before <= $1 AND NOT {alive} ORDER BY not_before LIMIT 1
"""

_SOURCE = "SELECT id, head, about FROM {s}.threads WHERE key = $1 FOR KEY SHARE"

_LAST_SHARED = """
SELECT first, last, writer, status, node, body FROM {s}.entries WHERE thread = $1 AND last >= $2 ORDER BY last LIMIT 1
"""

_MAKE = """
INSERT INTO {s}.threads AS t
    (key, name, born, token, abandoned, created, updated, parent, head, tip, status, node, about)
VALUES ($1, $2, $3, '', false, clock_timestamp(), clock_timestamp(), $4, $5, $6, $7, $8, $9)
ON CONFLICT (key) DO UPDATE SET born = $3, token = '', worker = NULL, not_before = NULL, abandoned = false,
    created = clock_timestamp(), updated = clock_timestamp(), parent = $4, head = $5, tip = $6, status = $7, node = $8,
    about = $9
WHERE t.head = 0 AND NOT {alive}
RETURNING id
"""

_SHARE = (
    """
    INSERT INTO {s}.entries (thread, last, first, writer, parent, at, status, node, body)
    SELECT $1, least(last, $3), first, writer, parent, at, status, node, body FROM {s}.entries
    WHERE thread = $2 AND first <= $3
    """,
    """
    INSERT INTO {s}.snapshots (thread, at, before, body)
    SELECT $1, at, before, body FROM {s}.snapshots WHERE thread = $2 AND at <= $3
    """,
)

_ADD = """
INSERT INTO {s}.entries (thread, last, first, writer, parent, at, status, node, body)
VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6, $7, $8)
"""

_FORGET = (
    "UPDATE {s}.threads SET parent = (SELECT parent FROM {s}.threads WHERE id = $1) WHERE parent = $1",
    "DELETE FROM {s}.entries WHERE thread = $1",
    "DELETE FROM {s}.snapshots WHERE thread = $1",
    "DELETE FROM {s}.queue WHERE thread = $1",
    "DELETE FROM {s}.signals WHERE thread = $1",
    "DELETE FROM {s}.threads WHERE id = $1",
)


async def threads(session: Session, query: ThreadQuery) -> tuple[ThreadInfo, ...]:
    """The threads that a query selects, the most recently changed first."""
    if query.limit is not None and query.limit < 1:
        return ()
    return await session.run(lambda db, _: _list(session, db, query), together="read", patience=_LONG)


async def _list(session: Session, db: asyncpg.Connection, query: ThreadQuery) -> tuple[ThreadInfo, ...]:
    conditions, values = ["true"], list[Any]()

    def require(condition: str, *given: Any) -> None:
        conditions.append(condition.format(*(f"${len(values) + n}" for n in range(1, len(given) + 1))))
        values.extend(given)

    if query.updated_before is not None:
        require("updated < {}", query.updated_before)
    if query.status:
        require(f"{_SHOWN} = ANY({{}})", sorted(query.status))
    if query.after is not None:
        place = "SELECT updated, id FROM {s}.threads WHERE key = $1"
        at = await db.fetchrow(session.sql(place), key_of(query.after))
        if at is None:
            raise unknown_page(query.after)
        require("(updated, id) < ({}, {})", *at)
    found: list[ThreadInfo] = []
    # What a thread is about is opaque to the server.
    looks_inside = bool(query.metadata) or query.agent_id is not None
    while True:
        page = min(query.limit or _PAGE, _PAGE) if not looks_inside else _PAGE
        statement = f"{_THREADS} WHERE {' AND '.join(conditions)} {_ORDER} {page}"
        rows = await db.fetch(session.sql(statement), *values)
        found += [info for info in (_info(session, row) for row in rows) if _selects(query, info)]
        if len(rows) < page or (query.limit is not None and len(found) >= query.limit):
            return tuple(found[: query.limit])
        last = rows[-1]
        require("(updated, id) < ({}, {})", last["updated"], last["id"])


def _selects(query: ThreadQuery, info: ThreadInfo) -> bool:
    if query.agent_id is not None and info.agent_id != query.agent_id:
        return False
    return all(
        name in info.metadata and type(info.metadata[name]) is type(value) and info.metadata[name] == value
        for name, value in query.metadata.items()
    )


def _info(session: Session, row: asyncpg.Record) -> ThreadInfo:
    """A thread for a listing."""
    known, alive = about_from(row["about"]), row["alive"]
    return ThreadInfo(
        thread_id=decode(row["name"]),
        head=row["head"],
        holder=holder_name(session, row) if alive else None,
        updated_at=row["updated"],
        since=row["since"] if alive else None,
        status=status_of(row["status"], is_held=alive),
        node=decode(row["node"]),
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        forked_from=None if row["origin"] is None else decode(row["origin"]),
        created_at=row["created"],
        metadata=known.metadata,
    )


async def next_ready(session: Session, now: datetime) -> str | None:
    """A thread whose time has come and that no live worker holds."""
    found = await session.run(lambda db, _: db.fetchval(session.sql(_READY), now))
    return None if found is None else decode(found)


async def delete(session: Session, thread_id: str, head: int | None) -> bool:
    """Forget a thread; its forks have what they share with it."""

    async def forget(db: asyncpg.Connection, was_begun: bool) -> bool:  # noqa: FBT001 - as it is called
        find = "SELECT id, head FROM {s}.threads WHERE key = $1 FOR UPDATE"
        row = await db.fetchrow(session.sql(find), key_of(thread_id))
        if row is None:
            return was_begun
        refusal = await busy_error(session, db, thread_id)
        if refusal is not None:
            raise refusal
        if head is not None and row["head"] != head:
            return False
        for statement in _FORGET:
            await db.execute(session.sql(statement), row["id"])
        return True

    return await session.run(forget, together="write", patience=_LONG)


async def fork(
    session: Session, thread_id: str, at: int, into: str, bodies: Sequence[Body], forms: list[dict[str, Any]], born: str
) -> None:
    """A thread that begins with the entries of another one, in one transaction.

    Args:
        session: of this store.
        thread_id: see `JournalStore.fork`, as for the next three.
        at: see there.
        into: see there.
        bodies: see there.
        forms: the bodies as JSON.
        born: names this fork, and the writer of the bodies; unique.
    """

    async def make(db: asyncpg.Connection, was_begun: bool) -> None:  # noqa: FBT001 - as it is called
        if was_begun:
            there = await db.fetchval(session.sql("SELECT born FROM {s}.threads WHERE key = $1"), key_of(into))
            if there == born:
                return
        source = await db.fetchrow(session.sql(_SOURCE), key_of(thread_id))
        if source is None or not source["head"]:
            raise NothingToResume(f"thread {thread_id!r} does not exist, so it cannot be forked")
        if not 1 <= at <= source["head"]:
            raise JournalError(f"cannot fork {thread_id!r} after entry {at}: it has the entries 1 to {source['head']}")
        tip, shared = await _find_shared(session, db, thread_id, source["id"], at)
        after = progress(bodies, shared) if bodies else progress_of_fork(shared)
        head = at + len(bodies)
        values = source["id"], head, born if bodies else tip, after.status, encode(after.node), source["about"]
        made = await db.fetchval(session.sql(_MAKE), key_of(into), encode(into), born, *values)
        if made is None:
            raise JournalError(
                f"cannot fork {thread_id!r} into {into!r}: that thread exists already; choose another name"
            )
        for statement in _SHARE:
            await db.execute(session.sql(statement), made, source["id"], at)
        if bodies:
            more = made, head, at + 1, born, tip, after.status, encode(after.node), body_of(forms)
            await db.execute(session.sql(_ADD), *more)

    await session.run(make, together="write", patience=_LONG)


async def _find_shared(
    session: Session, db: asyncpg.Connection, thread_id: str, thread: int, at: int
) -> tuple[str, Progress]:
    """The writer of the last shared entry, and how far the newest run is there."""
    row = await db.fetchrow(session.sql(_LAST_SHARED), thread, at)
    if row is None:
        raise JournalError(f"cannot fork {thread_id!r} after entry {at}: that entry is missing")
    if row["last"] == at:
        return row["writer"], Progress(row["status"], decode(row["node"]))
    before = "SELECT status, node FROM {s}.entries WHERE thread = $1 AND last = $2"
    earlier = await db.fetchrow(session.sql(before), thread, row["first"] - 1)
    start = NEW if earlier is None else Progress(earlier["status"], decode(earlier["node"]))
    bodies = bodies_of(thread_id, row["first"], row["last"], row["body"])
    return row["writer"], progress(bodies[: at - row["first"] + 1], start)
