"""The power may go at any moment: ``sync="full"`` loses nothing that was acknowledged, ``"normal"`` only the newest.

What SQLite writes and syncs is recorded, see `recorded`, and played to a disk that forgets, see `disk`. The same with
a mounted disk image and a process that is frozen: `test_privileged`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from tests.durability.case import Program, plain
from tests.durability.cuts import Resumed, cuts, ran, run_after, use_after, used
from tests.durability.disk import FATES, Create, Disk, Fate, Op, Resize, Sync, SyncNames, Unlink, Write
from tests.durability.effort import THOROUGH
from tests.durability.explore import SCRIPT
from tests.durability.points import Points
from tests.durability.recorded import Recording, recorded
from tests.durability.subjects import Sqlite
from tests.durability.writer import Full

from locus.core.journal import Body, Outcome, StepId
from locus.journal.store import Appended, Claim
from locus_plugin_sqlite import SqliteStore


class _AckFirst(SqliteStore):
    """Says that it is written, and writes it with the next one."""

    _later: tuple[Claim, Sequence[Body]] | None = None
    post: None = None  # type: ignore[assignment]

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        await self._flush()
        self._later = claim, bodies
        return Appended.OK

    async def release(self, claim: Claim, not_before: Any = None) -> None:
        await self._flush()
        await super().release(claim, not_before)

    async def _flush(self) -> None:
        later, self._later = self._later, None
        if later is not None:
            await super().append(*later)


class AckFirst(Full):
    name = "sqlite: acknowledgement first"
    store = _AckFirst


#: How many fates of the unsynced are tried at each moment, and how many stores are used.
EACH, SEEDS = (len(FATES), range(10)) if THOROUGH else (2, range(2))


# -- a run of an agent -----------------------------------------------------------------------------------


async def after_cuts_of_a_run(
    kind: type[Sqlite],
    folder: Path,
    *,
    may_lose: bool = False,
    synchronous: str | None = None,
    until: str | None = None,
) -> tuple[dict[str, list[str]], Resumed]:
    """What is wrong after which power cut; the last one is that where something says ``until``."""
    wanted, before = await plain(Program(SCRIPT)), Resumed()
    (folder / "ran").mkdir()
    run = await ran(kind, Program(SCRIPT), folder / "ran", synchronous=synchronous)
    wrong: dict[str, list[str]] = {}
    for number, cut in enumerate(cuts(run.recording, Random(1), fates=EACH)):
        found = await run_after(cut, run, wanted, folder / str(number), before, may_lose=may_lose)
        if found:
            wrong[f"{cut.at} {cut.fate}"] = found
        if until is not None and any(until in each for each in found):
            break
    else:
        passed = {known for *_, known in run.recording.moments()} - {known for _, known in before.seen}
        assert not passed, f"no cut was made when {sorted(passed)} facts were known"
    return wrong, before


def test_a_run_that_the_power_was_cut_from_loses_nothing_and_ends_like_any_other(tmp_path: Path) -> None:
    wrong, before = anyio.run(after_cuts_of_a_run, Full, tmp_path)
    assert wrong == {}
    # How many there are beyond a cut for each fact depends on how busy the machine is.
    assert len(before.lost) > 75
    assert len(before.seen) > 40


def test_a_run_that_may_lose_its_newest_entries_loses_no_others_and_ends(tmp_path: Path) -> None:
    wrong, before = anyio.run(partial(after_cuts_of_a_run, Sqlite, tmp_path, may_lose=True))
    assert wrong == {}
    assert max(before.lost) >= 2


@pytest.mark.parametrize(
    ("kind", "synchronous"), [(Full, "off"), (Sqlite, None), (AckFirst, None)], ids=["off", "normal", "ack first"]
)
def test_a_run_that_loses_what_was_acknowledged_is_found(
    kind: type[Sqlite], synchronous: str | None, tmp_path: Path
) -> None:
    look = partial(after_cuts_of_a_run, kind, tmp_path, synchronous=synchronous, until="acknowledged entries are lost")
    wrong, _ = anyio.run(look)
    *_, last = wrong.values()
    assert any("acknowledged entries are lost" in each for each in last)
    assert any("are not there" in each or "had finished" in each for each in last), "the oracle says so, too"


# -- everything that a store can do ----------------------------------------------------------------------


async def after_cuts_of_a_store(
    kind: type[Sqlite],
    seed: int,
    folder: Path,
    *,
    may_lose: bool = False,
    synchronous: str | None = None,
    until: str | None = None,
) -> tuple[dict[str, list[str]], list[int]]:
    """What is wrong after which power cut, and how many operations were lost at each."""
    (folder / "used").mkdir()
    use = await used(kind, seed, folder / "used", synchronous=synchronous)
    wrong: dict[str, list[str]] = {}
    losses = []
    for number, cut in enumerate(cuts(use.recording, Random(seed), fates=EACH)):
        found, lost = await use_after(cut, use, folder / str(number), may_lose=may_lose)
        losses.append(lost)
        if found:
            wrong[f"{cut.at} {cut.fate}"] = found
        if until is not None and any(until in each for each in found):
            break
    return wrong, losses


@pytest.mark.parametrize("seed", SEEDS)
def test_a_file_is_as_it_was_after_the_last_operation_or_the_next(seed: int, tmp_path: Path) -> None:
    wrong, losses = anyio.run(after_cuts_of_a_store, Full, seed, tmp_path)
    assert wrong == {}
    assert len(losses) > 100


@pytest.mark.parametrize("seed", SEEDS if THOROUGH else SEEDS[:1])
def test_a_file_that_may_lose_operations_is_as_it_was_after_an_earlier_one(seed: int, tmp_path: Path) -> None:
    wrong, losses = anyio.run(partial(after_cuts_of_a_store, Sqlite, seed, tmp_path, may_lose=True))
    assert wrong == {}
    assert max(losses) > 0


@pytest.mark.parametrize(("kind", "synchronous"), [(Full, "off"), (Sqlite, None)], ids=["off", "normal"])
def test_a_store_that_loses_operations_is_found(kind: type[Sqlite], synchronous: str | None, tmp_path: Path) -> None:
    said = "acknowledged operations are lost"
    wrong, _ = anyio.run(partial(after_cuts_of_a_store, kind, 0, tmp_path, synchronous=synchronous, until=said))
    assert any(said in each for found in wrong.values() for each in found)


def test_a_file_that_is_never_synced_is_torn(tmp_path: Path) -> None:
    look = partial(after_cuts_of_a_store, Full, 0, tmp_path, synchronous="off", may_lose=True)
    wrong, _ = anyio.run(look)
    signs = "it was never like this", "it is damaged", "file: ["
    assert any(sign in each for found in wrong.values() for each in found for sign in signs)


# -- the proof of the proof ------------------------------------------------------------------------------


def test_everything_that_is_written_is_recorded(tmp_path: Path) -> None:
    async def look() -> None:
        recording, subject = Recording(), Full(tmp_path)
        with recorded(recording):
            store = subject.open(Points())
            claim = await store.claim("t", "w")
            for n in range(300):
                await store.append(claim, [Outcome(run_id="run", step_id=StepId(0, str(n)), value="x" * 9000)])
            *_, (_, disk, _) = recording.moments()
            names = ("runs.db", "runs.db-wal")
            assert disk.cut("kept", Random(0)) == {name: (tmp_path / name).read_bytes() for name in names}
            await subject.close()

    anyio.run(look)


def test_a_disk_keeps_what_was_synced_under_a_name_that_was() -> None:
    # given
    disk = Disk()
    before: list[Op] = [Create("a", 1), Write(1, 0, b"one"), Sync(1)]
    for op in before:
        disk.do(op)
    # then its name is not there yet
    assert disk.cut("lost", Random(0)) == {}
    # when
    since: list[Op] = [SyncNames(), Write(1, 3, b" two"), Create("b", 2), Unlink("a")]
    for op in since:
        disk.do(op)
    # then
    assert disk.cut("lost", Random(0)) == {"a": b"one"}
    assert disk.cut("kept", Random(0)) == {"b": b""}
    ends = {name: disk.cut("some", Random(n)).get(name) for n in range(40) for name in "ab"}
    assert set(ends) == {"a", "b"}


@pytest.mark.parametrize("fate", FATES)
def test_what_was_not_synced_may_be_there_in_any_part(fate: Fate) -> None:
    # given a file that was synced, then written over, lengthened and cut
    disk = Disk()
    before: list[Op] = [Create("a", 1), SyncNames(), Write(1, 0, b"0" * 2048), Sync(1)]
    for op in [*before, Write(1, 256, b"1" * 1024), Write(1, 2048, b"2" * 1024), Resize(1, 2560)]:
        disk.do(op)
    # when
    found = {disk.cut(fate, Random(n))["a"] for n in range(200)}
    # then
    old, new = b"0" * 2048, b"0" * 256 + b"1" * 1024 + b"0" * 768 + b"2" * 512
    if fate in ("lost", "kept"):
        assert found == {old if fate == "lost" else new}
    else:
        assert {old if fate != "holes" else old + bytes(512), new} <= found
    torn = any(content[256:1280] not in (b"0" * 1024, b"1" * 1024) for content in found)
    assert torn == (fate in ("first", "torn", "holes"))
