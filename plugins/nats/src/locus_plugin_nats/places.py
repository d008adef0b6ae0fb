"""Where a thread waits for a worker, and what it was sent: one message a thread, replaced as a whole.

What a thread is submitted with is a message of its journal, which is an offer as well. Its place is written when the
first worker takes it. Each change of a place is stored only where the place is still the one that was changed, as the
server compares; so of several workers one gets an offer, and an offer that is over changes nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from locus.core.journal import entry_from_json, entry_to_json
from locus.journal import Signal
from locus_kit.entry_json import from_bytes, to_bytes
from locus_plugin_nats.headers import Tip
from locus_plugin_nats.reading import read_one
from locus_plugin_nats.subjects import key_of, new_token
from locus_plugin_nats.wire import ApiError, ConnectionLost

if TYPE_CHECKING:
    from locus_plugin_nats.session import Session

__all__ = [
    "Place",
    "begin_place",
    "change_place",
    "current_place",
    "decode_place",
    "end_place",
    "read_place",
    "write_place",
]

_FENCE = "Nats-Expected-Last-Subject-Sequence"

#: How long it is known that a thread was deleted.
_KEPT = "24h"


@frozen(kw_only=True)
class Place:
    """Where a thread waits.

    Args:
        id: of the thread.
        seq: sequence of the message that says so; 0 before the first one.
        queue: its queue, ``""`` for a thread that was never submitted.
        priority: its priority.
        due: from when it may be offered, in microseconds of the server's clock; None = when it is signalled.
        offer: names the offer under way, ``""`` where none is.
        delivered: how often it was offered in a row.
        is_signalled: whether a signal came since it was offered.
        begun: sequence of the message that submitted it, or 0.
        gone: sequence of the message that deleted the thread, or 0.
        signals: those that were not forgotten.
        sent: the ids of all signals.
        write: names the change that made this.
    """

    id: str
    seq: int = 0
    queue: str = ""
    priority: int = 0
    due: int | None = None
    offer: str = ""
    delivered: int = 0
    is_signalled: bool = False
    begun: int = 0
    gone: int = 0
    signals: tuple[Signal, ...] = ()
    sent: tuple[str, ...] = ()
    write: str = field(factory=new_token)

    def change(self, **changes: Any) -> Place:
        """The place after a change."""
        return evolve(self, write=new_token(), **changes)

    def encode(self) -> bytes:
        """Its JSON form, without its sequence."""
        form = {
            "v": 1,
            "id": self.id,
            "q": self.queue,
            "p": self.priority,
            "due": self.due,
            "o": self.offer,
            "d": self.delivered,
            "sg": self.is_signalled,
            "b": self.begun,
            "g": self.gone,
            "s": [{"n": each.n, "id": each.id, "body": entry_to_json(each.body)} for each in self.signals],
            "ids": self.sent,
            "w": self.write,
        }
        return to_bytes(form)


def decode_place(data: bytes, seq: int) -> Place:
    """The inverse of `Place.encode`.

    Raises:
        ValueError, LookupError: it is damaged, or from a newer version.
    """
    form = from_bytes(data)
    if form["v"] != 1:
        raise ValueError(f"format {form['v']!r} of a place in a queue is not known")
    signals = tuple(
        Signal(body=entry_from_json(each["body"]), id=each["id"], n=each["n"])  # type: ignore[arg-type]
        for each in form["s"]
    )
    return Place(
        id=form["id"],
        seq=seq,
        queue=form["q"],
        priority=form["p"],
        due=form["due"],
        offer=form["o"],
        delivered=form["d"],
        is_signalled=form["sg"],
        begun=form["b"],
        gone=form["g"],
        signals=signals,
        sent=tuple(form["ids"]),
        write=form["w"],
    )


def begin_place(submitted: Tip, seq: int) -> Place:
    """The place of a thread that was submitted and not taken yet.

    Args:
        submitted: the message that submitted it.
        seq: sequence of what was written of its place before that, or 0.
    """
    head = submitted.head
    return Place(
        id=head.id,
        seq=seq,
        queue=head.queue,
        priority=head.priority,
        due=submitted.at if head.due is None else head.due,
        begun=submitted.seq,
        write="",
    )


async def current_place(session: Session, key: str, thread_id: str) -> Place:
    """Where a thread waits, whether that was written or follows from its submit."""
    found = await read_place(session, key)
    if found is not None and found.begun and not found.gone:
        return found
    submitted = await session.message(last_by_subj=session.names.entry(key, "t"))
    known = Place(id=thread_id) if found is None else found
    if submitted is None or submitted.seq < known.gone:
        return Place(id=thread_id, seq=known.seq) if known.gone else known
    place = begin_place(submitted, known.seq)
    return place if known.gone else evolve(place, signals=known.signals, sent=known.sent)


async def read_place(session: Session, key: str) -> Place | None:
    """What was written of a thread's place, from the leader; None where that is nothing."""
    found = await read_one(session, session.names.queue, last_by_subj=session.names.place(key))
    return None if found is None else decode_place(found[4], found[1])


async def end_place(session: Session, key: str, thread_id: str, gone: int) -> None:
    """Leave word that a thread was deleted, for a day: what other stores know of its place counts no more."""
    while True:
        found = await read_place(session, key)
        marker = Place(id=thread_id, seq=0 if found is None else found.seq, gone=gone)
        if await write_place(session, key, marker) is not None:
            return


async def write_place(session: Session, key: str, place: Place) -> Place | None:
    """Replace a place by what it was changed to, if it is still the one that was changed (`Place.seq`); else None.

    Raises:
        NatsProblem: it could not be stored.
    """
    deadline = time.monotonic() + session.settings.patience
    headers, body = {_FENCE: str(place.seq)}, place.encode()
    if place.gone:
        headers["Nats-TTL"] = _KEPT
    is_sent = False
    while True:
        await session.wire.up(deadline)
        try:
            return evolve(place, seq=await session.wire.publish(session.names.place(key), body, headers))
        except ConnectionLost:
            is_sent = True
        except ApiError as e:
            if e.is_conflict:
                if not is_sent:
                    return None
                # It may have been stored by a try whose answer was lost.
                found = await read_place(session, key)
                return found if found is not None and found.write == place.write else None
            if not e.is_passing:
                raise session.problem(e) from None
        if time.monotonic() >= deadline:
            raise session.wire.unreachable()


async def change_place(session: Session, thread_id: str, offer: str, **changes: Any) -> Place | None:
    """Change the place of a thread that was offered, or None where that offer is over.

    Args:
        session: the store.
        thread_id: the thread.
        offer: which offer.
        changes: fields; ``ends`` and ``due`` as `locus_plugin_nats.queue` gives them.
    """
    ends, now, key = changes.pop("ends"), changes.pop("now"), key_of(thread_id)
    # Mostly nothing has changed since it was offered; where something has, the write is refused.
    found = session.index.places.get(thread_id)
    if found is None or found.offer != offer:
        found = await read_place(session, key)
    while True:
        if found is None or found.gone or found.offer != offer:
            return None
        wanted = dict(changes)
        if ends:
            wanted |= {"offer": "", "delivered": 0}
            if found.is_signalled:
                wanted["due"] = now
        stored = await write_place(session, key, found.change(**wanted))
        if stored is not None:
            session.index.put(stored)
            return stored
        found = await read_place(session, key)
