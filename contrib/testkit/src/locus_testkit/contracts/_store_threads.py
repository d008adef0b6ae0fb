"""Threads side by side, and one place seen through several handles."""

from __future__ import annotations

import pytest

from locus.core.errors import ThreadBusy
from locus.memory.store import Appended, JournalStore
from locus_testkit.contracts._samples import NOON, Story, bodies_of, folded, steps, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, reclaimed, tell, write
from locus_testkit.contracts.features import needs

__all__ = ["ThreadLaws"]


class ThreadLaws(StoreContract):
    """Threads are independent, named by any text, listed, forgotten, and the same for every process."""

    async def test_threads_are_independent(self, store: JournalStore) -> None:
        """Entries, claims and snapshots of one thread do not touch another."""
        one, two = story("one"), story("two")
        first, second = await store.claim("1", "w"), await store.claim("2", "w")
        for at in range(4):
            await tell(store, first, Story(one.states[at : at + 1], one.bodies[at : at + 1]), after=at)
            await tell(store, second, Story(two.states[at : at + 1], two.bodies[at : at + 1]), after=at)
        await add(store, second, *texts(2))
        if store.keeps_history:
            await store.snapshot(first, 2, one.states[1], one.bodies[1])
        await store.release(first)
        await store.release(second)
        assert folded(await reclaimed(store, "1")) == one.end
        assert folded(await reclaimed(store, "2")) == two.end
        assert steps_since(await reclaimed(store, "1")) == []

    async def test_any_text_names_a_thread(self, store: JournalStore) -> None:
        """Ids are text, not patterns, paths or queries."""
        names = [
            "a",
            "A",
            "a ",
            "%",
            "_",
            "'; --",
            "../a",
            "a/b",
            "a.b",
            ".",
            "\u00e9",
            "e\u0301",
            "\U0001f600",
            "x" * 500,
        ]
        for i, name in enumerate(names):
            await write(store, name, *texts(1, f"run-{i}"))
        for i, name in enumerate(names):
            assert bodies_of(await store.read(name)) == list(texts(1, f"run-{i}")), name
        assert {info.thread_id for info in await store.threads()} == set(names)

    async def test_threads_are_listed_newest_first(self, store: JournalStore) -> None:
        """A listing tells what a person looks for: the last used first, and who is at work."""
        for thread in ("a", "b", "a"):
            await write(store, thread, *texts(2))
        claim = await store.claim("b", "the worker")
        listed = {info.thread_id: info for info in await store.threads()}
        assert (listed["b"].holder, listed["a"].holder) == ("the worker", None)
        await store.release(claim)
        assert [info.thread_id for info in await store.threads()] == ["b", "a"]
        if store.keeps_history:
            assert [info.head for info in await store.threads()] == [2, 4]

    @needs("delete")
    async def test_deleted_thread_is_gone(self, store: JournalStore) -> None:
        """A forgotten thread has no entries, no snapshot and no time, and its id starts afresh."""
        told = story()
        stale = await store.claim("t", "w")
        await tell(store, stale, told)
        await store.snapshot(stale, 4, told.end, told.bodies[-1])
        await store.release(stale, NOON)
        assert await store.delete("t") is True
        assert (await store.read("t"), await store.threads(), await store.next_ready(NOON)) == ((), (), None)
        assert await store.delete("t") is False
        fresh = await store.claim("t", "w")
        assert (fresh.head, fresh.snapshot, fresh.entries) == (0, None, ())
        assert await store.append(stale, texts(1)) is Appended.FENCED

    @needs("delete")
    async def test_held_thread_cannot_be_deleted(self, store: JournalStore) -> None:
        """Nobody takes a journal away from the worker that writes it."""
        claim = await store.claim("t", "the worker")
        with pytest.raises(ThreadBusy, match="the worker"):
            await store.delete("t")
        await add(store, claim, *texts(1))
        assert len(await store.read("t")) == 1

    @needs("persistent")
    async def test_another_handle_finds_the_same(self, open_store: OpenStore) -> None:
        """What was accepted is there when the place is opened again: entries, snapshot, time and listing."""
        told = story(size=5)
        store = await open_store()
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await add(store, claim, *steps())
        if store.keeps_history:
            await store.snapshot(claim, 2, told.states[1], told.bodies[1])
        await store.release(claim, NOON)
        entries, listed = await store.read("t"), await store.threads()
        again = await open_store()
        if store.keeps_history:
            assert await again.read("t") == entries
        if self.features.lists:
            assert [(i.thread_id, i.head) for i in await again.threads()] == [(i.thread_id, i.head) for i in listed]
            assert await again.next_ready(NOON) == "t"
        claimed = await again.claim("t", "w")
        assert folded(claimed) == told.end
        assert steps_since(claimed) == list(steps())

    @needs("shared")
    async def test_handles_exclude_each_other(self, open_store: OpenStore) -> None:
        """Two processes on one place: one holds the thread, and its claim fences the other's."""
        here, there = await open_store(), await open_store()
        stale = await here.claim("t", "here")
        with pytest.raises(ThreadBusy, match="here"):
            await there.claim("t", "there")
        await here.release(stale)
        fresh = await there.claim("t", "there")
        assert await here.append(stale, texts(1)) is Appended.FENCED
        await add(there, fresh, *texts(1))
        assert await here.read("t") == await there.read("t")
