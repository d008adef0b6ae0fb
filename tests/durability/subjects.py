"""What the proofs are about: stores that outlive a process, and the broken ones that the proofs must tell from them."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from tests.durability.filestore import FileStore
from tests.durability.points import Points

from locus.memory import MemoryStore
from locus.memory.clock import Clock
from locus.memory.store import Claim, JournalStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.settings import Sync
from locus_testkit import FakeClock

__all__ = ["SUBJECTS", "Files", "Memory", "Sqlite", "Subject"]

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

    def bury(self) -> None:
        for thread in self._threads.values():
            thread.held = None

    async def claim(self, thread_id: str, worker: str) -> Claim:
        return await super().claim(thread_id, worker)


class Memory(Subject):
    """Journals in memory; processes are only played."""

    name = "memory"

    def __init__(self, folder: Path, *, snapshot_every: int | None = None) -> None:
        super().__init__(folder, snapshot_every=snapshot_every)
        self._store = _Surviving()
        self._store.snapshot_every = snapshot_every  # type: ignore[assignment]

    def open(self, points: Points) -> JournalStore:
        return self._store

    def bury(self) -> None:
        self._store.bury()


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


SUBJECTS: dict[str, type[Subject]] = {subject.name: subject for subject in (Memory, Files, Sqlite)}
