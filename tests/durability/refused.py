"""A file that cannot be written for a while: from one write on, and until somebody has seen to it.

There is no room by SQLite's page limit or by this process's limit on the size of files, the file may only be read, or
somebody keeps it locked. ``python -m tests.durability.refused '{"how": "limit", ...}'`` prints a line of JSON a write
that was struck; a process of its own, because a limit on files is the whole process's.
"""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Literal, TypeVar

import anyio
from attrs import frozen
from tests.durability.case import THREAD, Plain, Program, Segment, final_state, plain, segment, whole
from tests.durability.explore import SCRIPT
from tests.durability.log import Log
from tests.durability.oracle import judge
from tests.durability.pointed import after, digest
from tests.durability.points import Points
from tests.durability.subjects import Sqlite

from locus.core.errors import StoreError
from locus.core.journal import END, Body, Transition
from locus.core.state import AgentState
from locus.journal.store import Appended, Claim, Posted
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Session

__all__ = ["PROGRAM", "Begun", "Found", "How", "Place", "Refusing", "explored", "struck"]

T = TypeVar("T")

How = Literal["pages", "limit", "read-only", "locked"]

#: All three policies, alone and together, a failing tool and a question.
PROGRAM = Program([*SCRIPT[:2], ["fail", "ask"], ["look"], SCRIPT[-1]], reviews=False)

#: Seconds; whoever keeps the file locked keeps it longer.
_BUSY = 0.01

#: Small pages, so that nearly every append needs another one.
_PAGE = 512


class _Saying(Operation[None]):
    """Say something to the store's own connection."""

    grouped = False

    def __init__(self, sql: str) -> None:
        super().__init__(None)
        self._sql = sql
        self.said = Event()

    def apply(self, session: Session) -> None:
        session.db.execute(self._sql).fetchall()
        self.said.set()


class Begun:
    """An append under way: what came of it is known when somebody asks."""

    def __init__(self, store: Refusing, number: int, bodies: Sequence[Body], inner: Posted) -> None:
        self._store, self._number, self._what, self.inner = store, number, after(bodies), inner
        self._digests = Counter(map(digest, bodies))
        self._behind: list[Begun] = []
        store.written += self._digests

    def before(self, other: Begun) -> None:
        """That one stands behind this one."""
        self._behind.append(other)

    async def wait(self) -> Appended:
        """What came of it."""
        try:
            return await self.inner.wait()
        except Exception:
            self._store.struck = self._store.struck or (self._number, self._what)
            self.refused()
            raise

    def refused(self) -> None:
        """Neither this nor what stands behind it may be there."""
        self._store.written -= self._digests
        for each in self._behind:
            each.refused()  # nobody asks about it any more


class Refusing(SqliteStore):
    """The store, from one of its writes on in trouble, until it is `relieved`."""

    how: How
    at = 0
    writes = 0
    locker: sqlite3.Connection | None = None
    #: The number of the write that was refused first, and what it was.
    struck: tuple[int, str] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: What it may have written: where a call is refused, nobody waits any more for what is written beside it.
        self.written: Counter[str] = Counter()

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        digests = Counter(map(digest, bodies))
        self.written += digests
        try:
            return await self._struck(after(bodies), super().append(claim, bodies))
        except Exception:
            self.written -= digests
            raise

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Begun:
        number, first = self._counted(), after if isinstance(after, Begun) else None
        made = Begun(self, number, bodies, super().post(claim, bodies, after=None if first is None else first.inner))
        if first is not None:
            first.before(made)
        return made

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        return await self._struck("snapshot", super().snapshot(claim, at, state, last))

    def _counted(self) -> int:
        self.writes += 1
        if self.writes == self.at:
            self._trouble()
        return self.writes

    async def _struck(self, what: str, write: Coroutine[Any, Any, T]) -> T:
        number = self._counted()
        try:
            return await write
        except Exception:
            self.struck = self.struck or (number, what)
            raise

    def _say(self, sql: str) -> None:
        # Without a turn of the loop: what is begun comes behind it.
        saying = _Saying(sql)
        self._queue(saying)
        saying.said.wait()

    def _trouble(self) -> None:
        match self.how:
            case "pages":  # no further one than there are
                self._say("PRAGMA max_page_count=1")
            case "limit":  # in the middle of the next page that is written to the log, or copied from it
                self._say("PRAGMA wal_checkpoint(TRUNCATE)")
                _limit(200)
            case "read-only":
                self._say("PRAGMA query_only=1")
            case "locked":
                self.locker = sqlite3.connect(self.path, isolation_level=None)
                self.locker.execute("BEGIN EXCLUSIVE")

    async def relieved(self) -> None:
        """There is room again; it may be written, and nobody else does."""
        self._say("PRAGMA max_page_count=4294967294")
        self._say("PRAGMA query_only=0")
        _limit(resource.RLIM_INFINITY)
        if self.locker is not None:
            self.locker.close()


def _limit(size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


class Place(Sqlite):
    """Where such a store lies."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        db = sqlite3.connect(self.path)
        db.execute(f"PRAGMA page_size={_PAGE}")
        db.execute("VACUUM")
        db.close()

    def handle(self, how: How, at: int) -> Refusing:
        """A handle on it, for which trouble begins at a write; 0 = never."""
        store = Refusing(self.path, sync="normal", clock=self.clock, busy_timeout=_BUSY)
        store.how, store.at = how, at
        if self.snapshot_every is not None:
            store.snapshot_every = self.snapshot_every
        self._opened.append(store)
        return store


@frozen
class Found:
    """What came of trouble at one write.

    Args:
        struck: number and kind of the write that was refused; None where the run ended before.
        errors: class and text of what the run raised.
        wrong: what should not be so.
    """

    struck: tuple[int, str] | None
    errors: tuple[tuple[str, str], ...]
    wrong: tuple[str, ...]


async def struck(how: How, at: int, place: Place, wanted: Plain, *, again: bool) -> Found:
    """A run with trouble from a write on, seen to once it was told, to its end and before the oracle.

    Args:
        how: the trouble.
        at: the number of the write.
        place: where.
        wanted: the run without trouble.
        again: whether a new handle goes on, or the one that was refused.
    """
    log, store = Log(), place.handle(how, at)
    first = store
    errors: list[StoreError | None] = []
    wrong: list[str] = []

    async def step(answers: dict[str, Any] | None) -> Segment:
        nonlocal store
        ended = await segment(PROGRAM, store, log, Points(), answers=answers)
        if ended.status == "failed":
            errors.append(ended.error)
            wrong.extend(await _kept(store, log))
            more = await segment(PROGRAM, store, log, Points())
            errors.append(more.error)
            wrong.extend(await _kept(store, log))
            await first.relieved()
            if again:
                await store.aclose()
                store = place.handle(how, 0)
        return ended

    await whole(step)
    if not errors:
        await first.relieved()  # nobody was told of the trouble
    store = place.handle(how, 0)
    verdict = judge(
        await final_state(store),
        await store.read(THREAD),
        log,
        wanted=wanted.state,
        asked=wanted.asked,
        faults=len(errors),
        rows=place.rows(THREAD),
    )
    await place.close()
    return Found(first.struck, tuple((type(e).__name__, str(e)) for e in errors), (*wrong, *verdict.wrong))


async def _kept(store: Refusing, log: Log) -> list[str]:
    """What is wrong while the trouble lasts: what was acknowledged is there, nothing else is, and the run is open."""
    bodies = [entry.body for entry in await store.read(THREAD)]
    found = [digest(body) for body in bodies]
    told = Counter(d for line in log.lines("acked") if line["thread"] == THREAD for d in line["digests"])
    wrong = [f"{each} was acknowledged and is not there" for each in told - Counter(found)]
    wrong += [f"{each} was refused and is there" for each in Counter(found) - store.written]
    if any(isinstance(body, Transition) and body.next_node == END and digest(body) not in told for body in bodies):
        wrong.append("the run has ended")
    return wrong


async def explored(how: How, folder: Path, *, snapshot_every: int = 4) -> list[Found]:
    """Trouble at each write, one after another; the last one found is the run that ended before."""
    wanted, found = await plain(PROGRAM), []
    for at in range(1, 1_000):
        place = folder / str(at)
        place.mkdir()
        subject = Place(place, snapshot_every=snapshot_every)
        found.append(await struck(how, at, subject, wanted, again=at % 2 == 0))
        if found[-1].struck is None:
            return found
    raise AssertionError("the run has no end")


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for each in anyio.run(explored, order["how"], Path(order["folder"])):
        sys.stdout.write(json.dumps({"struck": each.struck, "errors": each.errors, "wrong": each.wrong}) + "\n")
