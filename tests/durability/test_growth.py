"""A commit costs what it adds, however long the run is; a resume reads what stands there once.

Nothing is timed: what is counted is bytes that reach the file, instructions of SQLite's machine, and functions that
Python enters, for windows of a hundred iterations.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest
from attrs import define, field

from locus import Agent, tool
from locus.core.journal import BLANK, Body, Outcome, StepId, fold
from locus.journal.store import Appended, Claim
from locus.models.protocol import ModelRequest
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Session
from locus_testkit import ScriptedModel, call, never

#: Iterations that are looked at together; several snapshots fall into each.
WINDOW = 100

#: How much more the last ones of a run may cost than the first ones.
FLAT = 1.2

#: What a tool returns, in bytes; random, so that nothing is saved by compression but what its digits allow.
RESULT = 2_000


@define
class Work:
    """What was done so far.

    Args:
        steps: of SQLite's machine.
        entered: functions of Python, in every thread.
        read: contents of entries and snapshots that were read, and how often.
    """

    steps: int = 0
    entered: int = 0
    read: Counter[bytes] = field(factory=Counter)


class Counted(sqlite3.Connection):
    """A connection that counts, and leaves its log to whoever measures it."""

    work = Work()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        super().execute("PRAGMA wal_autocheckpoint=0")
        self.set_progress_handler(self._step, 1)
        self.row_factory = self._row

    def _step(self) -> int:
        self.work.steps += 1
        return 0

    def _row(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self.work.read.update(each for each in row if isinstance(each, bytes))
        return row

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute("SELECT 1" if sql.startswith("PRAGMA wal_autocheckpoint") else sql, *parameters)


@contextmanager
def working() -> Iterator[Work]:
    """What the connections do that are opened meanwhile."""
    connect, done = sqlite3.connect, Work()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Counted, **options))
        patch.setattr(Counted, "work", done)
        yield done


@contextmanager
def counted(work: Work) -> Iterator[None]:
    """Count the functions that are entered, in threads that start from now on as well."""

    def profile(_: FrameType, event: str, __: object) -> None:
        if event == "call":
            work.entered += 1

    gc.disable()  # or it may call back in the middle
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()


@tool
async def read(n: int) -> str:
    """Read an item."""
    return os.urandom(RESULT // 2).hex()


class _Barrier(Operation[None]):
    """Done when all before it is."""

    grouped = writes = False

    def __init__(self) -> None:
        super().__init__(None)
        self.reached = threading.Event()

    def apply(self, session: Session) -> None:
        self.reached.set()


def settle(store: SqliteStore) -> None:
    """Let what was begun be written, or it depends on the moment what is written together with what comes next."""
    barrier = _Barrier()
    store._queue(barrier)
    assert barrier.reached.wait(60)


class Often(SqliteStore):
    """With so many snapshots that several fall into each window."""

    snapshot_every = 64


def agent(store: SqliteStore, script: Any) -> Agent[None, str]:
    """An agent with one tool, whose body may happen once only."""
    return Agent(ScriptedModel(script, after="repeat"), tools=[read], checkpointer=store, max_iterations=10**6)


def taken(path: Path) -> int:
    """The bytes that were written to the log since this was asked last."""
    log = path.with_name(f"{path.name}-wal")
    found = log.stat().st_size
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return found


@define
class Window:
    """What some iterations cost, and how long the file was behind them."""

    written: int
    steps: int
    entered: int
    size: int


def windows(path: Path, kind: type[SqliteStore], iterations: int, window: int = WINDOW) -> list[Window]:
    """A run of some iterations, window by window."""
    found: list[Window] = []
    asked = steps = entered = 0

    def script(_: ModelRequest) -> Any:
        nonlocal asked, steps, entered
        asked += 1
        settle(store)
        if asked % window == 1:
            written = taken(path)
            found.append(Window(written, work.steps - steps, work.entered - entered, path.stat().st_size))
            steps, entered = work.steps, work.entered
        return "done" if asked > iterations else call("read", n=asked)

    store = kind(path, sync="normal")

    async def run() -> None:
        async with store:
            await agent(store, script).run("x", thread_id="t")

    with working() as work, counted(work):
        anyio.run(run)
    return found[1:]  # what came before the first iteration is none


@pytest.fixture(scope="module", params=[SqliteStore, Often])
def long(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Window]:
    """1,600 iterations: that is also 100 and 400."""
    return windows(tmp_path_factory.mktemp("long") / "runs.db", request.param, 1_600)


COSTS = ["written", "steps", "entered"]


@pytest.mark.parametrize("iterations", [400, 1_600])
@pytest.mark.parametrize("what", COSTS)
def test_the_last_iterations_cost_what_the_first_did(long: list[Window], what: str, iterations: int) -> None:
    first, last = (getattr(long[n], what) for n in (0, iterations // WINDOW - 1))
    assert first > WINDOW
    assert last <= FLAT * first


def test_the_file_grows_by_the_same_for_the_same(long: list[Window], request: pytest.FixtureRequest) -> None:
    sizes = [window.size for window in long]
    # Of the store's own snapshots one falls into every two windows, of those that come often several into each.
    step = 2 if request.node.callspec.params["long"] is SqliteStore else 1
    grown = [after - before for before, after in pairwise(sizes[::step])]
    assert len(grown) >= 7
    assert max(grown) <= FLAT * min(grown)
    assert sizes[3] <= 3_000_000  # 400 iterations of 2 KB


# -- a resume ----------------------------------------------------------------------------------------------


def left(path: Path, kind: type[SqliteStore], iterations: int) -> None:
    """A run that is cancelled in the model call after its iterations."""

    async def run() -> None:
        async with kind(path, sync="normal") as store, anyio.create_task_group() as group:
            asked = 0

            def script(_: ModelRequest) -> Any:
                nonlocal asked
                asked += 1
                if asked <= iterations:
                    return call("read", n=asked)
                group.cancel_scope.cancel()
                return never

            await agent(store, script).run("x", thread_id="t")

    anyio.run(run)


#: What was written of entries behind a key, and of snapshots: rows, and what is too long for them.
_ENTRIES = """
    SELECT body FROM entries WHERE key > {0}
    UNION ALL SELECT body FROM blobs WHERE sha IN (SELECT sha FROM uses WHERE key > {0})
"""
_SNAPSHOTS = """
    SELECT body FROM snapshots
    UNION ALL SELECT body FROM blobs WHERE sha IN (SELECT sha FROM uses WHERE key < 0)
"""
_BEHIND = _ENTRIES.format("(SELECT ifnull(max(key), 0) FROM snapshots)")


def resumed(path: Path) -> tuple[Work, Work]:
    """What it takes to read a thread, and what a resume does before its model call."""
    before = Work()

    async def run(work: Work) -> None:
        async with SqliteStore(path, sync="normal") as store:

            def script(_: ModelRequest) -> Any:
                before.steps, before.entered, before.read = work.steps, work.entered, Counter(work.read)
                return "done"

            await agent(store, script).resume("t")

    async def read_all() -> None:
        async with SqliteStore(path, sync="normal") as store:
            await store.read("t")

    with working() as reading, counted(reading):
        anyio.run(read_all)
    with working() as work, counted(work):
        anyio.run(run, work)
    return reading, before


@pytest.mark.parametrize("kind", [SqliteStore, Often])
def test_a_resume_reads_each_entry_once(kind: type[SqliteStore], tmp_path: Path) -> None:
    found: dict[int, Work] = {}
    for iterations in (250, 1_000):
        path = tmp_path / f"{iterations}.db"
        left(path, kind, iterations)
        with closing(sqlite3.connect(path)) as db:
            entries, snapshots, behind = (
                [row[0] for row in db.execute(which)] for which in (_ENTRIES.format(0), _SNAPSHOTS, _BEHIND)
            )
        reading, found[iterations] = resumed(path)
        read = found[iterations].read
        assert set(reading.read) >= set(entries)
        # The snapshots are as long as the state, and only the entries behind the last of them are read beside them.
        assert set(read) >= {*snapshots, *behind}
        assert max(read.values()) == 1
        assert sum(map(len, read)) <= FLAT * sum(map(len, snapshots if kind is Often else (*snapshots, *behind)))
        assert sum(map(len, read)) <= sum(map(len, entries))
        assert found[iterations].entered <= 2 * reading.entered
    short, long = found[250], found[1_000]
    assert long.steps <= 4 * FLAT * short.steps
    assert long.entered <= 4 * FLAT * short.entered


# -- the proof of the proof ----------------------------------------------------------------------------------


class Whole(SqliteStore):
    """Writes the whole state each time, beside what is added."""

    snapshot_every = None  # type: ignore[assignment]
    post: None = None  # type: ignore[assignment]
    state = BLANK

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        self.state = fold(self.state, bodies)
        whole = Outcome(run_id="", step_id=StepId(0, "none"), value=self.state.to_checkpoint())
        return await super().append(claim, [*bodies, whole])


def test_a_store_that_writes_the_whole_state_each_time_is_found(tmp_path: Path) -> None:
    found = windows(tmp_path / "runs.db", Whole, 60, window=20)
    for what in ("written", "entered"):
        first, *_, last = (getattr(window, what) for window in found)
        assert last > 2 * first, what
    grown = [after.size - before.size for before, after in pairwise(found)]
    assert grown[1] > FLAT * grown[0]
