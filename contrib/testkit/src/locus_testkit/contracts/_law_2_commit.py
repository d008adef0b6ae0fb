"""Law 2: one commit a transition. What belongs together is written together, or not at all."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from locus.core.errors import ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal import JournalStore
from locus_testkit.contracts._samples import NOON, fold_claim, steps_since, story, texts
from locus_testkit.contracts._store import StoreContract, add, claim_and_release, tell

__all__ = ["CommitLaws"]


class Unstorable:
    """A value without a JSON form."""


class CommitLaws(StoreContract):
    """An append is one write, and so is a release with its time."""

    async def test_law_2_append_that_fails_stores_nothing(self, store: JournalStore) -> None:
        """A batch with a value that cannot be stored is stored whole or not at all, and the next one fits."""
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(1))
        bad = Outcome(run_id="run", step_id=StepId(0, "bad"), value=Unstorable())
        try:
            await store.append(claim, [*texts(1), bad, *texts(1)])
        except Exception:  # noqa: BLE001  # whatever a store raises for it
            stored = 0
        else:
            stored = 3
        assert len(await store.read("t")) == 1 + stored
        await add(store, claim, *texts(1))
        assert len(await store.read("t")) == 2 + stored

    async def test_law_2_cancelled_append_is_stored_whole_or_not_at_all(self, store: JournalStore) -> None:
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
        assert steps_since(await claim_and_release(store, "t")) == [*stored, *texts(1)]

    async def test_law_2_readers_see_an_append_whole(self, store: JournalStore) -> None:
        """A reader sees all of a batch that is being written, or nothing of it."""
        claim = await store.claim("t", "w")
        seen: list[int] = []
        # Trio draws which of two tasks goes first, so one batch that is seen in halves is luck: of twelve, one is.
        batches, size, written = 12, 20, anyio.Event()

        async def read() -> None:
            while not written.is_set():
                seen.append(len(await store.read("t")))
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for _ in range(batches):
                await add(store, claim, *texts(size))
                await anyio.lowlevel.checkpoint()
            written.set()
        assert {n % size for n in seen} == {0}

    async def test_law_2_concurrent_appends_lose_nothing(self, store: JournalStore) -> None:
        """Tools of one turn record their outcomes at the same time: each batch is there, in one piece."""
        claim = await store.claim("t", "w")
        await tell(store, claim, story(size=1))
        batches = [texts(3, f"run-{i}") for i in range(8)]
        async with anyio.create_task_group() as group:
            for batch in batches:
                group.start_soon(add, store, claim, *batch)
        await store.release(claim)
        again = await claim_and_release(store, "t")
        found = steps_since(again)
        assert sorted((found[i : i + 3] for i in range(0, len(found), 3)), key=repr) == [list(b) for b in batches]
        if store.keeps_history:
            assert [entry.parent for entry in again.entries] == ["", *(entry.id for entry in again.entries[:-1])]

    async def test_law_2_cancelled_transition_is_stored_whole_or_not_at_all(self, store: JournalStore) -> None:
        """The state and the next node change together, and the steps before are settled."""
        told = story(size=2)
        claim = await store.claim("t", "w")
        await tell(store, claim, story(size=1))
        await add(store, claim, *texts(2))
        with anyio.CancelScope() as scope:
            scope.cancel()
            if store.keeps_history:
                await store.append(claim, [*texts(1, "last"), *told.bodies[1:]])
            else:
                await store.snapshot(claim, 4, told.end, told.bodies[1])
        await store.release(claim)
        again = await claim_and_release(store, "t")
        assert (fold_claim(again), steps_since(again)) in ((told.states[0], list(texts(2))), (told.end, []))

    async def test_law_2_thread_is_freed_and_its_time_set_in_one_write(self, store: JournalStore) -> None:
        """A release that is cut off leaves a thread as it was or as it should be: never free and forgotten."""
        whole, cut = await store.claim("whole", "w"), await store.claim("cut", "w")
        await store.release(whole, NOON)
        offered = await store.next_ready(NOON) == "whole"
        await store.claim("whole", "w")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.release(cut, NOON)
        found = await store.next_ready(NOON)
        try:
            await store.claim("cut", "next")
        except ThreadBusy:
            assert found is None
        else:
            assert (found == "cut") is offered
