"""What the proofs are about: stores that outlive a process, and the broken ones that the proofs must tell from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from attrs import evolve
from tests.durability.filestore import FileStore
from tests.durability.points import Points

from locus.core.journal import Body, Transition
from locus.core.state import AgentState
from locus.journal import MemoryStore
from locus.journal.effects import Clock
from locus.journal.store import Appended, Claim, JournalStore, Posted
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.settings import Sync
from locus_testkit import FakeClock

__all__ = ["SUBJECTS", "Files", "Late", "Memory", "Sqlite", "Subject"]

#: Longer than any lease here.
LONG = timedelta(minutes=10)


class Subject:
    """A place where journals lie, and handles on it.

    Args:
        folder: where it may write.
        snapshot_every: after how many entries the loop offers a snapshot.
    """

    name: ClassVar[str]

    def __init__(self, folder: Path, *, snapshot_every: int | None = None) -> None:
        self.folder, self.snapshot_every = folder, snapshot_every
        #: Of the leases. It stands still unless somebody is buried, or a process brings its own.
        self.clock: Clock = FakeClock(datetime(2030, 1, 1, tzinfo=UTC))
        #: How long a holder that is not known to be dead is waited for.
        self.lease = timedelta(seconds=30)

    def open(self, points: Points) -> JournalStore:
        """A handle, as a new process makes it."""
        raise NotImplementedError

    def impatient(self) -> None:
        """Wait for nobody: the processes are real, only one is alive at a time, and this store cannot tell."""

    def bury(self) -> None:
        """Let so much time pass that nobody waits for the dead."""
        assert isinstance(self.clock, FakeClock)
        self.clock.advance(LONG.total_seconds())

    async def settle(self) -> None:
        """Let what the dead had begun to write be written: they are only played, and who comes next looks once."""

    async def close(self) -> None:
        """Give back what handles still hold of this process."""

    def rows(self, thread: str) -> list[tuple[int, str]] | None:
        """(number, writer) of everything that lies there for a thread; None when nothing else can lie there."""
        return None


class _Surviving(MemoryStore):
    """Memory that outlives the processes, and knows when they have died."""

    def __init__(self) -> None:
        super().__init__()
        self._abandoned = set[str]()

    def bury(self) -> None:
        for thread_id, thread in self._threads.items():
            if thread.held is not None:
                thread.held = None
                self._abandoned.add(thread_id)

    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        is_abandoned = thread_id in self._abandoned
        self._abandoned.discard(thread_id)
        return evolve(claim, is_abandoned=is_abandoned)


class _Begun:
    """What was begun, and what came of it."""

    def __init__(self, store: _Late, claim: Claim, bodies: Sequence[Body], after: Posted | None) -> None:
        self._store, self.claim, self.bodies, self.after = store, claim, bodies, after
        self.got = Appended.FENCED

    async def wait(self) -> Appended:
        await self._store.catch_up()
        return self.got


class _Late(_Surviving):
    """Writes what was begun as late as it may: when somebody wants to know, or asks for something else.

    What the dead had begun is lost, and not, as on a disk, sometimes there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[_Begun] = []

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        made = _Begun(self, claim, bodies, after)
        self._begun.append(made)
        return made

    async def catch_up(self) -> None:
        while self._begun:
            each = self._begun.pop(0)
            if not (isinstance(each.after, _Begun) and each.after.got is not Appended.OK):
                each.got = await super().append(each.claim, each.bodies)

    def bury(self) -> None:
        self._begun.clear()
        super().bury()

    async def claim(self, thread_id: str, worker: str) -> Claim:
        await self.catch_up()
        return await super().claim(thread_id, worker)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        await self.catch_up()
        return await super().append(claim, bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        await self.catch_up()
        return await super().snapshot(claim, at, state, last)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        await self.catch_up()
        await super().release(claim, not_before)


class Memory(Subject):
    """Journals in memory; processes are only played."""

    name = "memory"
    store: ClassVar[type[_Surviving]] = _Surviving

    def __init__(self, folder: Path, *, snapshot_every: int | None = None) -> None:
        super().__init__(folder, snapshot_every=snapshot_every)
        self._store = self.store()
        self._store.snapshot_every = snapshot_every  # type: ignore[assignment]

    def open(self, points: Points) -> JournalStore:
        return self._store

    def bury(self) -> None:
        self._store.bury()


class Late(Memory):
    """Journals in memory, where what was begun is lost with whoever began it."""

    name = "late"
    store = _Late


class Files(Subject):
    """Journals in files of JSON lines."""

    name = "files"
    store: ClassVar[type[FileStore]] = FileStore

    def open(self, points: Points) -> JournalStore:
        return self.store(
            self.folder / "journals",
            now=self.clock.now,
            lease=self.lease,
            snapshot_every=self.snapshot_every,
            point=points.here,
        )

    def impatient(self) -> None:
        self.lease = timedelta(0)

    def rows(self, thread: str) -> list[tuple[int, str]] | None:
        return self.store(self.folder / "journals").rows(thread)


class Sqlite(Subject):
    """Journals in an SQLite file."""

    name = "sqlite"
    store: ClassVar[type[SqliteStore]] = SqliteStore
    #: What survives a power cut has proofs of its own; the others are about processes.
    sync: ClassVar[Sync] = "normal"

    def __init__(self, folder: Path, *, snapshot_every: int | None = None) -> None:
        super().__init__(folder, snapshot_every=snapshot_every)
        self._opened: list[SqliteStore] = []

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "runs.db"

    def open(self, points: Points) -> JournalStore:
        store = self.store(self.path, sync=self.sync, lease=self.lease.total_seconds(), clock=self.clock)
        if self.snapshot_every is not None:
            store.snapshot_every = self.snapshot_every
        self._opened.append(store)
        return store

    async def settle(self) -> None:
        for store in self._opened:
            await store.threads()

    async def close(self) -> None:
        for store in self._opened:
            await store.aclose()
        self._opened.clear()

    def rows(self, thread: str) -> list[tuple[int, str]] | None:
        db = sqlite3.connect(self.path)
        try:
            found = db.execute(
                "SELECT key & 4294967295, writer FROM entries JOIN threads ON threads.id = key >> 32 WHERE name=?",
                (thread,),
            )
            return list(found)
        finally:
            db.close()


SUBJECTS: dict[str, type[Subject]] = {subject.name: subject for subject in (Memory, Late, Files, Sqlite)}
