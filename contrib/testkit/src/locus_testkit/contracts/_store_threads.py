"""Threads side by side, and one place seen through several handles: not a law of runs, but relied on."""

from __future__ import annotations

import pytest

from locus.core.errors import ThreadBusy
from locus.journal import Appended, JournalStore
from locus_testkit.contracts._samples import NOON, Story, bodies_of, fold_claim, steps, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell, write
from locus_testkit.contracts.features import needs

__all__ = ["ThreadLaws"]


class ThreadLaws(StoreContract):
    """Threads are independent, named by any text, read by anybody, listed, forgotten, the same for every process."""

    async def test_store_has_every_method_of_the_protocol(self, store: JournalStore) -> None:
        """A store is recognised by its methods."""
        assert isinstance(store, JournalStore)
        assert store.snapshot_every is None or store.snapshot_every >= 1

    async def test_history_is_kept_as_declared(self, store: JournalStore) -> None:
        """No store of journals gets out of the laws that need a history by not declaring it."""
        assert store.keeps_history is self.features.history

    async def test_new_thread_is_empty(self, store: JournalStore) -> None:
        """Claiming an unused thread gives an empty journal."""
        claim = await store.claim("t", "w")
        assert (claim.thread_id, claim.head, claim.snapshot, claim.entries) == ("t", 0, None, ())

    async def test_reading_needs_no_claim(self, store: JournalStore) -> None:
        """Anybody can read a thread while a worker holds it, and does not disturb that worker."""
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(3))
        assert bodies_of(await store.read("t")) == list(texts(3))
        await add(store, claim, *texts(1))
        assert await store.renew(claim)

    @needs("history")
    async def test_reading_starts_after_a_number(self, store: JournalStore) -> None:
        """`after` leaves out what the reader has."""
        await write(store, "t", *texts(4))
        entries = await store.read("t")
        for after in range(6):
            assert await store.read("t", after) == entries[after:]

    async def test_reading_an_unknown_thread_gives_nothing(self, store: JournalStore) -> None:
        """... and does not create it."""
        assert await store.read("nobody") == ()
        assert await store.threads() == ()

    async def test_peeking_shows_what_a_claim_would(self, store: JournalStore) -> None:
        """... of a free thread and of a held one, without a token, without taking it, without creating it."""
        assert await store.peek("t") is None
        assert await store.threads() == ()
        claim = await store.claim("t", "w")
        await tell(store, claim, story())
        await add(store, claim, *texts(2))
        held = await store.peek("t")
        assert held is not None
        assert (held.token, held.thread_id, held.head) == ("", "t", 6)
        assert fold_claim(held) == story().end
        assert await store.append(held, texts(1)) is Appended.FENCED
        await add(store, claim, *texts(1))
        await store.release(claim)
        free, taken = await store.peek("t"), await store.claim("t", "w")
        assert free is not None
        assert (free.token, free.head, free.snapshot) == ("", taken.head, taken.snapshot)
        assert bodies_of(free.entries) == bodies_of(taken.entries)

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
        assert fold_claim(await claim_and_release(store, "1")) == one.end
        assert fold_claim(await claim_and_release(store, "2")) == two.end
        assert steps_since(await claim_and_release(store, "1")) == []

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
        """A journal cannot be deleted while a worker holds it."""
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
        assert fold_claim(claimed) == told.end
        assert steps_since(claimed) == list(steps())
