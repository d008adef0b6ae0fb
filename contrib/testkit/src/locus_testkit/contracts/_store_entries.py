"""What a store does with entries: keeps them whole, equal, in order and readable."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from locus.core.journal import Outcome
from locus.memory.store import Appended, JournalStore
from locus_testkit.contracts._samples import (
    Story,
    bodies_of,
    folded,
    last_transition,
    lightened,
    state_of,
    steps,
    steps_since,
    story,
    texts,
)
from locus_testkit.contracts._store import StoreContract, add, reclaimed, tell, write
from locus_testkit.contracts.features import needs

__all__ = ["EntryLaws"]


class Unstorable:
    """A value without a JSON form."""


class EntryLaws(StoreContract):
    """The state is the fold of what was accepted, and an append is one write."""

    async def test_store_has_every_method_of_the_protocol(self, store: JournalStore) -> None:
        """A store is recognised by its methods."""
        assert isinstance(store, JournalStore)
        assert store.snapshot_every is None or store.snapshot_every >= 1

    async def test_history_is_kept_as_declared(self, store: JournalStore) -> None:
        """No store of journals gets out of the laws that need a history by not declaring it."""
        assert store.keeps_history is self.features.history

    async def test_new_thread_is_empty(self, store: JournalStore) -> None:
        """Claiming a thread that nobody used gives an empty journal."""
        claim = await store.claim("t", "w")
        assert (claim.thread_id, claim.head, claim.snapshot, claim.entries) == ("t", 0, None, ())

    async def test_state_is_the_fold_of_the_entries(self, store: JournalStore) -> None:
        """After each transition, whoever claims next has exactly the state and the place that were committed."""
        told = story()
        for at, (body, state) in enumerate(zip(told.bodies, told.states, strict=True)):
            claim = await store.claim("t", "w")
            await tell(store, claim, Story((state,), (body,)), after=at)
            await store.release(claim)
            again = await reclaimed(store, "t")
            assert folded(again) == state
            assert again.head == at + 1
            found = last_transition(again)
            assert (found if store.keeps_history else lightened(found)) == (
                body if store.keeps_history else lightened(body)
            )

    async def test_every_kind_of_entry_comes_back_equal(self, store: JournalStore) -> None:
        """Steps, questions, answers and awkward data survive storage, types included."""
        told, others = story(size=3), steps()
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await add(store, claim, *others)
        await store.release(claim)
        again = await reclaimed(store, "t")
        assert folded(again) == told.end
        assert steps_since(again) == list(others)
        if store.keeps_history:
            assert bodies_of(await store.read("t")) == [*told.bodies, *others]

    async def test_steps_before_a_transition_are_done_with(self, store: JournalStore) -> None:
        """What a node recorded on its way does not count as a step of the node that follows."""
        told = story(size=2)
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(2, "before"))
        await tell(store, claim, told, after=2)
        await add(store, claim, *texts(2, "after"))
        await store.release(claim)
        again = await reclaimed(store, "t")
        assert steps_since(again) == list(texts(2, "after"))
        assert folded(again) == told.end
        assert again.head == 6

    async def test_large_values_come_back_equal(self, store: JournalStore) -> None:
        """A megabyte in one value is stored like any other."""
        await write(store, "t", *texts(2, size=1_000_000))
        assert bodies_of((await reclaimed(store, "t")).entries) == list(texts(2, size=1_000_000))

    @needs("history")
    async def test_entries_are_numbered_from_one(self, store: JournalStore) -> None:
        """Numbers have no gap, over several appends and claims, and the head is the last of them."""
        await write(store, "t", *texts(2))
        await write(store, "t", *texts(1))
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(3))
        assert [entry.n for entry in await store.read("t")] == [1, 2, 3, 4, 5, 6]
        assert claim.head == 3
        assert [entry.n for entry in claim.entries] == [1, 2, 3]

    @needs("history")
    async def test_entries_name_their_writer(self, store: JournalStore) -> None:
        """Whoever lost an answer finds out by the tokens which entries are its own."""
        first = await store.claim("t", "w")
        await add(store, first, *texts(2))
        await store.release(first)
        second = await store.claim("t", "w")
        await add(store, second, *texts(1))
        entries = await store.read("t")
        assert [entry.writer for entry in entries] == [first.token, first.token, second.token]

    @needs("history")
    async def test_entries_name_their_parent(self, store: JournalStore) -> None:
        """An entry carries the id of the one before it, over several appends and claims."""
        for _ in range(2):
            claim = await store.claim("t", "w")
            await add(store, claim, *texts(2))
            await add(store, claim, *texts(1))
            await store.release(claim)
        entries = await store.read("t")
        assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]
        assert (await reclaimed(store, "t")).entries == entries

    async def test_append_that_fails_stores_nothing(self, store: JournalStore) -> None:
        """A batch with a value that cannot be stored is stored whole or not at all, and the next one fits."""
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(1))
        bad = Outcome(run_id="run", step_id="bad", value=Unstorable())
        try:
            await store.append(claim, [*texts(1), bad, *texts(1)])
        except Exception:  # noqa: BLE001  # whatever a store raises for it
            stored = 0
        else:
            stored = 3
        assert len(await store.read("t")) == 1 + stored
        await add(store, claim, *texts(1))
        assert len(await store.read("t")) == 2 + stored

    async def test_cancelled_append_is_stored_whole_or_not_at_all(self, store: JournalStore) -> None:
        """Cancelling the writer never leaves a part of a batch, and never breaks the store."""
        claim = await store.claim("t", "w")
        await tell(store, claim, story(size=1))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.append(claim, texts(20))
        await store.release(claim)
        again = await store.claim("t", "w")
        stored = steps_since(again)
        assert len(stored) in (0, 20)
        await add(store, again, *texts(1))
        await store.release(again)
        assert steps_since(await reclaimed(store, "t")) == [*stored, *texts(1)]

    async def test_readers_see_an_append_whole(self, store: JournalStore) -> None:
        """Whoever reads while a batch is written sees all of it or none."""
        claim = await store.claim("t", "w")
        seen: list[int] = []

        async def read() -> None:
            for _ in range(10):
                seen.append(len(await store.read("t")))
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for _ in range(5):
                await add(store, claim, *texts(50))
                await anyio.lowlevel.checkpoint()
        assert {n % 50 for n in seen} == {0}

    async def test_concurrent_appends_lose_nothing(self, store: JournalStore) -> None:
        """Tools of one turn record their outcomes at the same time: each batch is there, in one piece."""
        claim = await store.claim("t", "w")
        await tell(store, claim, story(size=1))
        batches = [texts(3, f"run-{i}") for i in range(8)]
        async with anyio.create_task_group() as group:
            for batch in batches:
                group.start_soon(add, store, claim, *batch)
        await store.release(claim)
        again = await reclaimed(store, "t")
        found = steps_since(again)
        assert sorted((found[i : i + 3] for i in range(0, len(found), 3)), key=repr) == [list(b) for b in batches]
        if store.keeps_history:
            assert [entry.parent for entry in again.entries] == ["", *(entry.id for entry in again.entries[:-1])]

    @needs("history")
    async def test_snapshot_is_a_cache_of_the_fold(self, store: JournalStore) -> None:
        """Wherever a snapshot is taken, state and last transition are the same, and the rest follows it."""
        told = story(size=5)
        for at in range(1, 6):
            thread = f"thread-{at}"
            claim = await store.claim(thread, "w")
            await add(store, claim, *told.bodies)
            await store.snapshot(claim, at, told.states[at - 1], told.bodies[at - 1])
            await store.release(claim)
            again = await reclaimed(store, thread)
            assert folded(again) == told.end
            if again.snapshot is not None:
                assert [e.n for e in again.entries] == list(range(again.snapshot.at + 1, again.head + 1))
                assert again.snapshot.last == told.bodies[again.snapshot.at - 1]

    @needs("history")
    async def test_older_snapshot_changes_nothing(self, store: JournalStore) -> None:
        """Snapshots that come out of order do not lose what happened between them."""
        told = story(size=5)
        claim = await store.claim("t", "w")
        await add(store, claim, *told.bodies)
        await store.snapshot(claim, 4, told.states[3], told.bodies[3])
        await store.snapshot(claim, 2, told.states[1], told.bodies[1])
        await store.release(claim)
        assert folded(await reclaimed(store, "t")) == told.end

    @needs("history")
    async def test_entries_after_a_snapshot_name_their_parents(self, store: JournalStore) -> None:
        """The chain of parents goes on where a snapshot was taken, and old entries stay readable."""
        told = story(size=4)
        claim = await store.claim("t", "w")
        await add(store, claim, *told.bodies)
        await store.snapshot(claim, 2, told.states[1], told.bodies[1])
        await add(store, claim, *texts(2))
        await store.release(claim)
        entries = await store.read("t")
        assert bodies_of(entries) == [*told.bodies, *texts(2)]
        assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]
        assert state_of(entries) == told.end
        again = await reclaimed(store, "t")
        assert again.entries == entries[len(entries) - len(again.entries) :]

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
        assert folded(held) == story().end
        assert await store.append(held, texts(1)) is Appended.FENCED
        await add(store, claim, *texts(1))
        await store.release(claim)
        free, taken = await store.peek("t"), await store.claim("t", "w")
        assert free is not None
        assert (free.token, free.head, free.snapshot) == ("", taken.head, taken.snapshot)
        assert bodies_of(free.entries) == bodies_of(taken.entries)
