"""Tasks and the thread behind them: what is cancelled is finished first, what waits is committed together."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import wait_all_tasks_blocked

from locus.core.errors import NotSerialisable, ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal.store import Appended, Claim
from locus_plugin_sqlite import DiskFull, SqliteStore
from locus_plugin_sqlite.session import Session

from .process import step
from .thread import stopped

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else can write meanwhile."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")
        db.close()


async def bodies(store: SqliteStore, thread: str = "t") -> list[object]:
    return [entry.body for entry in await store.read(thread)]


# -- cancelled ------------------------------------------------------------------------------------


async def test_a_cancelled_append_is_stored_when_the_cancellation_arrives(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        ended: list[str] = []

        async def append() -> None:
            try:
                await store.append(claim, [step(1)])
                await anyio.lowlevel.checkpoint()
            finally:
                ended.append("cancelled")

        async with anyio.create_task_group() as group:
            with locked(path):
                group.start_soon(append)
                await wait_all_tasks_blocked()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await wait_all_tasks_blocked()
                assert ended == []
        assert ended == ["cancelled"]
        assert await bodies(store) == [step(1)]
        assert await store.append(claim, [step(2)]) is Appended.OK


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_task_of_asyncio_finishes_its_append_too(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        with locked(path):
            task = asyncio.create_task(store.append(claim, [step(1)]))
            for _ in range(3):
                await wait_all_tasks_blocked()
                task.cancel()
            await wait_all_tasks_blocked()
            assert not task.done()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await bodies(store) == [step(1)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_timeout_of_asyncio_is_a_timeout_and_cancels_nothing_else(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        lock = locked(path)
        lock.__enter__()
        asyncio.get_running_loop().call_later(0.01, lock.__exit__, None, None, None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.append(claim, [step(1)]), 0.001)
        await asyncio.sleep(0)
        assert await bodies(store) == [step(1)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_claim_is_given_back(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.release(await store.claim("t", "w"))
        async with anyio.create_task_group() as group:
            with locked(path):
                group.start_soon(store.claim, "t", "gone")
                await wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        await store.claim("t", "next")


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_claim_that_is_cancelled_on_trio_is_handed_over(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.release(await store.claim("t", "w"))
        given: list[Claim] = []

        async def claim() -> None:
            given.append(await store.claim("t", "w"))

        async with anyio.create_task_group() as group:
            with locked(path):
                group.start_soon(claim)
                await wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        await store.release(given[0])
        await store.claim("t", "next")


def test_what_is_asked_without_an_event_loop_is_done_all_the_same(path: Path) -> None:
    """As when a run is closed by the garbage collector: there is nobody left to wait."""
    store = SqliteStore(path)
    claim = anyio.run(store.claim, "t", "w")
    release = store.release(claim)
    with pytest.raises(StopIteration):
        release.send(None)
    again = anyio.run(store.claim, "t", "next")
    assert again.token != claim.token
    anyio.run(store.aclose)


async def test_a_coroutine_that_is_closed_while_it_waits_takes_nothing(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.release(await store.claim("t", "w"))
        waiting: Any = store.claim("t", "closed")
        waiting.send(None)
        waiting.close()
        await store.claim("t", "next")


# -- together ---------------------------------------------------------------------------------------


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each transaction."""
    made: list[int] = []
    before = Session.transaction

    def counted(self: Session, *, writes: bool = True, durable: bool = True) -> Any:
        made.append(1)
        return before(self, writes=writes, durable=durable)

    monkeypatch.setattr(Session, "transaction", counted)
    return made


async def test_what_waits_is_committed_together(path: Path, commits: list[int]) -> None:
    async with SqliteStore(path) as store:
        claims = [await store.claim(str(n), "w") for n in range(50)]
        got: list[Appended] = []

        async def append(n: int) -> None:
            got.append(await store.append(claims[n], [step(n)]))

        commits.clear()
        async with anyio.create_task_group() as group:
            with stopped(store):
                for n in range(50):
                    group.start_soon(append, n)
                await wait_all_tasks_blocked()
        assert got == [Appended.OK] * 50
        assert len(commits) == 1
        for n in range(50):
            assert await bodies(store, str(n)) == [step(n)]


class Unstorable:
    """A value without a JSON form."""


async def test_what_cannot_be_stored_harms_nothing_that_waits_beside_it(path: Path) -> None:
    async with SqliteStore(path, max_bytes=200_000) as store:
        claims = {name: await store.claim(name, "w") for name in ("good", "strange", "huge", "stale")}
        await store.release(claims["stale"])
        batches = {
            "good": step(1),
            "strange": Outcome(run_id="r", step_id=StepId(0, "x"), value=Unstorable()),
            "huge": Outcome(run_id="r", step_id=StepId(0, "x"), value=[f"{n:x}" for n in range(10**5)]),
            "stale": step(1),
        }
        got: dict[str, object] = {}

        async def append(name: str) -> None:
            try:
                got[name] = await store.append(claims[name], [batches[name]])
            except (NotSerialisable, DiskFull) as e:
                got[name] = type(e)

        async def claim() -> None:
            try:
                await store.claim("huge", "another")
            except ThreadBusy as e:
                got["claim"] = type(e)

        async with anyio.create_task_group() as group:
            with locked(path):
                group.start_soon(store.claim, "first", "w")  # keeps the worker waiting
                await wait_all_tasks_blocked()
                for name in batches:
                    group.start_soon(append, name)
                group.start_soon(claim)
                await wait_all_tasks_blocked()
        assert got == {
            "good": Appended.OK,
            "strange": NotSerialisable,
            "huge": DiskFull,
            "stale": Appended.FENCED,
            "claim": ThreadBusy,
        }
        assert await bodies(store, "good") == [step(1)]


def test_several_event_loops_share_a_store(path: Path) -> None:
    store = SqliteStore(path)

    async def work(name: str) -> None:
        claim = await store.claim(name, "w")
        for n in range(20):
            assert await store.append(claim, [step(n)]) is Appended.OK
        await store.release(claim)

    def loop(name: str, backend: str) -> None:
        anyio.run(work, name, backend=backend)

    threads = [threading.Thread(target=loop, args=(f"{b}{n}", b)) for n in range(2) for b in ("asyncio", "trio")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def check() -> None:
        for info in await store.threads():
            assert await bodies(store, info.thread_id) == [step(n) for n in range(20)]
        assert len(await store.threads()) == 4
        await store.aclose()

    anyio.run(check)


class Struck(BaseException):
    """What nobody expects in the thread."""


async def test_whatever_breaks_in_the_thread_reaches_the_caller(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        for error in (Struck("in a statement"), RuntimeError("in a statement")):
            with monkeypatch.context() as patch:
                patch.setattr(Session, "now", lambda _, error=error: (_ for _ in ()).throw(error))
                with pytest.raises(type(error), match="in a statement"):
                    await store.append(claim, [step(1)])
                with pytest.raises(type(error), match="in a statement"):
                    await store.claim("u", "w")
        assert await store.append(claim, [step(2)]) is Appended.OK
        assert await bodies(store) == [step(2)]


# -- the thread's life ----------------------------------------------------------------------------


def worker_thread(store: SqliteStore) -> threading.Thread:
    thread = store._worker._thread
    assert thread is not None
    return thread


async def test_a_store_that_is_dropped_closes_itself(path: Path) -> None:
    store = SqliteStore(path)
    await store.claim("t", "w")
    thread, dropped = worker_thread(store), weakref.ref(store)
    assert thread.daemon
    del store
    gc.collect()
    assert dropped() is None
    thread.join(30)
    assert not thread.is_alive()
    async with SqliteStore(path) as again:
        await again.claim("t", "next")


async def test_closing_ends_the_thread(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.claim("t", "w")
        thread = worker_thread(store)
    assert not thread.is_alive()


def test_a_store_that_is_never_used_has_no_thread(path: Path) -> None:
    before = threading.active_count()
    store = SqliteStore(path)
    assert threading.active_count() == before
    anyio.run(store.aclose)
