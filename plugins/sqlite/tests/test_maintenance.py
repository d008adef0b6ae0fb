"""A file is checked, copied while it is in use, and what can be read of a damaged one is saved."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from locus.core.journal import Outcome
from locus_plugin_sqlite import FileUnusable, SqliteStore

from .process import step

pytestmark = pytest.mark.anyio


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file with two threads and a fork."""
    found = tmp_path / "runs.db"
    async with SqliteStore(found) as store:
        for thread in ("one", "two"):
            claim = await store.claim(thread, "w")
            for n in range(1, 11):
                await store.append(claim, [step(n)])
            await store.release(claim)
        await store.fork("one", 3, "fork", [step(20)])
    return found


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def content(path: Path) -> bytes:
    return path.read_bytes()


async def steps(path: Path, thread: str) -> list[Outcome]:
    async with SqliteStore(path) as store:
        return [entry.body for entry in await store.read(thread) if isinstance(entry.body, Outcome)]


async def test_a_file_in_good_order_is_verified(path: Path) -> None:
    async with SqliteStore(path) as store:
        found = await store.verify()
    assert (found.threads, found.entries, found.damage) == (3, 24, ())


async def test_a_check_lists_all_the_damage(path: Path) -> None:
    change(path, "UPDATE entries SET body='[]' WHERE key IN ((1 << 32) + 5, (2 << 32) + 8)")
    async with SqliteStore(path) as store:
        found = await store.verify()
    assert [(each.thread_id, each.n) for each in found.damage] == [("one", 5), ("two", 8)]


async def test_a_file_that_is_not_there_cannot_be_verified(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "none.db") as store:
        with pytest.raises(FileUnusable, match="the file does not exist"):
            await store.verify()
    assert names(tmp_path) == []


async def test_a_backup_is_made_while_a_thread_is_written(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with SqliteStore(path) as store:
        claim = await store.claim("one", "w")
        await store.append(claim, [step(11)])
        await store.backup(copy)
        await store.append(claim, [step(12)])
        with pytest.raises(FileUnusable, match="it cannot be created"):
            await store.backup(copy)
        await store.release(claim)
    assert await steps(copy, "one") == [step(n) for n in range(1, 12)]
    async with SqliteStore(copy) as store:
        assert [info.holder for info in await store.threads()] == [None, None, None]
        assert (await store.verify()).damage == ()


@pytest.mark.parametrize("how", ["changed", "deleted"])
async def test_what_comes_before_the_damage_is_saved(path: Path, tmp_path: Path, how: str) -> None:
    where = "WHERE key = (1 << 32) + 5"
    change(path, f"UPDATE entries SET body='[]' {where}" if how == "changed" else f"DELETE FROM entries {where}")
    before, new = content(path), tmp_path / "new.db"
    async with SqliteStore(path) as store:
        made = await store.salvage(new)
        with pytest.raises(FileUnusable, match="it exists; name a new file"):
            await store.salvage(new)
    assert made.entries == {"one": 4, "two": 10, "fork": 4}
    assert [(each.thread_id, each.n) for each in made.damage] == [("one", 5)]
    assert content(path) == before
    assert await steps(new, "one") == [step(n) for n in range(1, 5)]
    assert await steps(new, "fork") == [step(1), step(2), step(3), step(20)]
    async with SqliteStore(new) as store:
        assert (await store.verify()).damage == ()
