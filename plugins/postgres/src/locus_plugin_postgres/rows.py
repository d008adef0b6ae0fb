"""From rows to entries and back."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import asyncpg

from locus.core.errors import CheckpointError
from locus.core.journal import BLANK, Body, Entry, Fold, Transition, entry_from_json
from locus.journal import Claim, Snapshot
from locus.journal.listing import About
from locus_kit.packing import pack, unpack
from locus_plugin_postgres.errors import EntryDamaged

__all__ = ["about_from", "about_of", "bodies_of", "body_of", "build_claim", "decode", "encode", "entries_of", "key_of"]


def encode(text: str) -> bytes:
    """A text as PostgreSQL can keep any."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """The inverse."""
    return data.decode("utf-8", "surrogatepass")


def key_of(thread_id: str) -> bytes:
    """What a thread is found by."""
    return hashlib.sha256(encode(thread_id)).digest()


def body_of(forms: list[dict[str, Any]]) -> bytes:
    """What is kept of the entries of one append, from their JSON forms."""
    return pack(forms, math.inf).body


def about_of(about: About) -> bytes:
    """What a thread is about, as a row keeps it."""
    made = {"title": about.title, "model": about.model, "agent_id": about.agent_id, "metadata": dict(about.metadata)}
    return json.dumps(made, separators=(",", ":")).encode()


def about_from(data: bytes) -> About:
    """The inverse."""
    return About(**json.loads(data))


def entries_of(
    thread_id: str, rows: Sequence[asyncpg.Record], start: int, head: int, upto: float = math.inf
) -> list[Entry]:
    """The entries with the numbers from ``start`` on.

    Args:
        thread_id: the thread, for errors.
        rows: first, last, writer, parent and body of appends, oldest first.
        start: number of the first entry that is wanted.
        head: number of the last entry that must be there.
        upto: number of the last entry that is wanted.

    Raises:
        EntryDamaged: one of them is missing, or not what was written.
    """
    made: list[Entry] = []
    expected = None
    for row in rows:
        first, last, writer = row["first"], row["last"], row["writer"]
        if expected is not None and first != expected:
            raise EntryDamaged(thread_id, expected, "is missing")
        if expected is None and first > start:
            raise EntryDamaged(thread_id, start, "is missing")
        bodies = bodies_of(thread_id, first, last, row["body"])
        for n, body in enumerate(bodies, first):
            if start <= n <= min(last, upto):
                before = writer if n > first else row["parent"]
                made.append(Entry(n, writer, f"{n - 1}:{before}" if n > 1 else "", body))
        expected = last + 1
    if (expected or start) <= min(head, upto):
        raise EntryDamaged(thread_id, expected or start, "is missing")
    return made


def bodies_of(thread_id: str, first: int, last: int, data: bytes) -> list[Body]:
    """The entries of one append; a fork has the first of them only."""
    try:
        forms = unpack(data, {})
        if len(forms) <= last - first:
            raise ValueError("too few entries")
    except (ValueError, LookupError, TypeError, zlib.error) as e:
        raise EntryDamaged(thread_id, first, "cannot be read") from e
    try:
        return [entry_from_json(form) for form in forms]
    except CheckpointError as e:
        e.add_note(f"in the entries {first} to {last} of thread {thread_id!r}")
        raise


def build_claim(thread_id: str, token: str, head: int, rows: Sequence[asyncpg.Record], *, is_abandoned: bool) -> Claim:
    """What a claim shows of a thread.

    Args:
        thread_id: the thread.
        token: of the claim.
        head: number of its newest entry.
        rows: its snapshots, whose ``first`` is the number of the snapshot before and whose ``writer`` is ``""``, and
            its appends from the one that holds the newest of them on.
        is_abandoned: see `Claim`.

    Raises:
        EntryDamaged: an entry is missing, or not what was written.
    """
    chunks = [row for row in rows if not row["writer"]]
    appends = [row for row in rows if row["writer"]]
    if not chunks:
        entries = entries_of(thread_id, appends, 1, head, head)
        return Claim(thread_id=thread_id, token=token, head=head, entries=tuple(entries), is_abandoned=is_abandoned)
    at = chunks[-1]["last"]
    folded = Fold(BLANK)
    for chunk in chunks:
        (change,) = bodies_of(thread_id, chunk["last"], chunk["last"], chunk["body"])
        assert isinstance(change, Transition)
        folded.add(change.delta)
    last, *rest = entries_of(thread_id, appends, at, head, head)
    if not isinstance(last.body, Transition):
        raise EntryDamaged(thread_id, at, "has a snapshot and is not a transition")
    return Claim(
        thread_id=thread_id,
        token=token,
        head=head,
        snapshot=Snapshot(at, folded.state(), last.body),
        entries=tuple(rest),
        is_abandoned=is_abandoned,
    )
