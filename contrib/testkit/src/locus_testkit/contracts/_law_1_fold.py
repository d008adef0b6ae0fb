"""Law 1: the state is a fold of the entries, and a snapshot is a cache of it."""

from __future__ import annotations

from collections.abc import Sequence

from locus import Agent
from locus.core.journal import END
from locus.journal import JournalStore
from locus_testkit.contracts._runs import Case, Talk, World, crash_each_write
from locus_testkit.contracts._samples import (
    Story,
    bodies_of,
    fold_claim,
    last_transition,
    state_of,
    steps,
    steps_since,
    story,
    texts,
    without_delta,
)
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell, write
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["FoldLaws"]


class FoldLaws(StoreContract):
    """What was accepted comes back: equal, once, in order, whatever was cached on the way."""

    async def test_law_1_state_is_the_fold_of_the_entries(self, store: JournalStore) -> None:
        """After each transition, the next claim has exactly the state and the place that were committed."""
        told = story()
        for at, (body, state) in enumerate(zip(told.bodies, told.states, strict=True)):
            claim = await store.claim("t", "w")
            await tell(store, claim, Story((state,), (body,)), after=at)
            await store.release(claim)
            again = await claim_and_release(store, "t")
            assert fold_claim(again) == state
            assert again.head == at + 1
            found = last_transition(again)
            assert (found if store.keeps_history else without_delta(found)) == (
                body if store.keeps_history else without_delta(body)
            )

    async def test_law_1_every_kind_of_entry_comes_back_equal(self, store: JournalStore) -> None:
        """Steps, questions, answers and awkward data survive storage, types included."""
        told, others = story(size=3), steps()
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await add(store, claim, *others)
        await store.release(claim)
        again = await claim_and_release(store, "t")
        assert fold_claim(again) == told.end
        assert steps_since(again) == list(others)
        if store.keeps_history:
            assert bodies_of(await store.read("t")) == [*told.bodies, *others]

    async def test_law_1_steps_before_a_transition_are_done_with(self, store: JournalStore) -> None:
        """What a node recorded on its way does not count as a step of the node that follows."""
        told = story(size=2)
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(2, "before"))
        await tell(store, claim, told, after=2)
        await add(store, claim, *texts(2, "after"))
        await store.release(claim)
        again = await claim_and_release(store, "t")
        assert steps_since(again) == list(texts(2, "after"))
        assert fold_claim(again) == told.end
        assert again.head == 6

    @needs("history")
    async def test_law_1_entries_are_numbered_from_one(self, store: JournalStore) -> None:
        """Numbers have no gap, over several appends and claims, and the head is the last of them."""
        await write(store, "t", *texts(2))
        await write(store, "t", *texts(1))
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(3))
        assert [entry.n for entry in await store.read("t")] == [1, 2, 3, 4, 5, 6]
        assert claim.head == 3
        assert [entry.n for entry in claim.entries] == [1, 2, 3]

    @needs("history")
    async def test_law_1_snapshot_is_a_cache_of_the_fold(self, store: JournalStore) -> None:
        """Wherever a snapshot is taken, state and last transition are the same, and the rest follows it."""
        told = story(size=5)
        for at in range(1, 6):
            thread = f"thread-{at}"
            claim = await store.claim(thread, "w")
            await add(store, claim, *told.bodies)
            await store.snapshot(claim, at, told.states[at - 1], told.bodies[at - 1])
            await store.release(claim)
            again = await claim_and_release(store, thread)
            assert fold_claim(again) == told.end
            if again.snapshot is not None:
                assert [e.n for e in again.entries] == list(range(again.snapshot.at + 1, again.head + 1))
                assert again.snapshot.last == told.bodies[again.snapshot.at - 1]

    @needs("history")
    async def test_law_1_older_snapshot_changes_nothing(self, store: JournalStore) -> None:
        """Snapshots that come out of order do not lose what happened between them."""
        told = story(size=5)
        claim = await store.claim("t", "w")
        await add(store, claim, *told.bodies)
        await store.snapshot(claim, 4, told.states[3], told.bodies[3])
        await store.snapshot(claim, 2, told.states[1], told.bodies[1])
        await store.release(claim)
        assert fold_claim(await claim_and_release(store, "t")) == told.end

    @needs("history")
    async def test_law_1_long_journal_comes_back_in_order(self, store: JournalStore) -> None:
        """A thousand entries are all there, once each, in the order in which they were accepted."""
        wanted = [body for i in range(20) for body in texts(50, f"run-{i}")]
        claim = await store.claim("t", "w")
        for at in range(0, 1_000, 50):
            await add(store, claim, *wanted[at : at + 50])
        await store.release(claim)
        assert bodies_of(await store.read("t")) == wanted
        assert bodies_of((await claim_and_release(store, "t")).entries) == wanted

    async def test_law_1_run_ends_in_the_fold_of_its_journal(self, open_store: OpenStore) -> None:
        """The state of a finished run is what its store returns, and what the next turn starts from."""
        place = await self.place(open_store)
        talk, world = Talk([call("act", n=1), call("act", n=2)], "done"), World()

        def agent(store: JournalStore) -> Agent[object, object]:
            return Agent(talk.model, tools=[world.effect("act", "once")], checkpointer=store)

        here, there = place.stores
        for store in (here, there):
            result = await agent(store).run("Do it.", thread_id="t")
            held = await store.peek("t")
            assert held is not None
            assert fold_claim(held) == result.state
            found = last_transition(held)
            assert found is not None
            assert (found.next_node, found.why) == (END, result.stop_reason)
            if self.features.history:
                assert state_of(await store.read("t")) == result.state
        assert len(result.state.messages) == 7, "five of the first turn, and two of the second"

    @needs("history")
    async def test_law_1_run_continues_from_any_snapshot(self, open_store: OpenStore) -> None:
        """A run whose loop snapshots after every entry resumes to what it would be without any."""
        place = await self.place(open_store)

        def case(every: int, thread_id: str) -> Case:
            talk, world = Talk(call("act", n=1), "done"), World()
            tools = [world.effect("act", "pure")]
            return Case(place, thread_id, lambda store: Agent(talk.model, tools=tools, checkpointer=store), every)

        for every in (1, 3):
            cases = await crash_each_write(lambda name, every=every: case(every, f"{every}-{name}"))  # type: ignore[misc]
            assert len(cases) >= 6
            for each in cases:
                entries: Sequence[object] = await place.stores[0].read(each.thread_id)
                assert await each.state() == state_of(await place.stores[1].read(each.thread_id)), (
                    each.dead_process.crash
                )
                assert len(entries) >= 8
