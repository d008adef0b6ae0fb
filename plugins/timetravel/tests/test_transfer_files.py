"""Threads that a file keeps: their export takes what is stored, their import is stored in pages."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from locus.core.errors import JournalError
from locus.core.journal import entry_to_json
from locus.journal import Appended, MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_timetravel import export_thread, fork, history, import_thread
from locus_testkit import call

from .kit import made

pytestmark = pytest.mark.anyio


async def test_what_a_store_keeps_as_text_is_exported_as_if_it_were_decoded(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "t.db") as store:
        agent = made(store, call("add", a=1), "done", "again")
        await agent.run("Add.", thread_id="t", metadata={"k": [1, {"a": "é\ud800"}]})
        origin = await fork(store, "t", at=3)
        for thread_id in ("t", origin):
            entries = await store.read(thread_id)
            lines = [json.loads(line) for line in await export_thread(store, thread_id)]
            told = [(line["n"], line["writer"], line["parent"], line["body"]) for line in lines[1:]]
            assert told == [(each.n, each.writer, each.parent, entry_to_json(each.body)) for each in entries]


async def test_a_file_keeps_an_import_as_memory_does(tmp_path: Path) -> None:
    memory = MemoryStore()
    long = call("echo", text="x" * 40_000, note="\ud800 \0", big=10**30, small=1e-9)
    agent = made(memory, long, [call("echo", text="y" * 300_000), call("echo", text="")], "done", "again")
    await agent.run("Echo.", thread_id="t", metadata={"k": float("inf")})
    await agent.run("Again.", thread_id="t")
    lines = list(await export_thread(memory, "t"))
    async with SqliteStore(tmp_path / "t.db") as store:
        await import_thread(store, lines, trusted=True)
        assert [each.body for each in await store.read("t")] == [each.body for each in await memory.read("t")]
        assert [line["body"] for line in map(json.loads, list(await export_thread(store, "t"))[1:])] == [
            line["body"] for line in map(json.loads, lines[1:])
        ]
        (kept,), (there,) = await store.threads(), await memory.threads()
        assert (kept.title, kept.status, kept.node, kept.head) == (there.title, there.status, there.node, there.head)
        assert (await store.verify()).damage == ()


async def test_a_batch_goes_to_a_thread_that_has_nothing(tmp_path: Path) -> None:
    memory = MemoryStore()
    await made(memory, "done").run("Hello.", thread_id="t")
    batch = SqliteStore.new_batch()
    for entry in await memory.read("t"):
        batch.add(entry.body, json.dumps(entry_to_json(entry.body)).encode())
    async with SqliteStore(tmp_path / "t.db") as store:
        late = await store.claim("t", "late")
        await store.release(late)
        claim = await store.claim("t", "import")
        assert await store.append_batch(late, batch) is Appended.FENCED
        assert await store.append_batch(claim, batch) is Appended.OK
        with pytest.raises(JournalError, match="is not empty"):
            await store.append_batch(claim, batch)
        assert len(await store.read("t")) == len(await memory.read("t")) == await store.head("t")
        assert await store.head("elsewhere") == 0


async def test_a_page_of_a_long_import_is_read_without_the_rest_of_it(tmp_path: Path) -> None:
    memory = MemoryStore()
    await made(memory, *[call("add", a=n) for n in range(300)], "done", max_iterations=400).run("Add.", thread_id="t")
    path = tmp_path / "t.db"
    async with SqliteStore(path) as store:
        await import_thread(store, await export_thread(memory, "t"), trusted=True)
        entries = await store.read("t")
        assert [each.body for each in entries] == [each.body for each in await memory.read("t")]
        assert await store.read_page("t", 700, 3) == entries[700:703]
    with closing(sqlite3.connect(path)) as db:
        (rows,) = db.execute("SELECT count(*) FROM entries").fetchone()
    assert 4 < rows < len(entries) / 8


async def test_a_long_import_has_snapshots_on_its_way(tmp_path: Path) -> None:
    memory = MemoryStore()
    agent = made(memory, *[call("add", a=n) for n in range(600)], "done", max_iterations=1000)
    await agent.run("Add.", thread_id="t")
    past = await history(memory, "t")
    async with SqliteStore(tmp_path / "t.db") as store:
        await import_thread(store, await export_thread(memory, "t"), trusted=True)
        whole = await store.peek("t")
        assert whole is not None
        assert whole.snapshot is not None
        assert (whole.snapshot.at, whole.snapshot.state) == (past[-1].entry, past.state)
        copy = await fork(store, "t", at=len(past) - 10)
        shown = await store.peek(copy)
        assert shown is not None
        assert shown.snapshot is not None
        (near,) = (entry for entry in past if entry.entry == shown.snapshot.at)
        assert shown.snapshot.state == near.state
        assert 2048 <= shown.snapshot.at < past[-10].entry
