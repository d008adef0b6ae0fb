"""Threads that wait for a worker, and signals to those who hold them.

A thread that was offered keeps its row, due when the lease of the offer ends: so what waits, sleeps or is held by a
worker that died is found by one look at one index. What a power cut takes back of this is an offer made once more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from attrs import frozen

from locus.core.journal import Body
from locus.journal import QueueDepth, Signal
from locus.journal.listing import about, progress
from locus_kit.entry_json import to_bytes, to_json
from locus_plugin_sqlite import blobs
from locus_plugin_sqlite.checks import body_check, row_check
from locus_plugin_sqlite.claims import busy_error, held_thread
from locus_plugin_sqlite.journal_rows import SHIFT, check_absent, read_thread_row
from locus_plugin_sqlite.liveness import from_micros, micros
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.signal_rows import read_signals
from locus_plugin_sqlite.thread_rows import insert_thread, update_about

if TYPE_CHECKING:
    from locus_plugin_sqlite.session import Session

__all__ = [
    "Counting",
    "Forgetting",
    "Looking",
    "Moving",
    "Naming",
    "Offered",
    "ReadingSignals",
    "Signalling",
    "Submitting",
    "Taking",
]

_PUT = "INSERT INTO queue VALUES (?, ?, ?, ?, '', 0, ?)"
_NEXT = """
SELECT q.thread, t.name, q.delivered FROM queue q JOIN threads t ON t.id=q.thread
WHERE q.queue=? AND q.priority=? AND q.due<=? ORDER BY q.due LIMIT 1
"""
_END = """
UPDATE queue SET due=CASE WHEN signalled THEN min(?, coalesce(?, ?)) ELSE ? END, queue=coalesce(?, queue), offer='',
                 delivered=0
WHERE thread=? AND offer=?
"""


class Submitting(Operation[bool]):
    """Begin a thread, and put it into a queue."""

    __slots__ = ("_bodies", "_due", "_name", "_place", "_row")

    def __init__(
        self, name: str, bodies: Sequence[Body], queue: str, priority: int, not_before: datetime | None
    ) -> None:
        super().__init__(result=False)
        self._name, self._bodies, self._place = name, bodies, (queue, priority)
        self._due = None if not_before is None else micros(not_before)
        self._row: blobs.Row | None = None

    def prepare(self) -> None:
        """Encode the entries."""
        self._row = blobs.pack(to_json(self._bodies))

    def apply(self, session: Session) -> None:
        """Write both, unless the thread has entries or is held."""
        db, now, row = session.db, session.now(), self._row
        assert row is not None
        self.result = False
        thread, known = read_thread_row(db, session.path, "name", self._name), about(self._bodies)
        if thread is None:
            check_absent(db, session.path, self._name, everything=not session.verified)
            session.verified = True
            thread = insert_thread(db, self._name, now, about=known)
        elif thread.head or busy_error(session, self._name) is not None:
            return
        else:
            db.execute("UPDATE threads SET token='', worker=NULL WHERE id=?", (thread.id,))
            update_about(db, thread, known)
        key, after, content = thread.id << SHIFT | len(self._bodies), progress(self._bodies), body_check(row.body)
        writer = uuid4().hex
        checksum = row_check(key, writer, now, 0, after.status, after.node, content)
        written = (key, writer, now, 0, after.status, after.node, content, checksum, row.body)
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", written)
        blobs.put(db, key, row.blobs)
        db.execute("DELETE FROM queue WHERE thread=?", (thread.id,))
        db.execute(_PUT, (thread.id, *self._place, now if self._due is None else self._due, 0))
        self.result = True


class Looking(Operation[bool]):
    """Whether a worker would be offered something: it costs no write."""

    __slots__ = ("_queues",)
    writes = False

    def __init__(self, queues: Sequence[str]) -> None:
        super().__init__(result=False)
        self._queues = queues

    def apply(self, session: Session) -> None:
        """Look at each of the queues."""
        now = session.now()
        self.result = any(
            session.db.execute(_NEXT, (queue, priority, now)).fetchone() is not None
            for queue in self._queues
            for priority in (2, 1, 0)
        )


@frozen
class Offered:
    """What a worker was offered: the thread, the token of the offer, and its place."""

    thread: int
    name: str
    token: str
    queue: str
    priority: int
    delivered: int


class Taking(Operation[Offered | None]):
    """Offer a thread."""

    __slots__ = ("_queues",)
    durable = False

    def __init__(self, queues: Sequence[str]) -> None:
        super().__init__(None)
        self._queues = queues

    def apply(self, session: Session) -> None:
        """The first that is due, in the order of queues and priorities."""
        db, now, self.result = session.db, session.now(), None
        for queue in self._queues:
            for priority in session.turns.order(queue):
                found = db.execute(_NEXT, (queue, priority, now)).fetchone()
                if found is not None:
                    thread, name, delivered = found
                    self.result = Offered(thread, name, uuid4().hex, queue, priority, delivered + 1)
                    until = now + session.lease
                    db.execute(
                        "UPDATE queue SET offer=?, delivered=?, due=?, signalled=0 WHERE thread=?",
                        (self.result.token, delivered + 1, until, thread),
                    )
                    session.turns.count(queue)
                    return


class Moving(Operation[bool]):
    """Extend an offer, or end it; False where it is over."""

    __slots__ = ("_delay", "_ends", "_offer", "_queue")
    durable = False

    def __init__(
        self, offer: Offered, delay: float | None = None, queue: str | None = None, *, ends: bool = True
    ) -> None:
        super().__init__(result=False)
        self._offer, self._delay, self._queue, self._ends = offer, delay, queue, ends

    def apply(self, session: Session) -> None:
        """Write when the thread is due."""
        now, offer = session.now(), self._offer
        if self._ends:
            due = None if self._delay is None else now + int(self._delay * 1_000_000)
            done = session.db.execute(_END, (now, due, now, due, self._queue, offer.thread, offer.token))
        else:
            until = now + session.lease
            done = session.db.execute(
                "UPDATE queue SET due=? WHERE thread=? AND offer=?", (until, offer.thread, offer.token)
            )
        self.result = done.rowcount == 1


class Signalling(Operation[bool]):
    """Leave a signal at a thread."""

    __slots__ = ("_body", "_name", "_signal", "_thread")

    def __init__(self, name: str, signal: Signal) -> None:
        super().__init__(result=False)
        self._name, self._signal = name, signal
        self._body, self._thread = b"", 0

    def prepare(self) -> None:
        """Encode it."""
        self._body = to_bytes(to_json([self._signal.body]))

    def apply(self, session: Session) -> None:
        """Keep it, and have the thread offered unless it is."""
        db, now, self.result = session.db, session.now(), False
        found = db.execute("SELECT id FROM threads WHERE name=?", (self._name,)).fetchone()
        if found is None:
            return
        (thread,) = found
        if db.execute("SELECT 1 FROM signals WHERE thread=? AND id=?", (thread, self._signal.id)).fetchone():
            return
        (newest,) = db.execute("SELECT max(n) FROM signals WHERE thread=?", (thread,)).fetchone()
        db.execute("INSERT INTO signals VALUES (?, ?, ?, ?)", (thread, (newest or 0) + 1, self._signal.id, self._body))
        place = db.execute("SELECT due, offer FROM queue WHERE thread=?", (thread,)).fetchone()
        queue = getattr(self._signal.body, "queue", "")
        if place is None and queue:
            db.execute(_PUT, (thread, queue, 0, now, 1))
        elif place is not None:
            due, offer = place
            is_held = offer and due is not None and due > now
            until = due if is_held or (due is not None and due < now) else now
            db.execute("UPDATE queue SET signalled=1, due=? WHERE thread=?", (until, thread))
        self.result, self._thread = True, thread

    def finish(self, session: Session) -> None:
        """Show it to a run of this process."""
        if self.result:
            session.show_signals(self._thread)


class ReadingSignals(Operation[tuple[Signal, ...]]):
    """The signals of a thread."""

    __slots__ = ("_name",)
    writes = False

    def __init__(self, name: str) -> None:
        super().__init__(())
        self._name = name

    def apply(self, session: Session) -> None:
        """Read them."""
        found = session.db.execute("SELECT id FROM threads WHERE name=?", (self._name,)).fetchone()
        self.result = () if found is None else read_signals(session.db, found[0])


class Forgetting(Operation[bool]):
    """Forget signals of a claimed thread. Their ids are kept: what is sent again is known."""

    __slots__ = ("_name", "_numbers", "_token")

    def __init__(self, name: str, token: str, numbers: Collection[int]) -> None:
        super().__init__(result=False)
        self._name, self._token, self._numbers = name, token, numbers

    def apply(self, session: Session) -> None:
        """Drop their bodies, where the claim is valid."""
        thread = held_thread(session.db, self._name, self._token)
        self.result = thread is not None
        if thread is not None:
            session.db.executemany(
                "UPDATE signals SET body=NULL WHERE thread=? AND n=?", [(thread, n) for n in self._numbers]
            )


class Counting(Operation[QueueDepth]):
    """What is in a queue."""

    __slots__ = ("_queue",)
    writes = False

    def __init__(self, queue: str) -> None:
        super().__init__(QueueDepth())
        self._queue = queue

    def apply(self, session: Session) -> None:
        """Count."""
        now = session.now()
        ready, held, every, oldest, again = session.db.execute(
            "SELECT total(due<=:now), total(due>:now AND offer<>''), count(*), min(due), total(delivered>(due>:now)) "
            "FROM queue WHERE queue=:queue AND due IS NOT NULL",
            {"now": now, "queue": self._queue},
        ).fetchone()
        self.result = QueueDepth(
            ready=int(ready),
            held=int(held),
            sleeping=every - int(ready) - int(held),
            oldest=from_micros(oldest) if ready else None,
            redelivered=int(again),
        )


class Naming(Operation[tuple[str, ...]]):
    """The queues with something in them."""

    __slots__ = ()
    writes = False

    def __init__(self) -> None:
        super().__init__(())

    def apply(self, session: Session) -> None:
        """Look at the index."""
        named = "SELECT DISTINCT queue FROM queue WHERE due IS NOT NULL"
        self.result = tuple(sorted(name for (name,) in session.db.execute(named)))
