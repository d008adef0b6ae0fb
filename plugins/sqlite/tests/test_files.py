"""What can be wrong with the file: each has an error of its own, and nothing is lost or half-written."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from locus import Agent, tool
from locus.core.errors import ConfigError, JournalDamaged, StoreError
from locus.core.journal import Outcome, StepId
from locus.journal.store import Appended, Claim
from locus_kit.compression import compress
from locus_plugin_sqlite import (
    DiskFull,
    FileDamaged,
    FileForeign,
    FileGone,
    FileLocked,
    FileProblem,
    FileTooNew,
    FileUnusable,
    SqliteStore,
    StoreClosed,
)
from locus_plugin_sqlite.checks import body_check, row_check
from locus_plugin_sqlite.schema import VERSION
from locus_testkit import ScriptedModel, call

from .process import Child, step

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def write(store: SqliteStore, *steps: Outcome, thread: str = "t") -> None:
    claim = await store.claim(thread, "w")
    assert await store.append(claim, steps) is Appended.OK
    await store.release(claim)


async def written(path: Path, *steps: Outcome) -> None:
    async with SqliteStore(path) as store:
        await write(store, *steps)


async def bodies(store: SqliteStore, thread: str = "t") -> list[object]:
    return [entry.body for entry in await store.read(thread)]


def names(path: Path) -> list[str]:
    """The files beside it."""
    return sorted(each.name for each in path.parent.iterdir())


def content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def header(path: Path, at: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(value.to_bytes(4, "big"))


# -- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [("", "the path of a journal file is ''"), ("a\0b", "journal file is"), (":memory:", r"MemoryStore\(\)")],
)
def test_an_invalid_path_is_refused_at_once(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SqliteStore(path)


def test_making_a_store_touches_nothing(path: Path) -> None:
    store = SqliteStore(path)
    assert not path.exists()
    assert repr(store) == f"SqliteStore('{path}')"


async def test_reading_creates_nothing(path: Path) -> None:
    async with SqliteStore(path) as store:
        assert (await store.read("t"), await store.peek("t"), await store.threads()) == ((), None, ())
    assert names(path) == []


async def test_a_relative_path_stays_where_it_was_when_the_folder_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    store = SqliteStore("runs.db")
    monkeypatch.chdir(path.parent.parent)
    await write(store, step(1))
    await store.aclose()
    assert names(path) == ["runs.db"]


async def test_the_file_is_for_its_owner_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        async with SqliteStore(path) as store:
            await write(store, step(1))
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600}


async def test_an_empty_file_becomes_one(path: Path) -> None:
    put(path, b"")
    await written(path, step(1))
    async with SqliteStore(path) as store:
        assert await bodies(store) == [step(1)]


async def test_closing_leaves_one_file(path: Path) -> None:
    await written(path, step(1))
    assert names(path) == ["runs.db"]


# -- refused, and not touched -------------------------------------------------------------------------


async def refused(path: Path, error: type[FileProblem], message: str) -> FileProblem:
    before, beside = content(path), names(path)
    async with SqliteStore(path) as store:
        for call in (store.claim("t", "w"), store.read("t"), store.threads()):
            with pytest.raises(error, match=message) as caught:
                await call
            assert type(caught.value) is error
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, StoreError)
    assert caught.value.store == "sqlite"
    assert (content(path), names(path)) == (before, beside)
    return caught.value


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    await refused(tmp_path, FileUnusable, "it is a folder; name a file in it")


async def test_a_missing_folder_is_named(path: Path) -> None:
    store = SqliteStore(path / "deeper" / "runs.db")
    with pytest.raises(FileUnusable, match=re.escape(f"the folder {path / 'deeper'} does not exist; create it")):
        await store.claim("t", "w")
    assert names(path) == []
    await store.aclose()


@pytest.mark.parametrize("data", [b"x", b"# Notes\n" * 100, b"SQLite format 3\0"])
async def test_a_file_that_is_not_a_database_is_refused(path: Path, data: bytes) -> None:
    put(path, data)
    await refused(path, FileDamaged, "it is not an SQLite database")


def journal_of_nothing() -> bytes:
    """What lies beside a file before its first page is written: https://sqlite.org/fileformat2.html, section 3."""
    magic, records, nonce, pages, sector, page = bytes.fromhex("d9d505f920a163d7"), 0, 7, 0, 512, 4096
    return magic + b"".join(n.to_bytes(4, "big") for n in (records, nonce, pages, sector, page)) + bytes(512 - 28)


async def test_a_file_whose_creation_the_power_was_cut_from_is_created(path: Path) -> None:
    # given a first page of which only later sectors have reached the disk
    put(path, bytes(512) + os.urandom(512) + bytes(3072))
    put(path.with_name("runs.db-journal"), journal_of_nothing())
    # then
    async with SqliteStore(path) as store:
        await write(store, step(1))
        assert await bodies(store) == [step(1)]
    assert names(path) == ["runs.db"]


async def test_a_file_of_zeros_is_refused(path: Path) -> None:
    put(path, bytes(8192))
    await refused(path, FileDamaged, "file is not a database")


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE bookmarks (address TEXT)")
    await refused(path, FileForeign, "it is a database of another program")


async def test_a_file_of_a_newer_version_is_refused_with_both_versions(path: Path) -> None:
    await written(path, step(1))
    header(path, 60, VERSION + 7)
    error = await refused(path, FileTooNew, f"schema version {VERSION + 7}, this installation reads up to {VERSION}")
    assert isinstance(error, FileTooNew)
    assert (error.found, error.supported) == (VERSION + 7, VERSION)


async def test_a_file_that_another_process_migrates_while_it_is_open_is_refused(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version={VERSION + 1}")
        assert await store.append(claim, [step(1)]) is Appended.OK
        await store.release(claim)
        with pytest.raises(FileTooNew):
            await store.claim("t", "w")
        assert await bodies(store) == [step(1)]


async def test_a_damaged_page_is_reported(path: Path) -> None:
    await written(path, *(step(n, size=3000) for n in range(40)))
    data = content(path)
    put(path, data[:4096] + b"\xa5" * (len(data) - 4096))
    async with SqliteStore(path) as store:
        with pytest.raises(FileDamaged, match="it is damaged"):
            await store.read("t")


DAMAGED = [
    b"[{",
    b"[1]x",
    b"x\x9cnonsense",
    b"",
    compress(b"[]")[:-1],
    compress(b"[]") + b"x",
    *map(
        compress,
        [
            b"7",
            b'{"blob":"00"}',
            b'{"blob":[]}',
            b'[]\n["\\u00000"]',
            b'[7]\n["\\u00000"]x',
            b"[]\n{}",
            b"7\n[]",
            b"[{}]\n[]",
        ],
    ),
]


def with_checks(path: Path, body: bytes) -> None:
    """Put a body in place of the only one, as if it had been written."""
    with closing(sqlite3.connect(path)) as db, db:
        key, writer, at, status, node = db.execute("SELECT key, writer, at, status, node FROM entries").fetchone()
        content = body_check(body)
        checksum = row_check(key, writer, at, 0, status, node, content)
        db.execute("UPDATE entries SET body=?, content=?, checksum=?", (body, content, checksum))
        db.execute("UPDATE threads SET tip=?", (checksum,))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("body", DAMAGED)
async def test_a_damaged_entry_is_reported_with_its_place(path: Path, body: bytes, checked: bool) -> None:
    await written(path, step(1))
    if checked:
        with_checks(path, body)
    else:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE entries SET body=?", (body,))
    async with SqliteStore(path) as store:
        with pytest.raises(FileDamaged, match="entry 1 of thread 't' cannot be read") as caught:
            await store.read("t")
        assert isinstance(caught.value, JournalDamaged)
        assert (caught.value.thread_id, caught.value.n) == ("t", 1)
        with pytest.raises(FileDamaged):
            await store.claim("t", "w")
        await write(store, step(1), thread="another")
        assert [info.holder for info in await store.threads()] == [None, None]
        assert await store.delete("t")


# -- no permission --------------------------------------------------------------------------------


WITHOUT_PRIVILEGE = """
import ctypes, os, sys, anyio
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.errors import FileProblem
from locus.core.journal import Outcome

if os.geteuid() == 0:  # the superuser may write what is read-only: let it be one who may not
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    none = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, none) == 0

async def main():
    store = SqliteStore(sys.argv[1])
    for call in (store.claim("t", "w"), store.threads()):
        try:
            await call
        except FileProblem as e:
            print(type(e).__name__, e)
    await store.aclose()

anyio.run(main)
"""


def without_privilege(path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGE, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@contextmanager
def mode(path: Path, mode: int) -> Iterator[None]:
    before = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


async def test_a_read_only_file_is_reported(path: Path) -> None:
    await written(path, step(1))
    before = content(path)
    with mode(path, 0o400):
        said = without_privilege(path)
    assert said
    assert all(line.startswith(f"FileReadOnly {path}: the file or its folder may not be written") for line in said)
    assert content(path) == before


@pytest.mark.parametrize("exists", [True, False])
async def test_a_read_only_folder_is_reported(path: Path, exists: bool) -> None:
    if exists:
        await written(path, step(1))
    with mode(path.parent, 0o500):
        said = without_privilege(path)
    assert said
    assert all(line.startswith(f"FileReadOnly {path}: ") for line in said)


# -- locked -------------------------------------------------------------------------------------------


async def test_a_locked_file_is_reported_and_works_again_when_it_is_free(path: Path) -> None:
    async with SqliteStore(path, busy_timeout=0.05) as store:
        claim = await store.claim("t", "w")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")
            with pytest.raises(FileLocked, match=r"another process kept it locked for 0.05 s; nothing was written"):
                await store.append(claim, [step(1)])
            assert await bodies(store) == []
            db.execute("ROLLBACK")
        assert await store.append(claim, [step(2)]) is Appended.OK
        assert await bodies(store) == [step(2)]


async def test_a_file_that_is_kept_for_one_process_is_reported(path: Path) -> None:
    await written(path, step(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        async with SqliteStore(path, busy_timeout=0.05) as store:
            with pytest.raises(FileLocked):
                await store.claim("t", "w")
            with pytest.raises(FileLocked):
                await store.read("t")


async def test_a_thread_that_cannot_be_given_back_is_free_all_the_same(path: Path) -> None:
    async with SqliteStore(path, busy_timeout=0.05, lease=0.05) as store:
        claim = await store.claim("t", "w")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")
            await store.release(claim)
            db.execute("ROLLBACK")
        again = await store.claim("t", "w")
        assert await store.append(claim, [step(1)]) is Appended.FENCED
        assert await store.append(again, [step(2)]) is Appended.OK


# -- full ---------------------------------------------------------------------------------------------


async def fill(store: SqliteStore, claim: Claim, kept: list[object]) -> None:
    for n in range(100):
        # Random text, which does not compress.
        batch = [Outcome(run_id="run", step_id=StepId(0, f"{n}.{i}"), value=os.urandom(2000).hex()) for i in range(3)]
        assert await store.append(claim, batch) is Appended.OK
        kept += batch


async def test_a_full_disk_loses_nothing_and_room_lets_it_go_on(path: Path) -> None:
    async with SqliteStore(path, max_bytes=200_000) as store:
        claim = await store.claim("t", "w")
        kept: list[object] = []
        with pytest.raises(DiskFull, match="no room to write") as caught:
            await fill(store, claim, kept)
        assert caught.value.path == path
        assert len(kept) > 9
        assert await bodies(store) == kept
        await store.release(claim)

    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        assert [entry.body for entry in claim.entries] == kept
        assert await store.append(claim, [step(1)]) is Appended.OK
        assert await bodies(store) == [*kept, step(1)]


async def test_what_fits_is_stored_beside_what_does_not(path: Path) -> None:
    async with SqliteStore(path, max_bytes=200_000) as store:
        small, large = await store.claim("small", "w"), await store.claim("large", "w")
        huge = Outcome(run_id="run", step_id=StepId(0, "huge"), value=os.urandom(200_000).hex())
        with pytest.raises(DiskFull):
            await store.append(large, [huge])
        assert await store.append(small, [step(1)]) is Appended.OK
        assert (await bodies(store, "small"), await bodies(store, "large")) == ([step(1)], [])


async def test_a_limit_on_the_size_of_files_is_reported_as_one(path: Path) -> None:
    with Child(path) as child:
        child.ask("claim", thread="t")
        stored = 0
        child.ask("limit", size=300_000)
        while (answer := child.ask("append", thread="t", numbers=[stored], size=20_000)) == "ok" and stored < 2000:
            stored += 1
        assert answer["error"] == "DiskFull"
        assert "this process may write files of 300000 bytes at most" in answer["message"]
        assert child.ask("read", thread="t") == [str(n) for n in range(stored)]
        child.ask("release", thread="t")
        child.ask("limit", size=10_000_000)
        assert child.ask("claim", thread="t")["head"] == stored
        assert child.ask("append", thread="t", numbers=[stored]) == "ok"
        assert child.ask("read", thread="t") == [str(n) for n in range(stored + 1)]


@pytest.mark.parametrize("size", [0, 4_000, 40_000])
async def test_a_disk_without_room_for_the_file_itself_is_reported_as_one(path: Path, size: int) -> None:
    with Child(path) as child:
        child.ask("limit", size=size)
        answer = child.ask("claim", thread="t")
        assert (answer["error"], names(path)[0]) == ("DiskFull", "runs.db")
        child.ask("limit", size=10_000_000)
        assert child.ask("claim", thread="t")["head"] == 0
        assert child.ask("append", thread="t", numbers=[1]) == "ok"


# -- gone ---------------------------------------------------------------------------------------------


async def test_a_file_that_is_deleted_while_in_use_is_reported_and_the_next_run_starts_anew(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, [step(1)])
        for each in tuple(path.parent.iterdir()):
            each.unlink()

        with pytest.raises(FileGone, match="the file was deleted while it was in use"):
            await store.append(claim, [step(2)])
        await store.release(claim)
        await write(store, step(3))
        assert await bodies(store) == [step(3)]


async def test_a_file_that_is_replaced_while_in_use_is_reported_and_the_new_one_is_unharmed(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    await written(other, step(7))
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, [step(1)])
        other.replace(path)
        with pytest.raises(FileGone, match="was replaced by another one"):
            await store.append(claim, [step(2)])
    async with SqliteStore(path) as store:
        assert await bodies(store) == [step(7)]


@pytest.mark.parametrize("also", [(), ("runs.db-shm",)], ids=["log", "log and index"])
async def test_a_log_that_is_deleted_while_in_use_is_written_into_the_file_and_reported(
    path: Path, also: tuple[str, ...]
) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, [step(1)])
        for name in ("runs.db-wal", *also):
            path.with_name(name).unlink()
        with pytest.raises(FileGone, match=r"was deleted while it was in use; what was committed is not lost.* resume"):
            await store.append(claim, [step(2)])
        assert await store.append(claim, [step(2)]) is Appended.FENCED
        assert await bodies(store) == [step(1)]
        again = await store.claim("t", "w")  # nobody holds it
        assert await store.append(again, [step(3)]) is Appended.OK
    async with SqliteStore(path) as store:
        assert await bodies(store) == [step(1), step(3)]
        assert (await store.verify()).damage == ()


async def test_a_run_whose_log_is_deleted_says_so_and_is_resumed(path: Path) -> None:
    @tool
    async def work() -> str:
        """Work, while somebody tidies up."""
        if not tidied:
            tidied.append(True)
            path.with_name("runs.db-wal").unlink()
        return "done"

    tidied: list[bool] = []
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedModel("hello", call("work"), "bye", after="repeat"), tools=[work], checkpointer=store)
        await agent.run("x", thread_id="before")
        with pytest.raises(FileGone, match="resume the run"):
            await agent.run("y", thread_id="t")
        result = await agent.resume("t")
        assert (result.text, result.stop_reason) == ("bye", "NoToolCalls")
        assert {info.thread_id for info in await store.threads()} == {"before", "t"}


async def test_a_log_that_was_replaced_is_not_written_into_the_file(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, [step(1)])
        log = path.with_name("runs.db-wal")
        log.with_suffix(".other").write_bytes(b"")
        log.with_suffix(".other").replace(log)
        with pytest.raises(FileGone, match=r"its log .* was replaced .* went with it: stop what did that"):
            await store.append(claim, [step(2)])


# -- closed -------------------------------------------------------------------------------------------


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    claim = await store.claim("t", "w")
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreClosed, match="make another SqliteStore"):
        await store.append(claim, [step(1)])
    await store.release(claim)
    async with SqliteStore(path) as again:
        await again.claim("t", "w")
