"""A disk that is full and a power cut, on file systems that are mounted for it: `tox -e privileged`, as root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from tests.durability.case import THREAD, Plain, Segment, final_state, plain, segment, whole
from tests.durability.filling import fill_and_delete, outcome
from tests.durability.log import Log
from tests.durability.mounted import copied, formatted, image, memory, resized
from tests.durability.oracle import judge
from tests.durability.points import Points
from tests.durability.programs import ROOT
from tests.durability.writer import PROGRAM, Full, log_of

from locus.core.errors import StoreError
from locus.journal.store import Appended
from locus_plugin_sqlite import DiskFull, SqliteStore

pytestmark = pytest.mark.privileged

MB = 2**20


async def gone_on(subject: Full, log: Log, wanted: Plain, thread: str, *, faults: int) -> list[str]:
    """Resume a run to its end; gives what is wrong with it."""
    subject.bury()

    async def step(answers: dict[str, Any] | None) -> Segment:
        return await segment(PROGRAM, subject.open(Points()), log, Points(), thread=thread, answers=answers)

    await whole(step)
    store = subject.open(Points())
    verdict = judge(
        await final_state(store, thread),
        await store.read(thread),
        log,
        wanted=wanted.state,
        asked=wanted.asked,
        faults=faults,
        thread=thread,
        rows=subject.rows(thread),
    )
    await subject.close()
    return list(verdict.wrong)


# -- a full disk -----------------------------------------------------------------------------------------


async def filled(folder: Path, room: int, wanted: Plain) -> tuple[list[StoreError | None], list[str]]:
    """A run on a disk with so much room, and once it fails more of it: what it was told, and what is wrong."""
    log, subject = Log(), Full(folder)
    told: list[StoreError | None] = []
    (folder / "ballast").write_bytes(bytes(4 * MB - room))

    async def step(answers: dict[str, Any] | None) -> Segment:
        ended = await segment(PROGRAM, subject.open(Points()), log, Points(), answers=answers)
        await subject.close()
        subject.bury()  # it may not have been able to give the thread back
        if ended.status == "failed":
            told.append(ended.error)
            resized(folder, 8 * MB)
        return ended

    await whole(step)
    resized(folder, 8 * MB)  # it may have been just enough
    return told, await gone_on(subject, log, wanted, THREAD, faults=len(told))


def test_a_run_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    wanted, failed = anyio.run(plain, PROGRAM), 0
    for room in range(0, 420_000, 12_000):
        place = tmp_path / str(room)
        with memory(place, 4 * MB):
            told, wrong = anyio.run(filled, place, room, wanted)
        assert wrong == [], room
        assert all(isinstance(error, DiskFull) for error in told), told
        failed += bool(told)
    assert 10 <= failed < 35


# -- deleting on a full disk -----------------------------------------------------------------------------


def filled_up(folder: Path) -> None:
    """Write until the disk has not a byte left."""
    with (folder / "ballast").open("ab", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            with suppress(OSError):
                while True:
                    file.write(os.urandom(size))
    os.sync()


@contextmanager
def disk(kind: str, place: Path) -> Iterator[Path]:
    place.mkdir()
    if kind == "memory":
        with memory(place / "mounted", 8 * MB):
            yield place / "mounted"
        return
    formatted(place / "image", 12 * MB)
    with image(place / "image", place / "mounted"):
        yield place / "mounted"


@pytest.mark.parametrize("kind", ["memory", "image"])
@pytest.mark.parametrize("again", [False, True], ids=["the same store", "a new store"])
def test_what_filled_the_disk_can_be_deleted_and_its_room_used_again(kind: str, again: bool, tmp_path: Path) -> None:
    def check(stored: int, read: int) -> None:
        assert stored > 100
        assert read == stored

    with disk(kind, tmp_path / "disk") as folder:
        anyio.run(partial(fill_and_delete, folder / "runs.db", rounds=3, reopens=again, check=check))
        assert anyio.run(SqliteStore(folder / "runs.db").verify).damage == ()


@pytest.mark.parametrize("kind", ["memory", "image"])
def test_a_thread_can_be_deleted_where_others_took_the_last_byte(kind: str, tmp_path: Path) -> None:
    async def given() -> None:
        path = folder / "runs.db"
        async with SqliteStore(path) as store:
            for name in ("kept", "large"):
                claim = await store.claim(name, "w")
                for n in range(1 if name == "kept" else 800):
                    await store.append(claim, [outcome(n)])
                await store.release(claim)
        filled_up(folder)

        async with SqliteStore(path) as store:
            assert {info.thread_id for info in await store.threads()} == {"kept", "large"}
            assert await store.delete("large") is True
        async with SqliteStore(path) as store:
            claim = await store.claim("kept", "w")
            for n in range(1, 60):
                assert await store.append(claim, [outcome(n)]) is Appended.OK
            assert len(await store.read("kept")) == 60
            await store.release(claim)
            assert (await store.verify()).damage == ()

    with disk(kind, tmp_path / "disk") as folder:
        anyio.run(given)


# -- a power cut -----------------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path, logs: Path, *, synced: bool) -> Iterator[int]:
    """A process that writes; gives its id."""
    order = json.dumps({"folder": str(folder), "logs": str(logs), "synced": synced})
    with subprocess.Popen([sys.executable, "-m", "tests.durability.writer", order], cwd=ROOT) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def frozen_after(pid: int, logs: Path, facts: int) -> None:
    """Stop a process, wherever it is, once it has written so many facts down."""
    while sum(len(path.read_bytes().splitlines()) for path in logs.iterdir()) < facts:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the writer has ended"
        time.sleep(0.001)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


async def after_the_cut(folder: Path, logs: Path, threads: Sequence[str], wanted: Plain) -> list[str]:
    """Go on with every run that was begun; gives what is wrong."""
    wrong = []
    for thread in threads:
        found = await gone_on(Full(folder), Log(log_of(logs, thread)), wanted, thread, faults=1)
        wrong += [f"{thread}: {each}" for each in found]
    return wrong


def power_cut(place: Path, facts: int, wanted: Plain, *, synced: bool = True) -> list[str]:
    """Freeze a writer, take its disk as it is, and go on with that; gives what is wrong."""
    place.mkdir()
    disk, copy, logs = place / "disk", place / "copy", place / "logs"
    logs.mkdir()
    formatted(disk, 8 * MB)
    with image(disk, place / "mounted"), writing(place / "mounted", logs, synced=synced) as pid:
        frozen_after(pid, logs, facts)
        copied(disk, copy)
    with image(copy, place / "again"):
        threads = sorted(path.stem for path in logs.iterdir())
        return anyio.run(after_the_cut, place / "again", logs, threads, wanted)


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_takes_nothing_that_was_acknowledged(seed: int, tmp_path: Path) -> None:
    facts = Random(seed).randint(10, 600)
    assert power_cut(tmp_path / "cut", facts, anyio.run(plain, PROGRAM)) == []


def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path) -> None:
    wrong = power_cut(tmp_path / "cut", 300, anyio.run(plain, PROGRAM), synced=False)
    assert any("acknowledged entries" in each for each in wrong)
