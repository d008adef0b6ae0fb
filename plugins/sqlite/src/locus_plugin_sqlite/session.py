"""An open file, and what this process holds in it. Lives in the worker's thread and is touched by no other."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING
from weakref import WeakSet

from attrs import define, field

from locus.core.journal import BLANK
from locus.journal import PriorityTurns
from locus.journal.listing import NEW, About, Progress
from locus_kit.folds import Folds
from locus_plugin_sqlite.errors import FileGone, FileProblem
from locus_plugin_sqlite.failures import problem
from locus_plugin_sqlite.file import Files, forget, open_file
from locus_plugin_sqlite.folds import KeptFold
from locus_plugin_sqlite.liveness import Holder, Process, micros, this_process
from locus_plugin_sqlite.room import Reserve, lacks_room, punch_free_pages
from locus_plugin_sqlite.settings import SqliteSettings
from locus_plugin_sqlite.signal_rows import read_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from locus.core.state import AgentState
    from locus.journal import Clock, ThreadInfo, Watch

__all__ = ["Held", "Session"]


@define
class Held:
    """A claim of this store.

    Args:
        thread: row of the thread.
        head: number of its newest entry; None = to be read again.
        tip: checksum of the row that holds it.
        progress: how far the thread's newest run is there.
        about: what the thread is about.
        at: of its newest snapshot; 0 = it has none.
        mark: checksum of that.
        state: the state there.
        watch: of the claim, once that is made.
        shown: number of the newest signal that it was shown.
    """

    thread: int
    head: int | None
    tip: int = 0
    progress: Progress = NEW
    about: About = field(factory=About)
    at: int = 0
    mark: int = 0
    state: AgentState = BLANK
    watch: Watch | None = None
    shown: int = 0


#: Seconds between two looks for signals from other processes, and for claims that were lost.
_LOOK = 1.0

_sessions: WeakSet[Session] = WeakSet()


def _always() -> bool:
    return True


class Session:
    """The connection, made when it is first needed and again when the file was replaced."""

    def __init__(self, path: Path, settings: SqliteSettings, clock: Clock) -> None:
        _sessions.add(self)
        self.path, self.settings = path, settings
        self._clock = clock
        #: The claims of this store, by token.
        self.held: dict[str, Held] = {}
        #: Claims that were given back and could not be written so yet: token -> thread, not before.
        self.owed: dict[str, tuple[str, int | None]] = {}
        self.folds: Folds[int, KeptFold] = Folds()
        #: The row of this store in `workers`, or None before its first claim.
        self.worker: int | None = None
        self._db: sqlite3.Connection | None = None
        self._files: Files | None = None
        self._reserve = Reserve(path)
        #: The file where this connection keeps all others out of it; held open for longer than that connection, since
        #: closing a file gives up the locks that its process has on it.
        self._alone: IO[bytes] | None = None
        #: Whether the row of every thread was compared with its checksum.
        self.verified = False
        self._due = self._look = float("inf")
        #: Whether the program still does its work, as it says itself; asked before the timer renews the lease.
        self.is_alive: Callable[[], bool] = _always
        self._registered = False
        self._data_version = 0
        self.turns = PriorityTurns()
        #: Whether to look for threads to forget when nothing else waits, and those that were found.
        self.is_to_prune = False
        self.forgettable: list[ThreadInfo] = []

    # -- the file ---------------------------------------------------------------------------------

    @property
    def db(self) -> sqlite3.Connection:
        """The connection; `ready` has opened it."""
        assert self._db is not None
        return self._db

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self._db is not None or self.path.exists()

    def ready(self) -> None:
        """Open the file unless it is open, and insist that it is still the same.

        Raises:
            FileProblem: it cannot be used.
        """
        if self._files is not None:
            try:
                self._files.check()
            except FileGone:
                saved = self._files.has_lost_its_log and self._save_log()
                self._lose()
                if saved:
                    raise FileGone(
                        self.path,
                        "its log (the file beside it that ends in -wal) was deleted while it was in use; what was "
                        "committed is not lost, it was written into the file, and the threads that were held are free: "
                        "stop what deletes the log, then resume the run",
                    ) from None
                raise
            return
        # Without room for its shared memory SQLite fails, or the process dies of a signal.
        if not (self.path.exists() and lacks_room(self.path) and self._open_alone()):
            try:
                self._db = open_file(self.path, self.settings)
            except sqlite3.Error as e:
                raise problem(e, self.path, self.settings.busy_timeout) from e
            self._reserve.hold()
        self._files = Files(self.path)

    # -- room -------------------------------------------------------------------------------------

    def _open_alone(self) -> bool:
        """Open the file and keep all others out of it, unless one of them is there."""
        self._alone = self.path.open("r+b", buffering=0)
        try:
            self._db = open_file(self.path, self.settings, alone=True)
        except sqlite3.Error:
            self.let_others_in()
        return self._alone is not None

    def let_others_in(self) -> None:
        """Close a file that all others were kept out of; the next call opens it anew."""
        if self._alone is not None:
            if self._db is not None:
                self._db.close()
            self._alone.close()
            self._db = self._files = self._alone = None

    def copy_log(self) -> bool:
        """Copy the log into the file; False where the file cannot grow, or an older state of it is being read."""
        try:
            _, pages, copied = self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return False
        return bool(pages == copied)

    def release_reserve(self) -> None:
        """Let the room go that is held for a deletion."""
        self._reserve.release()
        self.copy_log()

    def do_without_log(self) -> None:
        """Have SQLite change the file in place, and remember in memory what was there, until others are let in.

        It needs no room then. No other process may have the file open, and a crash in the moment of a commit can
        damage it.

        Raises:
            FileProblem: it cannot be opened alone, or its log cannot be copied into it.
        """
        if self._alone is None:
            self.db.close()
            self._db = self._files = None
            if not self._open_alone():
                self.ready()
                return
            self._files = Files(self.path)
        self.db.execute("PRAGMA journal_mode=MEMORY")

    def restore_room(self) -> None:
        """After a deletion: give its room back to a disk that had none at all, and hold the reserve again."""
        if self._alone is not None:
            if self.db.execute("PRAGMA journal_mode").fetchone() == ("memory",):
                punch_free_pages(self._alone)
                self.db.execute("PRAGMA journal_mode=WAL")
        elif not self._reserve.is_held:
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA busy_timeout=0")
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.execute(f"PRAGMA busy_timeout={round(self.settings.busy_timeout * 1000)}")
            self._reserve.hold()

    # -- the end ----------------------------------------------------------------------------------

    def _save_log(self) -> bool:
        """Write a log that has no name any more, and that this connection still has open, into the file."""
        try:
            self._give_back()
            busy, *_ = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
        return not busy

    def _give_back(self) -> None:
        """Give back every thread that is held."""
        if self.worker is not None:
            with self.transaction(durable=False):
                self.db.execute("UPDATE threads SET worker=NULL, token='' WHERE worker=?", (self.worker,))
                self.db.execute("DELETE FROM workers WHERE id=?", (self.worker,))

    def _lose(self) -> None:
        # What was held is not there any more; the next call starts on whatever lies there now.
        forget(self.db)
        self._reserve.release()
        self._db = self._files = self.worker = None
        self.verified = False
        for token in tuple(self.held):
            self.lose_claim(token)
        self.owed.clear()
        self.folds = Folds()
        self._due = float("inf")

    def abandon(self) -> None:
        """Leave the connection to the process before: this one is a fork of it."""
        if self._db is not None and self._files is not None:
            self._files.inherit()
            forget(self._db)

    def size(self) -> int:
        """Bytes of the file and its log."""
        both = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(each.stat().st_size for each in both if each.exists())

    def close(self) -> None:
        """Give everything back and close the file."""
        if self._db is None:
            return
        try:
            self.ready()  # a connection to a file that is gone must not be closed
        except FileProblem:
            return
        # SQLite writes to its log, and copies it into the file, which may grow by that.
        self._reserve.release()
        # Without its row this store is taken for dead when its process or its lease ends.
        with contextlib.suppress(sqlite3.Error):
            self._give_back()
        self.db.close()
        self._db = self._files = None
        self.let_others_in()

    @contextlib.contextmanager
    def transaction(self, *, writes: bool = True, durable: bool = True) -> Iterator[None]:
        """All or nothing, and no other connection writes meanwhile.

        Args:
            writes: False to read from one moment of the file.
            durable: False for what a power cut may take back: nothing is waited for. It still comes before all that
                is written later, so a later commit that is durable makes it so, too.
        """
        if durable or not writes or self.settings.sync != "full":
            with self._transaction(writes=writes):
                yield
            return
        self.db.execute("PRAGMA synchronous=normal")
        try:
            with self._transaction(writes=True):
                yield
        finally:
            self.db.execute("PRAGMA synchronous=full")

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        self._registered = False
        self.db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            # SQLite may have ended the transaction by itself.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if self._registered:
                self.worker = None
            self.doubt()
            raise

    def doubt(self) -> None:
        """Something failed: ask the file what it holds before anything is added to it."""
        for held in self.held.values():
            held.head = None

    # -- time and life ----------------------------------------------------------------------------

    def now(self) -> int:
        """Microseconds since 1970."""
        return micros(self._clock.now())

    @property
    def lease(self) -> int:
        """Microseconds."""
        return int(self.settings.lease * 1_000_000)

    def holder(self, worker: int | None) -> Holder | None:
        """The store that holds a thread, or None where it has left no trace."""
        if worker is None:
            return None
        found = self.db.execute("SELECT host, machine, pid, started, lease FROM workers WHERE id=?", (worker,))
        row = found.fetchone()
        return None if row is None else Holder(Process(*row[:4]), row[4])

    def register(self) -> int:
        """Say, in the transaction under way, that this store lives; gives its row in `workers`."""
        lease = self.now() + self.lease
        if self.worker is not None:
            renewed = self.db.execute("UPDATE workers SET lease=? WHERE id=?", (lease, self.worker))
            if renewed.rowcount:
                return self.worker
        me = this_process()
        # A row that others have cleaned away comes back under its own number, which no other store ever gets.
        values = (self.worker, me.host, me.machine, me.pid, me.started, lease)
        made = self.db.execute("INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?)", values).lastrowid
        assert made is not None
        if self.worker is None:
            self.worker, self._registered = made, True
        return made

    def schedule_renewal(self) -> None:
        """The lease was written: the next time is a third of it from now."""
        now = time.monotonic()
        self._due = now + self.settings.lease / 3 if self.held or self.owed else float("inf")
        self._look = min(self._look, now + _LOOK) if self.held else float("inf")

    def wait(self) -> float | None:
        """Seconds until there is something to do without being asked; None = never."""
        due = min(self._due, self._look)
        return None if due == float("inf") else max(0.0, due - time.monotonic())

    def tick(self) -> None:
        """Renew the lease when it is time, and settle what is owed. What fails is tried again next time."""
        if time.monotonic() >= self._look:
            with contextlib.suppress(Exception):  # the next call reports it
                self.ready()
                self._look_around()
            self.let_others_in()
            self._look = time.monotonic() + _LOOK if self.held else float("inf")
        if time.monotonic() < self._due:
            return
        with contextlib.suppress(Exception):  # the next call reports it
            self.ready()
            with self.transaction(durable=False):
                settled = self.write_owed()
                if self.held and self.is_alive():
                    self.register()
            for token in settled:
                del self.owed[token]
        self.let_others_in()
        self.schedule_renewal()

    def _look_around(self) -> None:
        """Find signals that other processes have sent, and claims that they have taken over."""
        (version,) = self.db.execute("PRAGMA data_version").fetchone()
        if version == self._data_version:  # no other connection has written
            return
        for token, held in tuple(self.held.items()):
            if self.db.execute("SELECT 1 FROM threads WHERE id=? AND token=?", (held.thread, token)).fetchone() is None:
                self.lose_claim(token)
            else:
                self.show_signals(held.thread)
        self._data_version = version

    def lose_claim(self, token: str) -> None:
        """A claim is over, because another one was made."""
        held = self.held.pop(token, None)
        if held is not None and held.watch is not None:
            held.watch.lose()

    def show_signals(self, thread: int) -> None:
        """Show the holder of a thread, where that is this store, the signals that it was not shown yet."""
        for held in self.held.values():
            if held.thread == thread and held.watch is not None:
                for signal in read_signals(self.db, thread, held.shown):
                    held.shown = signal.n
                    held.watch.signal(signal)

    def write_owed(self) -> tuple[str, ...]:
        """Write, in the transaction under way, that claims were given back; gives their tokens."""
        for token, (name, not_before) in self.owed.items():
            self.release(name, token, not_before)
        return tuple(self.owed)

    def release(self, name: str, token: str, not_before: int | None) -> None:
        """Write, in the transaction under way, that a claim was given back, if it is still valid."""
        self.db.execute(
            "UPDATE threads SET token='', worker=NULL, not_before=?, updated=?, "
            "changed=(SELECT max(changed) FROM threads) + 1 WHERE name=? AND token=?",
            (not_before, self.now(), name, token),
        )


def _abandon_sessions() -> None:
    for session in tuple(_sessions):
        session.abandon()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_abandon_sessions)
