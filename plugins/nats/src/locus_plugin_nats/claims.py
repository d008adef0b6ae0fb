"""Taking a thread and giving it back. A claim is a message, and that fences every older claim."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from locus.core.errors import JournalDamaged, ThreadBusy
from locus.journal import Claim
from locus_plugin_nats.entries import load_about, load_snapshot, read_entries, snapshot
from locus_plugin_nats.errors import NatsProblem
from locus_plugin_nats.folds import KeptFold
from locus_plugin_nats.headers import Head, Tip, from_micros, micros
from locus_plugin_nats.session import Held, Unresolved
from locus_plugin_nats.subjects import key_of, new_token

if TYPE_CHECKING:
    from locus.core.journal import Entry
    from locus.journal import Snapshot
    from locus_plugin_nats.session import Session

__all__ = ["SNAPSHOT_EVERY", "busy_error", "claim", "describe_holder", "free_head", "peek", "read", "release", "renew"]

#: After how many entries a snapshot is offered; it is taken where it is shorter than what it saves.
SNAPSHOT_EVERY = 64


def describe_holder(session: Session, head: Head) -> str:
    """What a holder calls itself, and where it is unless that is here."""
    if (head.host, head.pid) == (session.host, session.pid):
        return head.holder
    where = f"pid {head.pid} on {head.host}"
    return where if where.startswith(f"{head.holder} ") else f"{head.holder}, {where}"


async def busy_error(session: Session, tip: Tip) -> ThreadBusy | None:
    """The refusal for a thread that a live worker holds."""
    if not await session.lease.is_alive(tip.head.worker, tip.head.token):
        return None
    return ThreadBusy(tip.head.id, describe_holder(session, tip.head), from_micros(tip.head.since).isoformat())


async def claim(session: Session, thread_id: str, worker: str, token: str) -> Claim:
    """Take a thread.

    Args:
        session: the store.
        thread_id: the thread.
        worker: what its holder calls itself.
        token: of the claim.

    Raises:
        ThreadBusy: a live worker holds it.
    """
    await session.ready()
    key = key_of(thread_id)
    while True:
        tip = await session.tip(key, thread_id)
        refusal = None if tip is None else await busy_error(session, tip)
        if refusal is not None:
            raise refusal
        # Before the claim can be seen.
        await session.lease.hold()
        now = datetime.now(UTC)
        head = free_head(thread_id, tip, now).change(
            token=token,
            worker=session.lease.worker,
            holder=worker,
            host=session.host,
            pid=session.pid,
            since=micros(now),
            write=new_token(),
        )
        try:
            seq = await session.commit(key, "c", 0 if tip is None else tip.seq, head)
        except Unresolved:
            session.owed[token] = (thread_id, head.not_before)
            raise
        if seq is not None:
            break
    session.held[token] = Held(key, seq, head)
    try:
        return await _show(session, key, seq, token, tip)
    except BaseException:
        # The caller will not know of this claim.
        session.held.pop(token, None)
        session.owed[token] = (thread_id, head.not_before)
        raise


def free_head(thread_id: str, tip: Tip | None, now: datetime) -> Head:
    """The header that a claim continues."""
    if tip is None or tip.is_gone:
        return Head(id=thread_id, base=0 if tip is None else tip.seq, created=micros(now))
    return tip.head.next()


async def _show(session: Session, key: str, seq: int, token: str, before: Tip | None) -> Claim:
    """What a claim shows, and what the store will need of it.

    Args:
        session: the store.
        key: of the thread.
        seq: sequence of the claim's message.
        token: of the claim.
        before: the message before the claim.
    """
    held = session.held[token]
    kept = None if before is None else find_fold(session, key, before)
    cached: Snapshot | None
    if kept is not None:
        cached, entries = kept.fold, await _read_tail(session, kept)
        held.marks, held.about, held.folded = kept.held.marks, kept.held.about, kept.held.folded
    else:
        cached = await load_snapshot(session, key, held.head)
        after = 0 if cached is None else cached.at
        newest = Tip(seq, held.head, 0, b"", "c")
        if before is not None and before.head.count and before.head.n - before.head.count <= after:
            newest = before  # which has all the entries, as that of a thread that was just submitted does
        entries, marks = await read_entries(session, key, newest, after)
        held.marks, held.about = marks, await load_about(session, key, held.head)
        if cached is not None and held.head.snapshot is not None:
            held.marks.insert(0, (cached.at, held.head.snapshot[1]))
    return Claim(
        thread_id=held.head.id,
        token=token,
        head=held.head.n,
        snapshot=cached,
        entries=tuple(entries),
        is_abandoned=before is not None and bool(before.head.worker),
        signals=await session.hear(held),
        watch=held.watch,
    )


def find_fold(session: Session, key: str, tip: Tip) -> KeptFold | None:
    """The fold that was kept of a thread, if its newest message says that it still counts."""
    return session.folds.find(key, lambda kept: kept.fits(tip))


async def _read_tail(session: Session, kept: KeptFold) -> list[Entry]:
    """The entries behind a fold: mostly they are in the message that was written last, and nothing is asked."""
    held, after = kept.held, kept.fold.at
    assert held.newest is not None
    behind = bisect_right(held.marks, after, key=itemgetter(0))
    first = held.marks[behind][1] if behind < len(held.marks) else held.newest.seq
    entries, _ = await read_entries(session, held.key, held.newest, after, first)
    return entries


async def peek(session: Session, thread_id: str) -> Claim | None:
    """What a claim would show; None for an empty thread."""
    key = key_of(thread_id)
    tip = await session.tip(key, thread_id)
    while tip is not None and tip.head.n:
        is_held = await session.lease.is_alive(tip.head.worker, tip.head.token)
        try:
            kept = find_fold(session, key, tip)
            cached: Snapshot | None
            if kept is not None:
                cached, entries = kept.fold, await _read_tail(session, kept)
            else:
                cached = await load_snapshot(session, key, tip.head)
                entries, _ = await read_entries(session, key, tip, 0 if cached is None else cached.at)
        except JournalDamaged:
            # A newer snapshot may have taken the place of this one, or the thread was deleted meanwhile.
            again = await session.tip(key, thread_id)
            if again is not None and again.seq == tip.seq:
                raise
            tip = again
            continue
        return Claim(
            thread_id=thread_id,
            token="",
            head=tip.head.n,
            snapshot=cached,
            entries=tuple(entries),
            is_abandoned=bool(tip.head.worker) and not is_held,
        )
    return None


async def release(session: Session, made: Claim, not_before: datetime | None, fold: Snapshot | None = None) -> None:
    """Give a thread back; a claim that is over is left alone. What cannot be written now is written later.

    Args:
        session: the store.
        made: what is given back.
        not_before: when the run wants to go on.
        fold: its state, to be kept for the next claim.
    """
    due = None if not_before is None else micros(not_before)
    held = session.held.get(made.token)
    try:
        found = await session.find(made.thread_id, made.token)
        if found is None:
            return
        if fold is not None and fold.at - (found.head.snapshot or (0,))[0] >= SNAPSHOT_EVERY:
            # The loop counts from the state that it was shown, which was not written.
            with contextlib.suppress(NatsProblem):
                await snapshot(session, made, fold.at, fold.state, fold.last)
        head = found.head.next(worker="", holder="", host="", pid=0, since=0, not_before=due)
        if await session.advance(found, "r", head) and fold is not None and found.newest is not None:
            session.folds.keep(found.key, KeptFold(fold, found))
    except NatsProblem:
        # The run has ended, and how it ended matters more than this.
        if held is not None:
            session.owed[made.token] = (made.thread_id, due)
    finally:
        session.held.pop(made.token, None)


async def renew(session: Session, made: Claim) -> bool:
    """Whether a claim is still valid; the lease is renewed."""
    tip = await session.tip(key_of(made.thread_id), made.thread_id)
    is_ours = tip is not None and tip.head.token == made.token != "" and bool(tip.head.worker)
    is_valid = is_ours and made.token not in session.owed
    if not is_valid:
        session.lose(made.token)
    elif made.token in session.held:
        await session.lease.hold(now=True)
    return is_valid


async def read(session: Session, thread_id: str, after: int) -> tuple[Entry, ...]:
    """The entries of a thread after a number; empty for an unknown one."""
    key = key_of(thread_id)
    tip = await session.tip(key, thread_id)
    if tip is None:
        return ()
    try:
        found, _ = await read_entries(session, key, tip, max(0, after))
    except JournalDamaged:
        again = await session.tip(key, thread_id)
        if again is not None and again.head.base == tip.head.base and not again.is_gone:
            raise
        found = []  # it was deleted meanwhile
    return tuple(found)
