"""A changed bit, a missing row, a row in the wrong place: an error that says where, and never other content."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent
from locus.core.errors import CheckpointError, JournalError
from locus.core.journal import BLANK, entry_to_json, fold
from locus.journal import ThreadQuery
from locus_plugin_sqlite import FileDamaged, SqliteStore
from locus_plugin_sqlite.journal_rows import SHIFT
from locus_testkit import ScriptedModel

from .journals import write

pytestmark = pytest.mark.anyio

#: What is written is the same on each event loop, and so is what damages it.
ONCE = pytest.mark.parametrize("anyio_backend", ["asyncio"])

Reading = Callable[[SqliteStore], Any]


def reads(threads: list[str]) -> dict[str, Reading]:
    """Every way to read the file: a listing, and the entries and the claim of each thread."""

    async def listed(store: SqliteStore) -> Any:
        return [
            (i.thread_id, i.head, i.status, i.node, i.title, i.model, i.created_at, dict(i.metadata))
            for i in sorted(await store.threads(), key=lambda each: each.thread_id)
        ]

    def read(thread: str) -> Reading:
        async def entries(store: SqliteStore) -> Any:
            return [(e.n, e.writer, e.parent, entry_to_json(e.body)) for e in await store.read(thread)]

        return entries

    def peek(thread: str) -> Reading:
        async def state(store: SqliteStore) -> Any:
            found = await store.peek(thread)
            if found is None:
                return None
            start = BLANK if found.snapshot is None else found.snapshot.state
            return found.head, fold(start, [entry.body for entry in found.entries]).to_checkpoint()

        return state

    return {
        "threads": listed,
        **{f"read {name}": read(name) for name in threads},
        **{f"peek {name}": peek(name) for name in threads},
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A file with every kind of row, and what each read gives."""
    path = tmp_path_factory.mktemp("whole") / "runs.db"

    async def make() -> dict[str, Any]:
        await write(path)
        async with SqliteStore(path) as store:
            names = [info.thread_id for info in await store.threads()]
            return {name: await each(store) for name, each in reads(names).items()}

    return path, anyio.run(make)


async def compare(path: Path, expected: dict[str, Any]) -> list[BaseException]:
    """Read everything: it is what it was, or the error is one of a store."""
    names = [name.removeprefix("read ") for name in expected if name.startswith("read ")]
    errors: list[BaseException] = []
    for name, each in reads(names).items():
        async with SqliteStore(path, busy_timeout=0.2) as store:
            try:
                found = await each(store)
            except JournalError as e:
                errors.append(e)
            else:
                # A damaged thread is listed as such, whatever else is left of it.
                damaged = [i for i, row in enumerate(found) if row[2] == "damaged"] if name == "threads" else []
                errors += [FileDamaged(path, "listed as damaged") for _ in damaged]
                intact = [row for row in found or () if row[2] != "damaged"] if damaged else found
                wanted = [row for row in expected[name] if row in intact] if damaged else expected[name]
                assert intact == wanted, name
                assert not damaged or len(found) == len(expected[name])
    assert all(str(path) in str(error) for error in errors)
    return errors


@ONCE
@pytest.mark.parametrize("seed", range(25))
async def test_a_changed_bit_is_an_error_or_changes_nothing(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    path, expected = whole
    data = path.read_bytes()
    draw = random.Random(seed)
    for flip in range(10):
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        copy = tmp_path / f"{flip}.db"
        copy.write_bytes(changed)
        await compare(copy, expected)


@ONCE
@pytest.mark.parametrize("table", ["threads", "entries", "blobs", "uses"])
async def test_a_row_that_is_missing_is_found(whole: tuple[Path, dict[str, Any]], tmp_path: Path, table: str) -> None:
    path, expected = whole
    with closing(sqlite3.connect(path)) as db:
        count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    assert count > 0
    copy = tmp_path / "copy.db"
    for n in range(0, count, max(1, count // 40)):
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as db, db:
            keys = "key, sha" if table == "uses" else "sha" if table == "blobs" else "rowid"
            db.execute(f"DELETE FROM {table} WHERE ({keys}) = (SELECT {keys} FROM {table} LIMIT 1 OFFSET {n})")
        assert await compare(copy, expected), f"row {n} of {table}"


async def test_a_snapshot_that_is_missing_is_found_or_is_not_needed(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, expected = whole
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as db:
        keys = [key for (key,) in db.execute("SELECT key FROM snapshots")]
    assert keys
    for key in keys:
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as db, db:
            db.execute("DELETE FROM snapshots WHERE key=?", (key,))
        await compare(copy, expected)


async def test_what_is_damaged_is_named(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, _ = whole
    copy = tmp_path / "copy.db"

    async def damage(statement: str) -> Any:
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as db, db:
            db.execute(statement)
        async with SqliteStore(copy) as store:
            with pytest.raises(FileDamaged) as caught:
                await store.read("long")
        return caught.value

    of_long = "key >> 32 = (SELECT id FROM threads WHERE name='long')"
    with closing(sqlite3.connect(path)) as db:
        # Which entries share a row depends on how fast they were written.
        rows = [n for (n,) in db.execute(f"SELECT key & 0xFFFFFFFF FROM entries WHERE {of_long} ORDER BY key")]
    before, here = rows[4:6]
    gone = await damage(f"DELETE FROM entries WHERE {of_long} AND key & 0xFFFFFFFF = {here}")
    assert (gone.thread_id, gone.n) == ("long", before + 1)
    assert f"entry {before + 1} of thread 'long' is missing" in str(gone)
    swapped = await damage(f"UPDATE entries SET parent=parent+1 WHERE {of_long} AND key & 0xFFFFFFFF = {here}")
    assert (swapped.thread_id, swapped.n) == ("long", here)
    cut = await damage(f"DELETE FROM entries WHERE {of_long} AND key & 0xFFFFFFFF > {here}")
    assert (cut.thread_id, cut.n) == ("long", here + 1)
    renamed = await damage("UPDATE threads SET name='other' WHERE name='long'")
    assert "thread 'other' is damaged" in str(renamed)


async def test_an_unknown_class_is_not_called_damage(whole: tuple[Path, dict[str, Any]]) -> None:
    path, _ = whole
    async with SqliteStore(path) as store:
        try:
            await store.read("all")
        except CheckpointError as e:  # pragma: no cover - only where a class is not imported
            raise AssertionError("everything that was written here can be read here") from e


async def test_a_table_whose_name_is_not_text_any_more_is_damage(whole: tuple[Path, dict[str, Any]]) -> None:
    path, _ = whole
    copy = path.with_name("name.db")
    copy.write_bytes(path.read_bytes().replace(b"CREATE TABLE threads (", b"CREATE TABLE \xf7hreads ("))
    async with SqliteStore(copy) as store:
        with pytest.raises(FileDamaged):
            await store.threads()


async def test_a_damaged_thread_is_listed_as_such_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedModel("hello", after="repeat"), checkpointer=store)
        for thread in ("a", "b", "c", "d"):
            await agent.run("x", thread_id=thread)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE threads SET title='changed' WHERE name='b'")
        db.execute(f"DELETE FROM entries WHERE key >> {SHIFT} = (SELECT id FROM threads WHERE name='c')")
    async with SqliteStore(path) as store:
        found = {info.thread_id: info.status for info in await store.threads()}
        assert found == {"a": "ended", "b": "damaged", "c": "damaged", "d": "ended"}
        only = await store.threads(ThreadQuery(status={"damaged"}))
        assert {info.thread_id for info in only} == {"b", "c"}
        assert [info.thread_id for info in await store.threads(ThreadQuery(limit=1))] == ["d"]
        for thread in ("b", "c"):
            with pytest.raises(FileDamaged):
                await store.peek(thread)
            assert await store.delete(thread)
        assert {info.thread_id for info in await store.threads()} == {"a", "d"}
