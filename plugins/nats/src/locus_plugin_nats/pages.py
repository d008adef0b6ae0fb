"""A page of a thread, at the cost of the page; its first message is found by halving what lies between two others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.errors import JournalDamaged
from locus_plugin_nats.entries import check_entries, unpack_message
from locus_plugin_nats.headers import make_tip
from locus_plugin_nats.reading import read_page as read_messages
from locus_plugin_nats.subjects import key_of

if TYPE_CHECKING:
    from locus.core.journal import Entry
    from locus_plugin_nats.headers import Tip
    from locus_plugin_nats.session import Session

__all__ = ["read_head", "read_page"]

#: Messages of a thread that hold no entries: claims, snapshots, releases. More are read where there are more of them.
_SPARE = 8

#: Threads of which it is known where the page that was read last has ended.
_KNOWN = 64


async def read_head(session: Session, thread_id: str) -> int:
    """The number of a thread's newest entry; 0 for an unknown one."""
    tip = await session.tip(key_of(thread_id), thread_id)
    return 0 if tip is None else tip.head.n


async def read_page(session: Session, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
    """At most so many entries of a thread, those after a number; empty for an unknown one.

    Raises:
        JournalDamaged: one of them is missing, or is not what was written.
    """
    key, after = key_of(thread_id), max(0, after)
    tip = await session.tip(key, thread_id)
    if tip is None or tip.head.n <= after:
        return ()
    upto = min(after + count, tip.head.n)
    try:
        return tuple(await _read(session, key, tip, after, upto))
    except JournalDamaged:
        again = await session.tip(key, thread_id)
        if again is not None and again.head.base == tip.head.base and not again.is_gone:
            raise
        return ()  # it was deleted meanwhile


async def _read(session: Session, key: str, tip: Tip, after: int, upto: int) -> list[Entry]:
    subject = session.names.thread(key)
    entries: list[Entry] = []
    first, is_end = await _find_first(session, key, tip, after), False
    while not is_end and (not entries or entries[-1].n < upto):
        found, is_end = await read_messages(
            session, session.names.journal, subject, first, batch=upto - after - len(entries) + _SPARE
        )
        for each in found:
            message = make_tip(*each)
            first = message.seq + 1
            if message.head.count and message.head.n > after:
                entries += [entry for entry in await unpack_message(session, key, message) if entry.n > after]
            if message.head.n >= upto:
                break
    if entries and entries[-1].n == upto:
        _remember(session, key, tip.head.base, upto, first)
    entries = entries[: upto - after]
    check_entries(tip.head.id, entries, after, upto)
    return entries


def _remember(session: Session, key: str, base: int, n: int, first: int) -> None:
    session.page_ends.pop(key, None)
    session.page_ends[key] = base, n, first
    if len(session.page_ends) > _KNOWN:
        del session.page_ends[next(iter(session.page_ends))]


async def _find_first(session: Session, key: str, tip: Tip, after: int) -> int:
    """The sequence from which on the next message is the one that holds the entry behind a number."""
    base, n, first = session.page_ends.get(key, (0, 0, 0))
    if first and base == tip.head.base and n == after:
        return first
    subject, low, high = session.names.thread(key), tip.head.base + 1, tip.seq
    while low < high:
        middle = (low + high) // 2
        found = await session.message(seq=middle, next_by_subj=subject)
        if found is None or found.head.n > after:
            high = middle
        else:
            low = found.seq + 1
    return low
