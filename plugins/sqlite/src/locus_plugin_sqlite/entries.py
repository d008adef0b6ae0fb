"""Adding entries and snapshots, and reading them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from locus.core.errors import JournalError
from locus.core.journal import Body, Entry, Transition, delta
from locus.journal import Appended, Claim
from locus.journal.listing import NEW, About, Progress, about, progress
from locus_kit.entry_json import to_json
from locus_plugin_sqlite import blobs
from locus_plugin_sqlite.checks import body_check, row_check
from locus_plugin_sqlite.claims import find_thread, held_thread
from locus_plugin_sqlite.journal_rows import MASK, SHIFT, Form, Journal, read_journal, read_thread_row
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Held, Session
from locus_plugin_sqlite.thread_rows import read_held, update_about

if TYPE_CHECKING:
    from locus.core.state import AgentState

__all__ = ["Appending", "EntryBatch", "Reading", "ReadingForms", "ReadingHead", "Snapping", "Storing"]

T = TypeVar("T")

#: The most entries in a row: a page of a long append is read without the rest of it.
_PAGE = 256

_APPEND = """
INSERT INTO entries (key, writer, at, parent, status, node, content, checksum, body)
SELECT ?, token, ?, ?, ?, ?, ?, ?, ? FROM threads WHERE id=? AND token=?
"""


def _find_held(session: Session, claim: Claim) -> Held | None:
    """What is known of a claim, whichever store made it; None when it is no longer valid."""
    held = session.held.get(claim.token)
    if held is None and held_thread(session.db, claim.thread_id, claim.token) is None:
        return None
    if held is None or held.head is None:
        row = read_thread_row(session.db, session.path, "name", claim.thread_id)
        if row is None:
            return None
        fresh = read_held(session.db, session.path, row)
        if held is None:
            return fresh
        held.head, held.tip, held.progress, held.about = fresh.head, fresh.tip, fresh.progress, fresh.about
    return held


def _add(session: Session, held: Held, token: str, row: blobs.Row, head: int, after: Progress) -> bool:
    """Write one row, if the claim is still valid.

    Args:
        session: the file, within a transaction unless this is all that is written.
        held: what is known of the claim; brought up to date.
        token: of the claim.
        row: what is written.
        head: number of its last entry.
        after: how far the newest run is then.
    """
    key, content, now = held.thread << SHIFT | head, body_check(row.body), session.now()
    checksum = row_check(key, token, now, held.tip, after.status, after.node, content)
    # One statement looks at the fence and writes: the claim of another process is seen here or comes after. A trigger
    # makes the row the newest of its thread.
    done = session.db.execute(
        _APPEND, (key, now, held.tip, after.status, after.node, content, checksum, row.body, held.thread, token)
    )
    if done.rowcount != 1:  # the first: behind it the transaction keeps other processes out
        session.lose_claim(token)
        return False
    if row.blobs:
        blobs.put(session.db, key, row.blobs)
    held.head, held.tip, held.progress = head, checksum, after
    return True


class EntryBatch:
    """The entries of a thread that is to be stored whole, as rows: they are packed when they are added.

    A few kilobytes become a row. A row as long as that of a long append takes three times as long to pack, because
    zlib does not find again by itself what lies so far back.
    """

    def __init__(self) -> None:
        #: Each row, how many entries it has, and how far the newest run is behind it.
        self.rows: list[tuple[blobs.Row, int, Progress]] = []
        self.about, self._progress = About(), NEW
        self._bodies: list[Body] = []
        self._texts: list[bytes] = []
        self._bytes = 0

    def add(self, body: Body, text: bytes) -> None:
        """One more entry, and its JSON text: `locus.core.journal.entry_to_json`, encoded."""
        if self._bodies and (self._bytes + len(text) > blobs.NEAR or len(self._bodies) == _PAGE):
            self.pack()
        self._bodies.append(body)
        self._texts.append(text)
        self._bytes += len(text) + 1

    def pack(self) -> None:
        """Make a row of what was added since the last one."""
        if self._bodies:
            self._progress, self.about = progress(self._bodies, self._progress), about(self._bodies, self.about)
            self.rows.append((blobs.pack_texts(self._texts), len(self._bodies), self._progress))
            self._bodies, self._texts, self._bytes = [], [], 0


class Storing(Operation[Appended]):
    """Add a batch to a thread that is empty, in one transaction."""

    __slots__ = ("_batch", "_claim")

    def __init__(self, claim: Claim, batch: EntryBatch) -> None:
        super().__init__(Appended.FENCED)
        self._claim, self._batch = claim, batch

    def prepare(self) -> None:
        """Pack what is left."""
        self._batch.pack()

    def apply(self, session: Session) -> None:
        """Write the rows, if the claim is still valid."""
        self.result = Appended.FENCED
        held, batch = _find_held(session, self._claim), self._batch
        if (
            held is None
            or held.head is None
            or held_thread(session.db, self._claim.thread_id, self._claim.token) is None
        ):
            return
        if held.head:
            raise JournalError(f"thread {self._claim.thread_id!r} is not empty; it has {held.head} entries")
        with contextlib.nullcontext() if session.db.in_transaction else session.transaction(durable=self.durable):
            for row, count, after in batch.rows:
                if not _add(session, held, self._claim.token, row, (held.head or 0) + count, after):
                    return
            found = read_thread_row(session.db, session.path, "id", held.thread)
            assert found is not None
            update_about(session.db, found, batch.about)
            held.about = batch.about
        self.result = Appended.OK


class Appending(Operation[Appended]):
    """Add entries: one row, or one for each `_PAGE` of them."""

    __slots__ = ("_joined", "_rows", "after", "bodies", "claim", "count", "forms")

    def __init__(self, claim: Claim, bodies: Sequence[Body], after: Appending | None = None) -> None:
        super().__init__(Appended.FENCED)
        self.claim, self.bodies, self.count, self.after = claim, tuple(bodies), len(bodies), after
        # In the thread that made them: the values are in the cache of that processor.
        self.forms = to_json(bodies)
        self._rows: list[blobs.Row] = []
        self._joined: list[Appending] = []

    def join(self, other: Operation[Any]) -> bool:
        """Write what was posted behind this in the same row."""
        if type(other) is not Appending or other.after is not (self._joined[-1] if self._joined else self):
            return False
        if other.claim.token != self.claim.token or not (self.count and other.count):
            return False
        self._joined.append(other)
        self.bodies += other.bodies
        self.forms += other.forms
        self.count += other.count
        return True

    def prepare(self) -> None:
        """Make rows of them."""
        self._rows = [blobs.pack(self.forms[at : at + _PAGE]) for at in range(0, self.count, _PAGE)]
        self.atomic = len(self._rows) == 1 and not self._rows[0].blobs

    def apply(self, session: Session) -> None:
        """Write the rows, if the claim is still valid."""
        self.result = Appended.FENCED
        if self.after is not None and (self.after.error is not None or self.after.result is not Appended.OK):
            return  # the task that waits for that one gets the reason
        held, token = _find_held(session, self.claim), self.claim.token
        if held is None or held.head is None:
            return
        if not self.count:
            self.result = Appended.OK if held_thread(session.db, self.claim.thread_id, token) else Appended.FENCED
            return
        if held.head + self.count > MASK:
            raise JournalError(f"thread {self.claim.thread_id!r} has {held.head} entries and can have no more")
        known = about(self.bodies, held.about)
        if session.db.in_transaction or (self.atomic and known is held.about):
            self._write(session, held, known)
        else:
            with session.transaction(durable=self.durable):
                self._write(session, held, known)

    def _write(self, session: Session, held: Held, known: About) -> None:
        head, after = held.head, held.progress
        assert head is not None
        for row, first in zip(self._rows, range(0, self.count, _PAGE), strict=True):
            page = self.bodies[first : first + _PAGE]
            head, after = head + len(page), progress(page, after)
            if not _add(session, held, self.claim.token, row, head, after):
                return
        if known is not held.about:
            found = read_thread_row(session.db, session.path, "id", held.thread)
            assert found is not None
            update_about(session.db, found, known)
        held.about = known
        self.result = Appended.OK

    def finish(self, session: Session) -> None:
        """Let go of the one before, and answer for those behind."""
        self.after = None
        for each in self._joined:
            each.result, each.after = self.result, None

    def on_failure(self, session: Session) -> None:
        """It was not stored, also for the one after it, however late that looks."""
        self.after, self.result = None, Appended.FENCED
        for each in self._joined:
            each.error = self.error


class Snapping(Operation[bool]):
    """Write what became of the state since the snapshot before: all of them together are as long as the state."""

    __slots__ = ("_at", "_claim", "_last", "_mark", "_state")
    # Each starts from the one before, so it must not be one of a transaction that is tried twice.
    grouped = False

    def __init__(self, claim: Claim, at: int, state: AgentState, last: Transition) -> None:
        super().__init__(result=False)
        self._claim, self._at, self._state, self._last = claim, at, state, last
        self._mark = 0

    def apply(self, session: Session) -> None:
        """Write the difference, if the claim is still valid."""
        held = session.held.get(self._claim.token)
        if held is None or self._at <= held.at:
            # A cache may be left out: it is another store's claim, or this place has one already.
            self.result = held_thread(session.db, self._claim.thread_id, self._claim.token) is not None
            return
        change = delta(held.state, self._state)
        whole = Transition(run_id=self._last.run_id, node=self._last.node, next_node=self._last.next_node, delta=change)
        row = blobs.pack(to_json([whole]))
        at, held.at = held.at, MASK  # none after one that may have been written or not
        with session.transaction(durable=False):
            self.result = self._write(session, held, row)
        held.at = self._at if self.result else at
        if self.result:
            held.state, held.mark = self._state, self._mark

    def _write(self, session: Session, held: Held, row: blobs.Row) -> bool:
        if held_thread(session.db, self._claim.thread_id, self._claim.token) is None:
            return False
        if held.head is None:
            _find_held(session, self._claim)
        if held.head is None or self._at > held.head:
            return False
        key = held.thread << SHIFT | self._at
        content = body_check(row.body)
        checksum = row_check(key, "", 0, held.mark, "", "", content)
        session.db.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)", (key, held.mark, content, checksum, row.body)
        )
        blobs.put(session.db, -key, row.blobs)
        self._mark = checksum
        return True


class _Read(Operation[tuple[T, ...]]):
    """What a thread has after a number, and up to one."""

    __slots__ = ("_after", "_found", "_name", "_upto")
    writes = False

    def __init__(self, name: str, after: int, upto: int = MASK) -> None:
        super().__init__(())
        self._name, self._after, self._upto = name, max(0, after), upto
        self._found: Journal | None = None

    def apply(self, session: Session) -> None:
        """Read the rows."""
        row = find_thread(session, self._name)
        self._found = None if row is None else read_journal(session.db, session.path, row, self._after, self._upto)


class Reading(_Read[Entry]):
    """The entries of a thread after a number, and up to one."""

    __slots__ = ()

    def finish(self, session: Session) -> None:
        """Decode them."""
        if self._found is not None:
            self.result = tuple(self._found.entries(self._after + 1)[: self._upto - self._after])


class ReadingForms(_Read[Form]):
    """The same as they are stored."""

    __slots__ = ()

    def finish(self, session: Session) -> None:
        """Unpack them."""
        if self._found is not None:
            self.result = tuple(self._found.forms(self._after + 1))


class ReadingHead(Operation[int]):
    """The number of a thread's newest entry."""

    __slots__ = ("_name",)
    writes = False

    def __init__(self, name: str) -> None:
        super().__init__(0)
        self._name = name

    def apply(self, session: Session) -> None:
        """Read the thread's row."""
        row = find_thread(session, self._name)
        self.result = 0 if row is None else row.head
