"""Listing threads, forking and deleting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from locus.core.errors import JournalError, NothingToResume
from locus.journal import ThreadInfo
from locus.journal.listing import about, page, progress, progress_of_fork, status_of
from locus_kit.packing import pack
from locus_plugin_nats.claims import busy_error, describe_holder
from locus_plugin_nats.entries import describe, load_about, pack_message, read_entries, store_shared
from locus_plugin_nats.headers import Head, Tip, from_micros, micros
from locus_plugin_nats.places import end_place, read_place
from locus_plugin_nats.reading import scan
from locus_plugin_nats.subjects import key_of, new_token
from locus_plugin_nats.wire import ApiError

if TYPE_CHECKING:
    from locus.core.journal import Body, Entry
    from locus.journal import ThreadQuery
    from locus_plugin_nats.session import Session

__all__ = ["delete", "fork", "list_threads", "next_ready"]


async def list_threads(session: Session, query: ThreadQuery | None) -> tuple[ThreadInfo, ...]:
    """The threads that a query selects, the most recently changed first.

    Raises:
        JournalError: the query's ``after`` is not a thread.
    """
    tips = await _tips(session)
    living = await session.lease.living()
    bases = {tip.head.id: tip.head.base for tip in tips}
    infos = [await _info(session, tip, living, bases) for tip in sorted(tips, key=lambda tip: -tip.seq)]
    return page(infos, query)


async def _info(session: Session, tip: Tip, living: frozenset[str], bases: Mapping[str, int]) -> ThreadInfo:
    head = tip.head
    is_held = session.lease.listed_alive(head.worker, head.token, living)
    known = await load_about(session, key_of(head.id), head)
    return ThreadInfo(
        thread_id=head.id,
        head=head.n,
        holder=describe_holder(session, head) if is_held else None,
        updated_at=from_micros(tip.at),
        since=from_micros(head.since) if is_held else None,
        status=status_of(head.status, is_held=is_held),
        node=head.node,
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        forked_from=next((name for name, base in head.origins if bases.get(name) == base), None),
        created_at=from_micros(head.created),
        metadata=known.metadata,
    )


async def next_ready(session: Session, now: datetime) -> str | None:
    """The thread that has waited longest, also one whose worker died on it."""
    due = [(tip.head.not_before, tip) for tip in await _tips(session) if tip.head.not_before is not None]
    ready = [(at, tip) for at, tip in due if at <= micros(now)]
    if not ready:
        return None
    living = await session.lease.living()
    free = [(at, t.head.id) for at, t in ready if not session.lease.listed_alive(t.head.worker, t.head.token, living)]
    return min(free)[1] if free else None


async def _tips(session: Session) -> list[Tip]:
    """The newest message of every thread, without bodies."""
    await session.ready()
    newest: dict[str, Tip] = {}
    async for tips in scan(session, session.names.all_entries):
        for tip in tips:
            if tip.head.id not in newest or newest[tip.head.id].seq < tip.seq:
                newest[tip.head.id] = tip
    return [tip for tip in newest.values() if not tip.is_gone]


async def fork(
    session: Session, thread_id: str, at: int, into: str, bodies: Sequence[Body], forms: list[dict[str, Any]]
) -> None:
    """A thread that begins with the entries of another one, which are copied: one message makes it.

    Args:
        session: the store.
        thread_id: the thread to fork.
        at: how many of its entries the new one begins with.
        into: the new thread's id.
        bodies: entries to write behind those.
        forms: their JSON forms.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
    """
    await session.ready()
    async with session.order(key_of(thread_id)):
        source = await session.tip(key_of(thread_id), thread_id)
        if source is None or not source.head.n:
            raise NothingToResume(f"thread {thread_id!r} does not exist, so it cannot be forked")
        if not 1 <= at <= source.head.n:
            raise JournalError(f"cannot fork {thread_id!r} after entry {at}: it has the entries 1 to {source.head.n}")
        entries, _ = await read_entries(session, key_of(thread_id), source, 0)
    key = key_of(into)
    async with session.order(key):
        while True:
            taken = await session.tip(key, into)
            if taken is not None and (taken.head.n or await busy_error(session, taken) is not None):
                raise JournalError(
                    f"cannot fork {thread_id!r} into {into!r}: that thread exists already; choose another name"
                )
            head = _fork_head(source.head, entries[:at], into, bodies)
            if taken is not None:
                head = head.change(base=taken.seq)
            head = head.change(shared=await store_shared(session, key, entries[:at]))
            known = about([*(entry.body for entry in entries[:at]), *bodies])
            head, body = await describe(session, key, head, known), b""
            if bodies:
                head, body = await pack_message(session, key, head, pack(forms))
            if await session.commit(key, "f", 0 if taken is None else taken.seq, head, body) is not None:
                return


def _fork_head(source: Head, entries: Sequence[Entry], into: str, bodies: Sequence[Body]) -> Head:
    there = progress([entry.body for entry in entries])
    here = progress(bodies, there) if bodies else progress_of_fork(there)
    n = len(entries) + len(bodies)
    return Head(
        id=into,
        n=n,
        count=n,
        token=new_token() if bodies else entries[-1].writer,
        write=new_token(),
        status=here.status,
        node=here.node,
        created=micros(datetime.now().astimezone()),
        origins=((source.id, source.base), *source.origins),
    )


async def delete(session: Session, thread_id: str, head: int | None) -> bool:
    """Forget a thread; False when it does not exist, or has another head.

    One message ends it. Then its messages are deleted, up to that one: a thread that is begun under the same id
    meanwhile keeps its own, however late that happens.

    Raises:
        ThreadBusy: a live worker holds it.
    """
    await session.ready()
    key, names = key_of(thread_id), session.names
    while True:
        tip = await session.tip(key, thread_id)
        if tip is None:
            return False
        if tip.is_gone:
            await _clean_up(session, key, tip)
            return False
        refusal = await busy_error(session, tip)
        if refusal is not None:
            raise refusal
        if head is not None and tip.head.n != head:
            return False
        try:
            blobs = await session.wire.api(f"STREAM.INFO.{names.blobs}")
        except ApiError as e:
            raise session.problem(e) from None
        last = int(blobs["state"]["last_seq"])
        gone = Head(
            id=thread_id,
            token=new_token(),
            write=new_token(),
            purge=last,
            is_queued=await _has_place(session, key, tip),
        )
        seq = await session.commit(key, "d", tip.seq, gone)
        if seq is not None:
            await _clean_up(session, key, Tip(seq, gone, 0, b"", "d"))
            return True


async def _has_place(session: Session, key: str, tip: Tip) -> bool:
    return tip.head.is_queued or await read_place(session, key) is not None


async def _clean_up(session: Session, key: str, end: Tip) -> None:
    names = session.names
    if end.head.is_queued:
        await end_place(session, key, end.head.id, end.seq)
    await session.wire.api(f"STREAM.PURGE.{names.blobs}", filter=names.blob(key), seq=end.head.purge + 1)
    await session.wire.api(f"STREAM.PURGE.{names.journal}", filter=names.thread(key), seq=end.seq + 1)
