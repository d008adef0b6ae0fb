"""With ``keep_ended_days``, threads whose run ended long ago go by themselves, and nothing else does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from locus import Agent
from locus.journal import JournalStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import CrashingStore, FakeClock, ScriptedModel, SimulatedCrash

pytestmark = pytest.mark.anyio

_DAY = 24 * 3600


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def ended(store: JournalStore, *threads: str) -> None:
    for thread in threads:
        await Agent(ScriptedModel("hi"), checkpointer=store).run("x", thread_id=thread)


async def names(path: Path) -> set[str]:
    async with SqliteStore(path) as store:
        assert (await store.verify()).damage == ()
        return {info.thread_id for info in await store.threads()}


async def test_what_ended_long_ago_goes_when_a_thread_is_given_back(path: Path) -> None:
    clock = FakeClock()
    async with SqliteStore(path, clock=clock, keep_ended_days=30) as store:
        await ended(store, "old", "origin")
        crashing = CrashingStore("think", store=store)
        with pytest.raises(SimulatedCrash):
            await Agent(ScriptedModel("hi"), checkpointer=crashing).run("x", thread_id="crashed")
        await crashing.revive()
        await store.fork("origin", 1, "fork of origin")
        clock.advance(20 * _DAY)
        await ended(store, "young")
        clock.advance(11 * _DAY)
        await ended(store, "now")
    assert await names(path) == {"origin", "fork of origin", "crashed", "young", "now"}


async def test_a_process_that_runs_for_a_moment_prunes_as_it_closes(path: Path) -> None:
    clock = FakeClock()
    async with SqliteStore(path, clock=clock) as store:
        await ended(store, *(f"old {n}" for n in range(150)))
    clock.advance(2 * _DAY)
    async with SqliteStore(path, clock=clock, keep_ended_days=1) as store:
        assert len(await store.threads()) == 150
        await ended(store, "now")
    assert await names(path) == {"now"}


async def test_it_is_looked_for_old_threads_once_in_a_while(path: Path) -> None:
    clock = FakeClock()

    async def another(thread: str) -> None:
        async with SqliteStore(path, clock=clock, keep_ended_days=24) as store:
            await ended(store, thread)

    await another("a")
    clock.advance(23.5 * _DAY)
    await another("b")
    clock.advance(0.8 * _DAY)  # "a" is old enough, and less than a day has gone since it was looked
    await another("c")
    assert await names(path) == {"a", "b", "c"}
    clock.advance(0.3 * _DAY)
    await another("d")
    assert await names(path) == {"b", "c", "d"}


async def test_nothing_goes_unless_it_is_asked_for(path: Path) -> None:
    clock = FakeClock()
    for thread in ("a", "b"):
        async with SqliteStore(path, clock=clock) as store:
            await ended(store, thread)
        clock.advance(1000 * _DAY)
    assert await names(path) == {"a", "b"}


async def test_a_damaged_thread_stops_the_pruning_which_is_logged_and_no_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with SqliteStore(path, clock=clock) as store:
        await ended(store, "old", "damaged")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET at=at+1 WHERE key=(SELECT max(key) FROM entries)")
    clock.advance(9 * _DAY)
    async with SqliteStore(path, clock=clock, keep_ended_days=1) as store:
        await ended(store, "new")
        assert await store.peek("old") is not None
        assert await store.peek("new") is not None
    [said] = caplog.messages
    assert "no thread was forgotten (keep_ended_days), because 'damaged' is damaged: delete it" in said
