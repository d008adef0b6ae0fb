"""Taking a thread and giving it back. A claim writes a new token, and that fences every older one."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from uuid import uuid4

from attrs import evolve

from locus.core.errors import ThreadBusy
from locus.core.journal import BLANK, Transition
from locus.journal import Claim, Signal, Snapshot
from locus_plugin_sqlite.errors import EntryDamaged
from locus_plugin_sqlite.folds import KeptFold, find_fold
from locus_plugin_sqlite.journal_rows import Journal, ThreadRow, check_absent, fold, read_journal, read_thread_row
from locus_plugin_sqlite.liveness import from_micros, micros, this_process
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.schema import check_version
from locus_plugin_sqlite.session import Session
from locus_plugin_sqlite.signal_rows import read_signals
from locus_plugin_sqlite.thread_rows import insert_thread, read_held

__all__ = [
    "Claiming",
    "Peeking",
    "Releasing",
    "Renewing",
    "busy_error",
    "describe_holder",
    "find_holder",
    "find_thread",
    "held_thread",
]

#: Microseconds after which a store that left its row behind is forgotten.
_FORGOTTEN = 24 * 3600 * 1_000_000

_TAKE = """
UPDATE threads
SET token=?, worker=?, holder=?, since=?, changed=(SELECT max(changed) FROM threads) + 1, updated=?
WHERE id=?
"""
_CLEAN = "DELETE FROM workers WHERE lease<? AND id NOT IN (SELECT worker FROM threads WHERE worker IS NOT NULL)"


def find_holder(session: Session, worker: int | None, token: str) -> str | None:
    """Where a thread's holder is, for people (``""``: in this process); None when it is not held."""
    if worker is None:
        return None
    if worker == session.worker:  # it lives, whatever became of its lease while the machine slept
        return "" if token in session.held else None
    found = session.holder(worker)
    if found is None or not found.is_alive(session.now()):
        return None
    process = found.process
    return "" if process == this_process() else f"pid {process.pid} on {process.host}"


def busy_error(session: Session, name: str) -> ThreadBusy | None:
    """The refusal for a thread that a live worker holds."""
    return _holder(session, name)[0]


def _holder(session: Session, name: str) -> tuple[ThreadBusy | None, bool]:
    """The refusal for a thread that a live worker holds, and whether a dead one does."""
    row = session.db.execute("SELECT worker, token, holder, since FROM threads WHERE name=?", (name,)).fetchone()
    if row is None:
        return None, False
    where = find_holder(session, row[0], row[1])
    if where is None:
        return None, row[0] is not None
    return ThreadBusy(name, describe_holder(row[2], where), from_micros(row[3]).isoformat()), False


def describe_holder(holder: str, where: str) -> str:
    """What a holder calls itself, and where it is unless that is here."""
    if not where:
        return holder
    return where if where.startswith(f"{holder} ") else f"{holder}, {where}"


class Claiming(Operation[Claim | None]):
    """Take a thread."""

    __slots__ = ("_found", "_is_abandoned", "_kept", "_name", "_settled", "_signals", "_who", "token")
    # After a power cut no process is left that it would have to fence.
    durable = False

    def __init__(self, name: str, who: str) -> None:
        super().__init__(None)
        self._name, self._who = name, who
        #: Known before it is taken, so that a caller who stops waiting can have it given back.
        self.token = uuid4().hex
        self._found: Journal | None = None
        self._kept: KeptFold | None = None
        self._is_abandoned = False
        self._settled: tuple[str, ...] = ()
        self._signals: tuple[Signal, ...] = ()

    def apply(self, session: Session) -> None:
        """Take it, and read its entries."""
        check_version(session.db, session.path)
        self._settled = session.write_owed()
        refusal, self._is_abandoned = _holder(session, self._name)
        if refusal is not None:
            raise refusal
        db, now = session.db, session.now()
        row = read_thread_row(db, session.path, "name", self._name)
        if row is None:
            check_absent(db, session.path, self._name, everything=not session.verified)
            session.verified = True
            db.execute(_CLEAN, (now - _FORGOTTEN,))
            row = insert_thread(db, self._name, now)
        # Read before it is taken: a thread that cannot be read is not held, and can be deleted.
        self._kept = find_fold(session.folds, db, row)
        self._found = read_journal(db, session.path, row, None if self._kept is None else self._kept.fold.at)
        self._signals = read_signals(db, row.id)
        db.execute(_TAKE, (self.token, session.register(), self._who, now, now, row.id))
        # Now, because another claim of the same transaction must find it.
        session.held[self.token] = read_held(db, session.path, row)

    def finish(self, session: Session) -> None:
        """Decode that."""
        for token in self._settled:
            session.owed.pop(token, None)
        session.schedule_renewal()
        held, found = session.held.get(self.token), self._found
        if held is None or found is None:
            return  # given back in the same transaction
        try:
            made = build_claim(found, self.token, is_abandoned=self._is_abandoned, kept=self._kept)
            self.result = evolve(made, signals=self._signals)
        except BaseException:
            # The caller will not know of this claim.
            session.owed[self.token] = (self._name, None)
            raise
        held.watch, held.shown = self.result.watch, max((each.n for each in self._signals), default=0)
        if self._kept is not None:
            held.at, held.mark, held.state = self._kept.at, self._kept.mark, self._kept.state
        elif self.result.snapshot is not None:
            held.at, held.mark, held.state = found.at, found.mark, self.result.snapshot.state
        self._found = None

    def on_failure(self, session: Session) -> None:
        """Nothing is held."""
        session.held.pop(self.token, None)


def build_claim(found: Journal, token: str, *, is_abandoned: bool, kept: KeptFold | None = None) -> Claim:
    """What a claim shows of a thread, of which what comes after a fold was read where one is kept.

    Raises:
        EntryDamaged: it is not what was written.
    """
    if kept is not None:
        entries = tuple(found.entries(kept.fold.at + 1))
        return Claim(
            thread_id=found.name,
            token=token,
            head=found.head,
            snapshot=kept.fold,
            entries=entries,
            is_abandoned=is_abandoned,
        )
    if not found.chunks:
        entries = tuple(found.entries(1))
        return Claim(thread_id=found.name, token=token, head=found.head, entries=entries, is_abandoned=is_abandoned)
    at = found.at
    state = fold(BLANK, found.deltas())
    last, *rest = found.entries(at) or (None,)
    if last is None or not isinstance(last.body, Transition):
        raise EntryDamaged(found.path, found.name, at, "has a snapshot and is not a transition")
    return Claim(
        thread_id=found.name,
        token=token,
        head=found.head,
        snapshot=Snapshot(at, state, last.body),
        entries=tuple(rest),
        is_abandoned=is_abandoned,
    )


def find_thread(session: Session, name: str) -> ThreadRow | None:
    """The row of a thread that is to be read; None where there never was one.

    Raises:
        FileDamaged: it is not what was written, or it is not certain that there never was one.
    """
    row = read_thread_row(session.db, session.path, "name", name)
    if row is None:
        check_absent(session.db, session.path, name, everything=not session.verified)
        session.verified = True
    return row


class Peeking(Operation[Claim | None]):
    """What a claim would show."""

    __slots__ = ("_found", "_is_abandoned", "_kept", "_name")
    writes = False

    def __init__(self, name: str) -> None:
        super().__init__(None)
        self._name = name
        self._found: Journal | None = None
        self._kept: KeptFold | None = None
        self._is_abandoned = False

    def apply(self, session: Session) -> None:
        """Read its entries."""
        row = find_thread(session, self._name)
        _, self._is_abandoned = _holder(session, self._name)
        if row is not None and row.head:
            self._kept = find_fold(session.folds, session.db, row)
            after = None if self._kept is None else self._kept.fold.at
            self._found = read_journal(session.db, session.path, row, after)

    def finish(self, session: Session) -> None:
        """Decode that."""
        if self._found is not None:
            self.result = build_claim(self._found, "", is_abandoned=self._is_abandoned, kept=self._kept)


class Renewing(Operation[bool]):
    """Whether a claim is still valid; renews the lease of all of this store's."""

    __slots__ = ("_claim",)
    durable = False

    def __init__(self, claim: Claim) -> None:
        super().__init__(result=False)
        self._claim = claim

    def apply(self, session: Session) -> None:
        """Look, and renew."""
        self.result = held_thread(session.db, self._claim.thread_id, self._claim.token) is not None
        if self.result and self._claim.token in session.held:
            session.register()

    def finish(self, session: Session) -> None:
        """Set the timer."""
        session.schedule_renewal()


def held_thread(db: sqlite3.Connection, name: str, token: str) -> int | None:
    """The number of a thread where this claim holds it, else None."""
    if not token:
        return None
    found = db.execute("SELECT id FROM threads WHERE name=? AND token=?", (name, token)).fetchone()
    return None if found is None else int(found[0])


class Releasing(Operation[None]):
    """Give a thread back. A full disk does not keep it: then it is free for this store at once, and written later.

    A power cut may take that back: then the thread is taken for one whose worker is gone. When it wants to go on is
    kept.
    """

    __slots__ = ("_claim", "_fold", "_not_before", "durable")

    def __init__(self, claim: Claim, not_before: datetime | None, fold: Snapshot | None = None) -> None:
        super().__init__(None)
        self._claim, self._fold = claim, fold
        self._not_before = None if not_before is None else micros(not_before)
        self.durable = not_before is not None

    def apply(self, session: Session) -> None:
        """Free it, where the claim is still valid."""
        token = self._claim.token
        if not token:
            return
        held = session.held.pop(token, None)
        if held is not None:
            if self._fold is not None and held.head is not None:
                session.folds.keep(held.thread, KeptFold(self._fold, held.head, token, held.at, held.mark, held.state))
            # Until it is committed.
            session.owed[token] = (self._claim.thread_id, self._not_before)
        session.release(self._claim.thread_id, token, self._not_before)

    def finish(self, session: Session) -> None:
        """Nothing is owed."""
        session.owed.pop(self._claim.token, None)
        session.schedule_renewal()
        session.is_to_prune = session.settings.keep_ended_days is not None

    def on_failure(self, session: Session) -> None:
        """It is free for this store, and owed to the file."""
        # The run has ended, and how it ended matters more than this.
        if session.held.pop(self._claim.token, None) is not None:
            session.owed[self._claim.token] = (self._claim.thread_id, self._not_before)
        session.schedule_renewal()
        self.error = None
