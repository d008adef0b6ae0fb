"""Several processes on one file: one holds a thread, and what it lost it can no longer write."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from locus.core.errors import ThreadBusy
from locus_plugin_sqlite import SqliteStore
from locus_testkit import FakeClock

from .process import Child, step

pytestmark = pytest.mark.anyio

#: Longer than any test: what passes although it has not run out, passes for another reason.
HOUR = 3600.0


@pytest.fixture
def anyio_backend() -> str:
    """Processes are what this is about; the contract runs on both."""
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def later(seconds: float) -> FakeClock:
    """A clock ahead of the machine's."""
    return FakeClock(datetime.now(UTC) + timedelta(seconds=seconds))


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


@pytest.mark.parametrize("reap", [True, False])
async def test_a_killed_worker_is_succeeded_at_once(path: Path, reap: bool) -> None:
    with Child(path, lease=HOUR) as child:
        child.ask("claim", thread="t")
        child.ask("append", thread="t", numbers=[1, 2])
        child.kill(reap=reap)

        async with SqliteStore(path, lease=HOUR) as store:
            assert [info.holder for info in await store.threads()] == [None]
            claim = await store.claim("t", "next")

    assert [entry.body for entry in claim.entries] == [step(1), step(2)]


async def test_a_busy_thread_names_process_host_and_time(path: Path) -> None:
    before = datetime.now(UTC)
    with Child(path) as child:
        child.ask("claim", thread="t")

        async with SqliteStore(path) as store:
            with pytest.raises(ThreadBusy) as caught:
                await store.claim("t", "another")
            with pytest.raises(ThreadBusy):
                await store.delete("t")
            (listed,) = await store.threads()

    where = f"pid {child.pid} on {socket.gethostname()}"
    assert (caught.value.thread_id, caught.value.holder, listed.holder) == ("t", where, where)
    assert before <= datetime.fromisoformat(caught.value.since) <= datetime.now(UTC)
    assert datetime.fromisoformat(caught.value.since).utcoffset() == timedelta(0)


async def test_a_worker_of_another_name_is_named_with_its_process(path: Path) -> None:
    with Child(path) as child:
        child.ask("claim", thread="t")
        change(path, "UPDATE threads SET holder='nightly'")
        async with SqliteStore(path) as store:
            with pytest.raises(ThreadBusy, match=f"nightly, pid {child.pid} on "):
                await store.claim("t", "another")


async def test_a_stopped_worker_loses_its_thread_with_its_lease_and_is_fenced_when_it_comes_back(path: Path) -> None:
    with Child(path, lease=30) as child:
        child.ask("claim", thread="t")
        child.ask("append", thread="t", numbers=[1])
        child.stop()

        async with SqliteStore(path) as early:
            with pytest.raises(ThreadBusy):
                await early.claim("t", "too early")
        async with SqliteStore(path, clock=later(31)) as store:
            claim = await store.claim("t", "next")
            await store.append(claim, [step(2)])

            child.resume()
            assert child.ask("append", thread="t", numbers=[9]) == "fenced"
            assert child.ask("renew", thread="t") is False
            child.ask("release", thread="t")

            await store.append(claim, [step(3)])
            assert [entry.body for entry in await store.read("t")] == [step(1), step(2), step(3)]


async def test_one_of_four_processes_gets_the_thread(path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child(path)) for _ in range(4)]
        for child in children:
            assert child.ask("threads") == []  # started, and none has created the file
        for child in children:
            child.tell("claim", thread="t")
        answers = [child.hear() for child in children]

        won = [child for child, answer in zip(children, answers, strict=True) if "token" in answer]
        lost = [answer for answer in answers if answer.get("error") == "ThreadBusy"]
        assert (len(won), len(lost)) == (1, 3), answers
        assert {answer["holder"] for answer in lost} == {f"pid {won[0].pid} on {socket.gethostname()}"}
        assert won[0].ask("append", thread="t", numbers=[1]) == "ok"


async def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child(path)) for _ in range(3)]
        for i, child in enumerate(children):
            child.tell("claim", thread=str(i))
        for child in children:
            child.hear()
        for i, child in enumerate(children):
            for n in range(0, 40, 2):
                child.tell("append", thread=str(i), numbers=[n, n + 1])
        for child in children:
            assert [child.hear() for _ in range(20)] == ["ok"] * 20

        async with SqliteStore(path) as store:
            for i in range(3):
                assert [entry.body for entry in await store.read(str(i))] == [step(n) for n in range(40)]


async def test_a_process_that_ends_gives_its_threads_back(path: Path) -> None:
    with Child(path, lease=HOUR) as child:
        child.ask("claim", thread="t")
        assert child.leave() == 0
    async with SqliteStore(path) as store:
        await store.claim("t", "next")


async def test_a_pid_that_another_process_has_got_does_not_count_as_alive(path: Path) -> None:
    with Child(path, lease=HOUR) as child:
        child.ask("claim", thread="t")
        change(path, "UPDATE workers SET started='1'")
        async with SqliteStore(path) as store:
            await store.claim("t", "next")


async def test_of_a_process_on_another_machine_only_the_lease_tells(path: Path) -> None:
    with Child(path, lease=30) as child:
        child.ask("claim", thread="t")
        child.kill()
    change(path, "UPDATE workers SET machine='elsewhere', host='elsewhere'")

    async with SqliteStore(path) as store:
        with pytest.raises(ThreadBusy, match=f"pid {child.pid} on elsewhere"):
            await store.claim("t", "too early")
    async with SqliteStore(path, clock=later(31)) as store:
        await store.claim("t", "next")


@pytest.mark.parametrize("skew", [-30.0, 30.0])
async def test_a_wrong_clock_fences_nobody_wrongly(path: Path, skew: float) -> None:
    with Child(path, skew=skew) as child:
        child.ask("claim", thread="t")
        assert child.ask("append", thread="t", numbers=[1]) == "ok"
        child.kill()
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "next")
        await store.append(claim, [step(2)])
        assert [entry.body for entry in await store.read("t")] == [step(1), step(2)]


def lease_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        found: int = db.execute("SELECT lease FROM workers").fetchone()[0]
        return found


async def test_a_lease_is_renewed_by_a_timer_while_nothing_is_written(path: Path) -> None:
    async with SqliteStore(path, lease=0.05) as store:
        claim = await store.claim("t", "w")
        first = lease_of(path)
        with anyio.fail_after(20):
            while lease_of(path) == first:  # noqa: ASYNC110 - a thread writes it
                await anyio.sleep(0.005)
        assert await store.renew(claim)


async def test_the_timer_renews_no_lease_of_a_program_that_says_it_hangs(path: Path) -> None:
    async with SqliteStore(path, lease=0.05) as hangs, SqliteStore(path, lease=0.05) as other:
        claim = await hangs.claim("t", "w")
        asked: list[str] = []

        def is_alive() -> bool:
            asked.append("by the timer")
            return False

        hangs.renew_while(is_alive)
        with anyio.fail_after(20):
            while True:
                try:
                    await other.claim("t", "next")
                    break
                except ThreadBusy:
                    await anyio.sleep(0.005)

        assert asked
        assert not await hangs.renew(claim)


async def test_a_store_that_waits_does_not_wake_up(path: Path) -> None:
    async with SqliteStore(path, lease=0.05) as store:
        await store.release(await store.claim("t", "w"))
        worker = store._worker
        assert worker._session.wait() is None


FORKS = """
import os, sys, anyio
from locus_plugin_sqlite import FileUnusable, SqliteStore
from locus.core.journal import StepId
from locus.core.journal import Outcome

used, unused = SqliteStore(sys.argv[1]), SqliteStore(sys.argv[2])

async def write(store, *steps):
    claim = await store.claim("t", "w")
    for step in steps:
        assert (await store.append(claim, [Outcome(run_id="r", step_id=StepId(0, step))])).value == "ok"
    await store.release(claim)

async def steps(store):
    return [e.body.step_id.node for e in await store.read("t")]

async def child():
    await write(unused, "2")
    for store in (used, SqliteStore(sys.argv[1])):
        try:
            await store.read("t")
        except FileUnusable as e:
            print(e)

anyio.run(write, used, "1")
pid = os.fork()
if pid == 0:
    anyio.run(child)
else:
    assert os.waitpid(pid, 0)[1] == 0
    anyio.run(write, used, "3")
    print(anyio.run(steps, used), anyio.run(steps, unused))
"""


def run(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_file_that_was_open_at_a_fork_is_refused_in_the_fork_and_others_work(path: Path, tmp_path: Path) -> None:
    *refused, last = run(FORKS, path, tmp_path / "other.db").splitlines()
    assert [line.partition(":")[0] for line in refused] == [str(path)] * 2
    assert all("it was open when this process was forked" in line for line in refused)
    assert last == "['1', '3'] ['2']"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.db", "runs.db"]


LEAVES = """
import sys, anyio
from locus_plugin_sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.claim("t", "w")
    return store

store = anyio.run(main)
"""


def test_a_program_that_ends_without_closing_leaves_a_tidy_file(path: Path) -> None:
    run(LEAVES, path)
    assert [each.name for each in path.parent.iterdir()] == ["runs.db"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM workers").fetchone() == (0,)
        assert db.execute("SELECT token, worker FROM threads").fetchone() == ("", None)


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    """Nothing that a test has started outlives it."""
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
