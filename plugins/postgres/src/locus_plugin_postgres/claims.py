"""Taking a thread and giving it back.

A claim is one statement, which writes a new token where the thread is free: that fences every older claim. Leases
decide who may try, by the clock of the server alone.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

import asyncpg
from attrs import evolve

from locus.core.errors import JournalDamaged, ThreadBusy
from locus.core.journal import BLANK, Fold, Transition, delta, entry_to_json
from locus.core.state import AgentState
from locus.journal import Claim, Snapshot
from locus.journal.listing import Progress
from locus_plugin_postgres.errors import PostgresProblem
from locus_plugin_postgres.folds import KeptFold
from locus_plugin_postgres.rows import about_from, body_of, build_claim, decode, encode, entries_of, key_of
from locus_plugin_postgres.session import Held, Session
from locus_plugin_postgres.signals import find_signals

__all__ = [
    "SNAPSHOT_EVERY",
    "busy_error",
    "claim",
    "find_held",
    "holder_name",
    "peek",
    "release",
    "renew",
    "snapshot",
    "state_at",
]

#: After how many entries a snapshot is written.
SNAPSHOT_EVERY = 256

_CLAIM = """
INSERT INTO {s}.threads AS t (key, name, born, token, worker, holder, since, lease, abandoned, created, updated,
    head, tip, status, node, about)
VALUES ($1, $2, $3, $3, $4, $5, clock_timestamp(), $6, false, clock_timestamp(), clock_timestamp(),
    0, '', 'new', '', '{}')
ON CONFLICT (key) DO UPDATE SET token = $3, worker = $4, holder = $5, since = clock_timestamp(), lease = $6,
    updated = clock_timestamp(), abandoned = CASE WHEN t.token = $3 THEN t.abandoned ELSE t.token <> '' END
WHERE t.token = $3 OR NOT {alive}
RETURNING id, head, tip, status, node, about, abandoned
"""

_HOLDER = """
SELECT t.holder, t.since, t.worker, {alive} AS alive,
    (SELECT w.place FROM {s}.workers w WHERE w.id = t.worker) AS place
FROM {s}.threads t WHERE key = $1
"""

_THREAD = "SELECT id, head, tip, t.token <> '' AND NOT {alive} AS abandoned FROM {s}.threads t WHERE key = $1"

#: The snapshots of a thread up to an entry, and its appends up to there from the one that holds the newest of them on.
_JOURNAL = """
SELECT before AS first, at AS last, '' AS writer, '' AS parent, body FROM {s}.snapshots
WHERE thread = $1 AND at <= $3 AND $2
UNION ALL
SELECT first, last, writer, parent, body FROM {s}.entries WHERE thread = $1 AND first <= $3 AND last >= CASE WHEN $2
    THEN coalesce((SELECT max(at) FROM {s}.snapshots WHERE thread = $1 AND at <= $3), 0) ELSE 0 END
ORDER BY last
"""

#: The number of the newest snapshot of a thread, and its appends that hold entries after a number.
_TAIL = """
SELECT newest.at, e.first, e.last, e.writer, e.parent, e.body
FROM (SELECT coalesce(max(at), 0) AS at FROM {s}.snapshots WHERE thread = $1) newest
LEFT JOIN {s}.entries e ON e.thread = $1 AND e.last > $2
ORDER BY e.last
"""

_RENEW = "UPDATE {s}.threads SET lease = $3 WHERE key = $1 AND token = $2 RETURNING id"

_FIND = "SELECT id, head, tip, status, node, about FROM {s}.threads WHERE key = $1 AND token = $2"

#: The lock lets no claim come between the look at the fence and the write.
_SNAPSHOT = """
WITH t AS (SELECT id FROM {s}.threads WHERE id = $1 AND token = $2 AND head >= $3 FOR SHARE),
made AS (INSERT INTO {s}.snapshots (thread, at, before, body) SELECT id, $3, $4, $5 FROM t ON CONFLICT DO NOTHING)
SELECT count(*) FROM t
"""


def holder_name(session: Session, row: asyncpg.Record) -> str:
    """What the holder of a thread calls itself, and where it is unless that is here."""
    name, place = decode(row["holder"]), row["place"]
    return name if row["worker"] == session.worker or not place else f"{name}, {place}"


async def busy_error(session: Session, db: asyncpg.Connection, thread_id: str) -> ThreadBusy | None:
    """The refusal for a thread that a live worker holds."""
    row = await db.fetchrow(session.sql(_HOLDER), key_of(thread_id))
    if row is None or not row["alive"]:
        return None
    return ThreadBusy(thread_id, holder_name(session, row), row["since"].isoformat())


async def claim(session: Session, thread_id: str, worker: str, token: str) -> Claim:
    """Take a thread.

    Args:
        session: of this store.
        thread_id: the thread.
        worker: what the claimant calls itself.
        token: of the claim; known to the caller, who may stop waiting and give it back.

    Raises:
        ThreadBusy: a live worker holds it.
    """
    key = key_of(thread_id)
    await session.settle_owed()
    await session.register()
    values = key, encode(thread_id), token, session.worker, encode(worker), session.lease

    async def take(db: asyncpg.Connection, _: object) -> asyncpg.Record | ThreadBusy:
        while True:
            row = await db.fetchrow(session.sql(_CLAIM), *values)
            found = row or await busy_error(session, db, thread_id)
            if found is not None:
                return found

    try:
        taken = await session.run(take)
        if isinstance(taken, ThreadBusy):
            raise taken
        # Known before its entries are asked for, so that the timer renews it.
        held = session.held[token] = _read_held(taken)
        made, kept = await session.run(
            lambda db, _: _show(db, session, thread_id, held, token, abandoned=taken["abandoned"])
        )
    except ThreadBusy:
        raise
    except BaseException as e:  # the caller does not know of this claim, which may have been made
        session.held.pop(token, None)
        session.owed[token] = key, None
        if isinstance(e, JournalDamaged):
            with contextlib.suppress(PostgresProblem):
                await session.settle_owed()
        raise
    if kept is not None:
        held.at, held.state = kept.at, kept.state
    elif made.snapshot is not None:
        held.at, held.state = made.snapshot.at, made.snapshot.state
    held.watch = made.watch
    return evolve(made, signals=await session.run(lambda db, _: find_signals(session, db, thread_id)))


def _read_held(row: asyncpg.Record) -> Held:
    progress = Progress(row["status"], decode(row["node"]))
    return Held(row["id"], row["head"], row["tip"], progress, about_from(row["about"]))


async def _show(
    db: asyncpg.Connection, session: Session, thread_id: str, held: Held, token: str, *, abandoned: bool
) -> tuple[Claim, KeptFold | None]:
    """What a claim shows of a thread, and the fold from which it goes on, where one was kept that still counts."""
    thread, head = held.thread, held.head or 0
    kept = session.folds.find(thread, lambda each: each.fits(head, held.tip))
    if kept is not None:
        rows = await db.fetch(session.sql(_TAIL), thread, kept.fold.at)
        if rows[0]["at"] == kept.at:
            appends = [row for row in rows if row["last"] is not None]
            entries = tuple(entries_of(thread_id, appends, kept.fold.at + 1, head, head))
            shown = Claim(
                thread_id=thread_id,
                token=token,
                head=head,
                snapshot=kept.fold,
                entries=entries,
                is_abandoned=abandoned,
            )
            return shown, kept
    rows = await _read_journal(db, session, thread, head) if head else []
    return build_claim(thread_id, token, head, rows, is_abandoned=abandoned), None


async def _read_journal(db: asyncpg.Connection, session: Session, thread: int, upto: int) -> list[asyncpg.Record]:
    """The rows from which the state after an entry is folded."""
    rows = await db.fetch(session.sql(_JOURNAL), thread, True, upto)  # noqa: FBT003 - its snapshots, too
    chunks = [row for row in rows if not row["writer"]]
    if any(
        chunk["first"] != before for chunk, before in zip(chunks, [0, *(row["last"] for row in chunks)], strict=False)
    ):
        # One of them does not continue the one before. They are a cache: the entries say the same.
        rows = await db.fetch(session.sql(_JOURNAL), thread, False, upto)  # noqa: FBT003
    return list(rows)


async def state_at(session: Session, thread_id: str, n: int) -> AgentState | None:
    """The state after the first entries of a thread; None where it has fewer."""

    async def look(db: asyncpg.Connection, _: object) -> AgentState | None:
        row = await db.fetchrow(session.sql(_THREAD), key_of(thread_id))
        if row is None or not 0 < n <= row["head"]:
            return None
        shown = build_claim(thread_id, "", n, await _read_journal(db, session, row["id"], n), is_abandoned=False)
        folded = Fold(BLANK if shown.snapshot is None else shown.snapshot.state)
        for entry in shown.entries:
            if isinstance(entry.body, Transition):
                folded.add(entry.body.delta)
        return folded.state()

    return await session.run(look, together="read")


async def peek(session: Session, thread_id: str) -> Claim | None:
    """What a claim would show."""

    async def look(db: asyncpg.Connection, _: object) -> Claim | None:
        row = await db.fetchrow(session.sql(_THREAD), key_of(thread_id))
        if row is None or not row["head"]:
            return None
        there = Held(row["id"], row["head"], row["tip"])
        shown, _ = await _show(db, session, thread_id, there, "", abandoned=row["abandoned"])
        return shown

    return await session.run(look, together="read")


async def find_held(session: Session, claim: Claim) -> Held | None:
    """What is known of a claim, whichever store made it; None when it is no longer valid."""
    held = session.held.get(claim.token)
    if held is not None and held.head is not None:
        return held
    if not claim.token:
        return None
    key = key_of(claim.thread_id)
    row = await session.run(lambda db, _: db.fetchrow(session.sql(_FIND), key, claim.token))
    if row is None:
        session.lose_claim(claim.token)
        return None
    found = _read_held(row)
    if held is None:
        found.at = None  # a snapshot of another store's claim is left out
        return found
    held.head, held.tip, held.progress, held.about = found.head, found.tip, found.progress, found.about
    return held


async def renew(session: Session, claim: Claim) -> bool:
    """Whether a claim is still valid; renews its lease."""
    key = key_of(claim.thread_id)
    found = None
    if claim.token:
        found = await session.run(lambda db, _: db.fetchval(session.sql(_RENEW), key, claim.token, session.lease))
    if found is None:
        session.lose_claim(claim.token)
        return False
    if claim.token in session.held:
        await session.run(lambda db, _: session.renew(db))
    return True


async def release(session: Session, claim: Claim, not_before: datetime | None, fold: Snapshot | None = None) -> None:
    """Give a thread back. Where that cannot be written, it is written later.

    Args:
        session: of this store.
        claim: what is given back.
        not_before: when the run wants to go on.
        fold: its state, to be kept for the next claim.
    """
    if not claim.token:
        return
    held = session.held.get(claim.token)
    if fold is not None and held is not None and held.at is not None and fold.at - held.at >= SNAPSHOT_EVERY:
        # The loop counts from the state that it was shown, which was not written.
        with contextlib.suppress(PostgresProblem):
            await snapshot(session, claim, fold.at, fold.state, fold.last)
    await session.release(key_of(claim.thread_id), claim.token, not_before)
    if fold is not None and held is not None and held.head is not None and held.at is not None:
        session.folds.keep(held.thread, KeptFold(fold, held.head, held.tip, held.at, held.state))


async def snapshot(session: Session, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
    """Write what became of the state since the snapshot before: all of them together are as long as the state."""
    held = session.held.get(claim.token)
    if held is None or held.at is None or at <= held.at:
        # A cache may be left out: it is another store's claim, or this place has one already.
        return await find_held(session, claim) is not None and await _is_valid(session, claim)
    before, held.at = held.at, None  # none after one that may have been written or not
    whole = Transition(run_id=last.run_id, node=last.node, next_node=last.next_node, delta=delta(held.state, state))
    values = held.thread, claim.token, at, before, body_of([entry_to_json(whole)])
    found = await session.run(lambda db, _: db.fetchval(session.sql(_SNAPSHOT), *values))
    if found:
        held.at, held.state = at, state
    return bool(found)


async def _is_valid(session: Session, claim: Claim) -> bool:
    key = key_of(claim.thread_id)
    return await session.run(lambda db, _: db.fetchval(session.sql(_FIND), key, claim.token)) is not None
