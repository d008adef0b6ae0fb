"""Taking a thread and giving it back. A claim writes a new token, and that fences every older one."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from uuid import uuid4

from locus.core.errors import ThreadBusy
from locus.core.journal import BLANK, Transition
from locus.journal import Claim, Snapshot
from locus_plugin_sqlite.errors import FileDamaged
from locus_plugin_sqlite.job import Job
from locus_plugin_sqlite.liveness import from_micros, micros, this_process
from locus_plugin_sqlite.rows import Journal, fold, head_of, journal
from locus_plugin_sqlite.schema import check_version
from locus_plugin_sqlite.session import Held, Session

__all__ = ["Claiming", "Peeking", "Releasing", "Renewing", "busy", "living"]

#: Microseconds after which a store that left its row behind is forgotten.
_FORGOTTEN = 24 * 3600 * 1_000_000

_TAKE = """
UPDATE threads
SET token=?, worker=?, holder=?, since=?, changed=(SELECT max(changed) FROM threads) + 1, updated=?
WHERE id=?
"""
_MAKE = """
INSERT INTO threads (name, token, worker, holder, since, changed, updated)
VALUES (?, ?, ?, ?, ?, coalesce((SELECT max(changed) FROM threads), 0) + 1, ?)
"""
_CLEAN = "DELETE FROM workers WHERE lease<? AND id NOT IN (SELECT worker FROM threads WHERE worker IS NOT NULL)"


def living(session: Session, worker: int | None, token: str) -> str | None:
    """Where a thread's holder is, for people (``""``: in this process); None when nobody holds it."""
    if worker is None:
        return None
    if worker == session.worker:  # it lives, whatever became of its lease while the machine slept
        return "" if token in session.held else None
    found = session.holder(worker)
    if found is None or not found.is_alive(session.now()):
        return None
    process = found.process
    return "" if process == this_process() else f"pid {process.pid} on {process.host}"


def busy(session: Session, name: str) -> ThreadBusy | None:
    """The refusal for a thread that a live worker holds."""
    row = session.db.execute("SELECT worker, token, holder, since FROM threads WHERE name=?", (name,)).fetchone()
    if row is None:
        return None
    where = living(session, row[0], row[1])
    if where is None:
        return None
    return ThreadBusy(name, described(row[2], where), from_micros(row[3]).isoformat())


def described(holder: str, where: str) -> str:
    """What a holder calls itself, and where it is unless that is here."""
    if not where:
        return holder
    return where if where.startswith(f"{holder} ") else f"{holder}, {where}"


class Claiming(Job[Claim | None]):
    """Take a thread."""

    __slots__ = ("_found", "_head", "_name", "_settled", "_thread", "_who", "token")
    # After a power cut nobody is left whom it would have to fence.
    durable = False

    def __init__(self, name: str, who: str) -> None:
        super().__init__(None)
        self._name, self._who = name, who
        #: Known before it is taken, so that whoever stops waiting can have it given back.
        self.token = uuid4().hex
        self._found: Journal | None = None
        self._thread = self._head = 0
        self._settled: tuple[str, ...] = ()

    def apply(self, session: Session) -> None:
        """Take it, and read what stands in it."""
        check_version(session.db, session.path)
        self._settled = session.settle()
        refusal = busy(session, self._name)
        if refusal is not None:
            raise refusal
        self._thread, shared, new = self._take(session)
        self._head = 0 if new else head_of(session.db, self._thread, shared)
        # Now, because another claim of the same transaction must find it.
        session.held[self.token] = Held(self._thread, self._head)
        if new:
            self._found = Journal(session.path, self._name, (), (), {})
        else:
            self._found = journal(session.db, session.path, self._name, self._thread, None)

    def _take(self, session: Session) -> tuple[int, int | None, bool]:
        db, now, worker = session.db, session.now(), session.register()
        row = db.execute("SELECT id, parent_at FROM threads WHERE name=?", (self._name,)).fetchone()
        if row is not None:
            db.execute(_TAKE, (self.token, worker, self._who, now, now, row[0]))
            return int(row[0]), row[1], False
        db.execute(_CLEAN, (now - _FORGOTTEN,))
        made = db.execute(_MAKE, (self._name, self.token, worker, self._who, now, now)).lastrowid
        assert made is not None
        return made, None, True

    def finish(self, session: Session) -> None:
        """Decode that."""
        for token in self._settled:
            session.owed.pop(token, None)
        session.renewed()
        held, found = session.held.get(self.token), self._found
        if held is None or found is None:
            return  # given back in the same transaction
        try:
            self.result = shown(found, self.token, self._head)
        except BaseException:
            # Nobody will know of this claim.
            session.owed[self.token] = (self._name, None)
            raise
        if self.result.snapshot is not None:
            held.at, held.state = self.result.snapshot.at, self.result.snapshot.state
        self._found = None

    def failed(self, session: Session) -> None:
        """Nothing is held."""
        session.held.pop(self.token, None)


def shown(found: Journal, token: str, head: int) -> Claim:
    """What a claim shows of a thread."""
    if not found.chunks:
        return Claim(thread_id=found.name, token=token, head=head, entries=tuple(found.entries(1)))
    at = found.chunks[-1][0]
    last, *entries = found.entries(at)
    if not isinstance(last.body, Transition):
        raise FileDamaged(found.path, f"the snapshot of thread {found.name!r} at {at} stands for no transition")
    state = fold(BLANK, found.deltas())
    return Claim(
        thread_id=found.name,
        token=token,
        head=head,
        snapshot=Snapshot(at, state, last.body),
        entries=tuple(entries),
    )


class Peeking(Job[Claim | None]):
    """What a claim would show."""

    __slots__ = ("_found", "_head", "_name")
    writes = False

    def __init__(self, name: str) -> None:
        super().__init__(None)
        self._name, self._head = name, 0
        self._found: Journal | None = None

    def apply(self, session: Session) -> None:
        """Read what stands in it."""
        row = session.db.execute("SELECT id, parent_at FROM threads WHERE name=?", (self._name,)).fetchone()
        self._head = 0 if row is None else head_of(session.db, *row)
        self._found = journal(session.db, session.path, self._name, row[0], None) if self._head else None

    def finish(self, session: Session) -> None:
        """Decode that."""
        if self._found is not None:
            self.result = shown(self._found, "", self._head)


class Renewing(Job[bool]):
    """Whether a claim still stands; renews the lease of all of this store's."""

    __slots__ = ("_claim",)
    durable = False

    def __init__(self, claim: Claim) -> None:
        super().__init__(result=False)
        self._claim = claim

    def apply(self, session: Session) -> None:
        """Look, and renew."""
        self.result = standing(session.db, self._claim.thread_id, self._claim.token) is not None
        if self.result and self._claim.token in session.held:
            session.register()

    def finish(self, session: Session) -> None:
        """Set the timer."""
        session.renewed()


def standing(db: sqlite3.Connection, name: str, token: str) -> tuple[int, int | None] | None:
    """Row of a thread, and how much it has from its parent, where this claim holds it."""
    if not token:
        return None
    found = db.execute("SELECT id, parent_at FROM threads WHERE name=? AND token=?", (name, token)).fetchone()
    return None if found is None else (found[0], found[1])


class Releasing(Job[None]):
    """Give a thread back. A full disk does not keep it: then it is free for this store at once, and written later.

    A power cut may take that back: then the thread is taken for one whose worker is gone. When it wants to go on is
    kept.
    """

    __slots__ = ("_claim", "_not_before", "durable")

    def __init__(self, claim: Claim, not_before: datetime | None) -> None:
        super().__init__(None)
        self._claim = claim
        self._not_before = None if not_before is None else micros(not_before)
        self.durable = not_before is not None

    def apply(self, session: Session) -> None:
        """Free it, where the claim still stands."""
        token = self._claim.token
        if not token:
            return
        if session.held.pop(token, None) is not None:
            # Until it is committed.
            session.owed[token] = (self._claim.thread_id, self._not_before)
        session.release(self._claim.thread_id, token, self._not_before)

    def finish(self, session: Session) -> None:
        """Nothing is owed."""
        session.owed.pop(self._claim.token, None)
        session.renewed()

    def failed(self, session: Session) -> None:
        """It is free for this store, and owed to the file."""
        # The run has ended, and how it ended matters more than this.
        if session.held.pop(self._claim.token, None) is not None:
            session.owed[self._claim.token] = (self._claim.thread_id, self._not_before)
        session.renewed()
        self.error = None
