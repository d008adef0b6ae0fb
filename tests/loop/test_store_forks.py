"""A store's ``fork``: the same beginning under another name, and from there on a thread of its own."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core.errors import JournalError, NothingToResume, ThreadBusy
from locus.core.journal import BLANK, Body, Entry, Intent, StateDelta, StepId, Transition, fold
from locus.journal import Appended, JournalStore, MemoryStore
from locus_kit.snapshots import SnapshotAdapter

pytestmark = pytest.mark.anyio


def steps(*names: str) -> list[Body]:
    return [Intent(run_id="r", step_id=StepId(0, name)) for name in names]


def move(n: int) -> Transition:
    return Transition(run_id="r", node="think", next_node="think", delta=StateDelta({"iteration": n}))


async def written(store: JournalStore, thread_id: str, *bodies: Body) -> None:
    claim = await store.claim(thread_id, "w")
    assert await store.append(claim, bodies) is Appended.OK
    await store.release(claim)


def ids(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.id for entry in entries]


async def test_a_fork_begins_with_the_very_entries_of_its_origin() -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a", "b"))
    await written(store, "t", *steps("c", "d"))
    await store.fork("t", 3, "f")
    origin, fork = await store.read("t"), await store.read("f")
    assert fork == origin[:3]
    assert all(mine.body is theirs.body for mine, theirs in zip(fork, origin[:3], strict=True))


async def test_what_follows_belongs_to_one_of_them_only() -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a", "b"))
    await store.fork("t", 1, "f")
    await written(store, "t", *steps("c"))
    await written(store, "f", *steps("x", "y", "z"))
    assert [e.body.step_id.node for e in await store.read("t")] == ["a", "b", "c"]  # type: ignore[union-attr]
    assert [e.body.step_id.node for e in await store.read("f")] == ["a", "x", "y", "z"]  # type: ignore[union-attr]
    for thread in ("t", "f"):
        entries = await store.read(thread)
        assert [e.parent for e in entries] == ["", *ids(entries)[:-1]]


async def test_what_is_written_with_a_fork_comes_after_its_beginning() -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a", "b"))
    await store.fork("t", 1, "f", steps("first of the fork"))
    first, second = await store.read("f")
    assert second.body.step_id.node == "first of the fork"  # type: ignore[union-attr]
    assert (second.n, second.parent) == (2, first.id)
    assert second.writer != first.writer
    assert len(await store.read("t")) == 2


async def test_a_fork_outlives_its_origin_and_the_other_way_round() -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a", "b"))
    await store.fork("t", 2, "f")
    await store.fork("f", 1, "g")
    await store.delete("f")
    assert (len(await store.read("t")), len(await store.read("g"))) == (2, 1)
    await store.delete("t")
    assert len(await store.read("g")) == 1


async def test_a_held_thread_can_be_forked_and_continues() -> None:
    store = MemoryStore()
    claim = await store.claim("t", "w")
    await store.append(claim, steps("a"))
    await store.fork("t", 1, "f")
    assert await store.append(claim, steps("b")) is Appended.OK
    assert (len(await store.read("t")), len(await store.read("f"))) == (2, 1)
    held = {info.thread_id: info.holder for info in await store.threads()}
    assert held == {"t": "w", "f": None}


@pytest.mark.parametrize(("at", "kept"), [(1, False), (2, True), (3, True)])
async def test_a_cached_fold_goes_along_as_far_as_it_is_true(at: int, kept: bool) -> None:
    store = MemoryStore()
    moves = [move(1), move(2), move(3)]
    claim = await store.claim("t", "w")
    await store.append(claim, moves)
    await store.snapshot(claim, 2, fold(BLANK, moves[:2]), moves[1])
    await store.release(claim)
    await store.fork("t", at, "f")
    found = await store.claim("f", "w")
    assert (found.snapshot is not None) is kept
    assert found.head == at
    state = found.snapshot.state if found.snapshot is not None else BLANK
    assert fold(state, [e.body for e in found.entries]).iteration == at


async def test_an_unknown_thread_cannot_be_forked() -> None:
    with pytest.raises(NothingToResume, match="'nope'"):
        await MemoryStore().fork("nope", 1, "f")


@pytest.mark.parametrize("into", ["t", "other", "held"])
async def test_a_fork_takes_no_name_that_is_taken(into: str) -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a"))
    await written(store, "other", *steps("b"))
    await store.claim("held", "a worker that is about to begin")
    with pytest.raises(JournalError, match=f"'{into}'"):
        await store.fork("t", 1, into)
    assert [e.body.step_id.node for e in await store.read("other")] == ["b"]  # type: ignore[union-attr]


@pytest.mark.parametrize("at", [0, -1, 3, 100])
async def test_a_fork_begins_at_an_entry(at: int) -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a", "b"))
    with pytest.raises(JournalError, match="1 to 2"):
        await store.fork("t", at, "f")
    assert await store.peek("f") is None


async def test_a_worker_that_held_the_name_before_is_fenced() -> None:
    store = MemoryStore()
    await written(store, "t", *steps("a"))
    stale = await store.claim("f", "w")
    await store.release(stale)
    await store.fork("t", 1, "f")
    assert await store.append(stale, steps("x")) is Appended.FENCED
    claim = await store.claim("f", "w")
    with pytest.raises(ThreadBusy):
        await store.claim("f", "another")
    assert claim.head == 1


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: MemoryStore(history=False), id="memory"),
        pytest.param(lambda: SnapshotAdapter(lambda *_: None, lambda _: None), id="adapter"),
    ],
)
async def test_a_store_without_history_says_so(make: Any) -> None:
    store: JournalStore = make()
    with pytest.raises(JournalError, match="keeps the newest state of a thread and no history"):
        await store.fork("t", 1, "f")
