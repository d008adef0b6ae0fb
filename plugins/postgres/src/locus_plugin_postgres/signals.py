"""Signals: what is to reach a run, whichever process it is in."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from typing import Any

import asyncpg

from locus.core.errors import LocusError
from locus.core.journal import Submitted
from locus.journal import Claim, Signal
from locus_plugin_postgres.hints import key_of_queue
from locus_plugin_postgres.rows import bodies_of, body_of, decode, encode, key_of
from locus_plugin_postgres.session import Session

__all__ = ["find_signals", "forget", "send", "signals_of", "watch"]

_THREAD = "SELECT id FROM {s}.threads WHERE key = $1 FOR NO KEY UPDATE"

_KNOWN = "SELECT n FROM {s}.signals WHERE thread = $1 AND key = $2"

_SEND = """
INSERT INTO {s}.signals (thread, n, key, id, body)
SELECT $1, coalesce(max(n), 0) + 1, $2, $3, $4 FROM {s}.signals WHERE thread = $1
"""

#: The next turn of a thread that was in no queue puts it into its own.
_PLACE = """
INSERT INTO {s}.queue (thread, queue, priority, due, offer, ended, delivered, signalled)
VALUES ($1, $2, 0, clock_timestamp(), '', '', 0, false) ON CONFLICT (thread) DO NOTHING
"""

_RAISE = """
UPDATE {s}.queue SET signalled = true, due = CASE WHEN offer <> '' AND due > clock_timestamp() THEN due
    ELSE least(coalesce(due, clock_timestamp()), clock_timestamp()) END
WHERE thread = $1 RETURNING queue
"""

_LIST = """
SELECT s.n, s.id, s.body FROM {s}.signals s JOIN {s}.threads t ON t.id = s.thread
WHERE t.key = $1 AND s.body IS NOT NULL ORDER BY s.n
"""

#: The names are kept: a thread is sent each signal of a name once.
_FORGET = """
WITH t AS (SELECT id FROM {s}.threads WHERE key = $1 AND token = $2 FOR SHARE),
gone AS (UPDATE {s}.signals SET body = NULL WHERE thread IN (SELECT id FROM t) AND n = ANY($3::bigint[]))
SELECT count(*) FROM t
"""

_HELD = "SELECT id, token FROM {s}.threads WHERE id = ANY($1::bigint[])"

_NEW = "SELECT thread, n, id, body FROM {s}.signals WHERE thread = ANY($1::bigint[]) AND body IS NOT NULL ORDER BY n"


def _read(thread_id: str, row: asyncpg.Record) -> Signal:
    (body,) = bodies_of(thread_id, 1, 1, row["body"])
    return Signal(body=body, id=decode(row["id"]), n=row["n"])  # type: ignore[arg-type]  # as it was sent


async def send(session: Session, thread_id: str, signal: Signal, form: dict[str, Any]) -> bool:
    """Leave a signal at a thread, and have it offered at once."""
    name = encode(signal.id)
    key, body = hashlib.sha256(name).digest(), body_of([form])
    own = signal.body.queue if isinstance(signal.body, Submitted) else ""

    async def write(db: asyncpg.Connection, was_begun: bool) -> bool:  # noqa: FBT001 - as it is called
        thread = await db.fetchval(session.sql(_THREAD), key_of(thread_id))
        if thread is None:
            return False
        if await db.fetchval(session.sql(_KNOWN), thread, key) is not None:
            return was_begun
        await db.execute(session.sql(_SEND), thread, key, name, body)
        if own:
            await db.execute(session.sql(_PLACE), thread, encode(own))
        queue = await db.fetchval(session.sql(_RAISE), thread)
        if queue is not None:
            await session.hints.send(db, key_of_queue(decode(queue)))
        return True

    return await session.run(write, together="write")


async def find_signals(session: Session, db: asyncpg.Connection, thread_id: str) -> tuple[Signal, ...]:
    """The signals of a thread that were not forgotten."""
    rows = await db.fetch(session.sql(_LIST), key_of(thread_id))
    return tuple(_read(thread_id, row) for row in rows)


async def signals_of(session: Session, thread_id: str) -> tuple[Signal, ...]:
    """The same, by a connection of its own."""
    return await session.run(lambda db, _: find_signals(session, db, thread_id))


async def forget(session: Session, claim: Claim, numbers: Collection[int]) -> bool:
    """Forget some signals, where the claim is still valid."""
    values = key_of(claim.thread_id), claim.token, list(numbers)
    if not claim.token:
        return False
    return bool(await session.run(lambda db, _: db.fetchval(session.sql(_FORGET), *values)))


async def watch(session: Session) -> None:
    """Tell the runs of this store which claims are lost, and what signals came."""
    held = {token: each for token, each in session.held.items() if each.watch is not None}
    if not held:
        return
    ids = [each.thread for each in held.values()]
    with contextlib.suppress(LocusError):  # the next look finds the same

        async def look(db: asyncpg.Connection, _: object) -> tuple[Any, Any]:
            return await db.fetch(session.sql(_HELD), ids), await db.fetch(session.sql(_NEW), ids)

        there, new = await session.run(look)
        valid = {row["token"] for row in there}
        for token, each in held.items():
            assert each.watch is not None
            if token not in valid:
                session.lose_claim(token)
                continue
            for row in new:
                if row["thread"] == each.thread and row["n"] not in each.shown and each.watch.on_signal is not None:
                    each.shown.add(row["n"])
                    each.watch.signal(_read("", row))
