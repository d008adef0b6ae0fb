"""The entries of a thread: from bodies to a message, and back from messages to entries."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from locus.core.errors import JournalDamaged
from locus.core.journal import BLANK, START, Body, Entry, Transition, delta, entry_from_json, fold
from locus.journal import Appended, Snapshot
from locus.journal.listing import About, about, progress
from locus_kit.entry_json import from_bytes, to_bytes, to_json
from locus_kit.packing import Row, pack, unpack
from locus_plugin_nats.headers import Head, Tip, about_from_form, about_to_form, make_tip
from locus_plugin_nats.payloads import forget_payload, load_payload, load_texts, store_payload, store_texts
from locus_plugin_nats.reading import read_stream
from locus_plugin_nats.session import Unresolved

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal import Claim
    from locus_plugin_nats.session import Session

__all__ = [
    "append",
    "check_entries",
    "describe",
    "load_about",
    "load_snapshot",
    "pack_message",
    "read_entries",
    "snapshot",
    "store_shared",
    "unpack_message",
]

#: Bytes of what a thread is about that each message repeats; what is longer is a payload.
_ABOUT = 1500

#: Bytes that a message needs beside its body, at most: its header names some payloads, and the thread's id may be long.
_ROOM = 64 * 1024


# -- writing --------------------------------------------------------------------------------------


async def append(session: Session, claim: Claim, bodies: Sequence[Body], forms: list[dict[str, Any]]) -> Appended:
    """Add entries as one message.

    Args:
        session: the store.
        claim: the right to it.
        bodies: the entries.
        forms: their JSON forms.
    """
    held = await session.find(claim.thread_id, claim.token)
    if held is None:
        return Appended.FENCED
    if not bodies:
        return Appended.OK
    row = pack(forms)
    before = held.head
    after, known = progress(bodies, before.progress), about(bodies, held.about)
    head = before.next(
        n=before.n + len(bodies),
        count=len(bodies),
        token=claim.token,
        status=after.status,
        node=after.node,
        grown=before.grown + len(row.body) + sum(map(len, row.blobs.values())),
    )
    if known is not held.about:
        head = await describe(session, held.key, head, known)
    head, body = await pack_message(session, held.key, head, row)
    try:
        if not await session.advance(held, "e", head, body):
            return Appended.FENCED
    except Unresolved:
        return Appended.UNKNOWN
    held.about = known
    return Appended.OK


async def describe(session: Session, key: str, head: Head, known: About) -> Head:
    """The header with what the thread is about."""
    form = about_to_form(known)
    text = to_bytes(form)
    if len(text) <= _ABOUT:
        return head.change(about=form or None, about_blob=None)
    return head.change(about=None, about_blob=await store_payload(session, key, text, "a"))


async def load_about(session: Session, key: str, head: Head) -> About:
    """What a thread is about."""
    if head.about_blob is None:
        return about_from_form(head.about)
    return about_from_form(from_bytes(await load_payload(session, key, *head.about_blob, head.id)))


async def pack_message(session: Session, key: str, head: Head, row: Row) -> tuple[Head, bytes]:
    """Store what does not fit a message; gives the header that names it, and the body."""
    if row.blobs:
        head = head.change(blobs=await store_texts(session, key, row.blobs))
    if len(row.body) + _ROOM <= session.wire.max_payload:
        return head, row.body
    return head.change(body=await store_payload(session, key, row.body)), b""


async def snapshot(session: Session, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
    """Cache a fold, where what a claim would read since the last one is longer than the fold itself."""
    held = await session.find(claim.thread_id, claim.token)
    if held is None:
        return False
    seq = next((seq for n, seq in held.marks if n >= at), None)
    before = held.head.snapshot
    if seq is None or at > held.head.n or (before is not None and at <= before[0]):
        return True  # a store with a history may leave it
    if held.head.grown < held.folded:
        return True  # the fold is longer still, so it is not even encoded
    whole = Transition(run_id=last.run_id, node=START, next_node=last.next_node, delta=delta(BLANK, state))
    content = zlib.compress(to_bytes(to_json([whole, last])), 1)
    held.folded = len(content)
    if held.head.grown < held.folded:
        return True
    name, chunks = await store_payload(session, held.key, content, "s")
    try:
        if not await session.advance(held, "s", held.head.next(snapshot=(at, seq, name, chunks), grown=0)):
            return False
    except Unresolved:
        return False
    held.marks = [(n, seq) for n, seq in held.marks if n >= at]
    if before is not None and before[2] != name:
        await forget_payload(session, held.key, before[2])
    return True


async def store_shared(session: Session, key: str, entries: Sequence[Entry]) -> tuple[int, str, int]:
    """Store the entries that a fork begins with: how many, name and chunks."""
    writers = [entry.writer for entry in entries]
    content = to_bytes({"writers": writers, "forms": to_json([entry.body for entry in entries])})
    name, chunks = await store_payload(session, key, zlib.compress(content, 1), "f")
    return len(entries), name, chunks


# -- reading --------------------------------------------------------------------------------------


async def load_snapshot(session: Session, key: str, head: Head) -> Snapshot | None:
    """The newest snapshot of a thread."""
    if head.snapshot is None:
        return None
    at, _, name, chunks = head.snapshot
    content = await load_payload(session, key, name, chunks, head.id)
    try:
        whole, last = (entry_from_json(form) for form in from_bytes(zlib.decompress(content)))
    except (ValueError, TypeError, zlib.error) as e:
        raise _damage_error(head.id, at, "has a snapshot that cannot be read") from e
    assert isinstance(last, Transition)
    return Snapshot(at, fold(BLANK, [whole]), last)


async def read_entries(
    session: Session, key: str, tip: Tip, after: int, first: int = 0
) -> tuple[list[Entry], list[tuple[int, int]]]:
    """The entries after a number, up to those of a message, and where each message ends: its last entry, its sequence.

    Args:
        session: the store.
        key: of the thread.
        tip: the message.
        after: number of the entry before the first one wanted.
        first: sequence of the message that holds that one, where it is known.

    Raises:
        JournalDamaged: one of them is missing, or is not what was written.
    """
    head = tip.head
    if head.n <= after:
        return [], []
    if not first:
        first = head.base + 1
        if head.snapshot is not None and after >= head.snapshot[0]:
            first = head.snapshot[1]
    if head.count and head.n - head.count <= after:
        messages = [tip]
    else:
        found = await read_stream(session, session.names.journal, session.names.thread(key), first, last=tip.seq)
        messages = [make_tip(*each) for each in found]
    entries: list[Entry] = []
    marks: list[tuple[int, int]] = []
    for message in messages:
        if message.head.count and message.head.n > after:
            entries += await unpack_message(session, key, message)
            marks.append((message.head.n, message.seq))
    entries = [entry for entry in entries if entry.n > after]
    check_entries(head.id, entries, after, head.n)
    if entries and entries[-1].id != head.last:
        raise _damage_error(head.id, head.n, "is not the newest one that was written")
    return entries, marks


async def unpack_message(session: Session, key: str, message: Tip) -> list[Entry]:
    """The entries that one message holds.

    Raises:
        JournalDamaged: they are not what was written.
    """
    head = message.head
    start = head.n - head.count
    try:
        entries = await _unpack_shared(session, key, head)
        own = head.count - len(entries)
        if own:
            blobs = await load_texts(session, key, head.blobs or {}, head.id)
            body = message.data if head.body is None else await load_payload(session, key, *head.body, head.id)
            forms = unpack(body, blobs)
            if len(forms) != own:
                raise _damage_error(head.id, start + 1, "is not what was written")
            start, parent = start + len(entries), entries[-1].id if entries else head.parent
            for n, form in enumerate(forms, start + 1):
                entries.append(Entry(n, head.token, parent, entry_from_json(form)))
                parent = entries[-1].id
    except (ValueError, LookupError, TypeError, zlib.error) as e:
        raise _damage_error(head.id, start + 1, "is not what was written") from e
    return entries


async def _unpack_shared(session: Session, key: str, head: Head) -> list[Entry]:
    if head.shared is None:
        return []
    at, name, chunks = head.shared
    content = from_bytes(zlib.decompress(await load_payload(session, key, name, chunks, head.id)))
    entries: list[Entry] = []
    parent = ""
    for n, (writer, form) in enumerate(zip(content["writers"], content["forms"], strict=True), 1):
        entries.append(Entry(n, writer, parent, entry_from_json(form)))
        parent = entries[-1].id
    if len(entries) != at:
        raise _damage_error(head.id, at, "is missing")
    return entries


def check_entries(thread_id: str, entries: Sequence[Entry], after: int, upto: int) -> None:
    """Refuse entries that are not those after one number up to another, each behind the one before it.

    Raises:
        JournalDamaged: one of them is missing, or does not continue the one before.
    """
    parent = entries[0].parent if entries and after else ""
    for n, entry in enumerate(entries, after + 1):
        if entry.n != n:
            raise _damage_error(thread_id, n, "is missing")
        if entry.parent != parent:
            raise _damage_error(thread_id, n, "does not continue the one before")
        parent = entry.id
    if len(entries) != upto - after:
        raise _damage_error(thread_id, after + len(entries) + 1, "is missing")


def _damage_error(thread_id: str, n: int, what: str) -> JournalDamaged:
    return JournalDamaged(f"thread {thread_id!r}: entry {n} {what}", thread_id=thread_id, n=n, store="nats")
