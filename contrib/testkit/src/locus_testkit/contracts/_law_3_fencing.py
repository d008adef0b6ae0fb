"""Law 3: one writer, by fencing and not by clocks.

Of two workers that believe they own a thread only the newer one can write. Leases decide who tries, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import anyio
import pytest

from locus import Agent
from locus.core.errors import Fenced, ThreadBusy
from locus.core.journal import END, Transition
from locus.journal import Appended, Claim, JournalStore
from locus.tools import tool
from locus_testkit.contracts._runs import Context, Process, Talk, results_by_tool
from locus_testkit.contracts._samples import NOON, bodies_of, fold_claim, state_of, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["FencingLaws"]


class FencingLaws(StoreContract):
    """A claim moves the head, and that fences the claim before; a release ends it."""

    async def test_law_3_tokens_are_never_used_twice(self, store: JournalStore) -> None:
        """The token of a claim names one writer for ever, on all threads."""
        tokens = [(await claim_and_release(store, thread)).token for thread in ("a", "b", "a", "b", "a")]
        assert len(set(tokens)) == 5
        assert all(tokens)

    async def test_law_3_held_thread_is_busy_and_names_its_holder(self, store: JournalStore) -> None:
        """A second claim is refused with the worker that holds the thread, and since when."""
        await store.claim("t", "the first worker")
        with pytest.raises(ThreadBusy) as caught:
            await store.claim("t", "another")
        assert (caught.value.thread_id, caught.value.holder) == ("t", "the first worker")
        if caught.value.since:
            assert datetime.fromisoformat(caught.value.since).tzinfo is not None

    async def test_law_3_refused_claim_leaves_the_holder_alone(self, store: JournalStore) -> None:
        """A refused claim does not fence the holder."""
        claim = await store.claim("t", "w")
        with pytest.raises(ThreadBusy):
            await store.claim("t", "another")
        await add(store, claim, *texts(1))
        assert await store.renew(claim)

    async def test_law_3_one_of_many_claims_wins(self, store: JournalStore) -> None:
        """Workers that ask at the same time: one gets the thread, the others an error that names the holder."""
        won: list[Claim] = []
        lost: list[ThreadBusy] = []

        async def attempt(worker: str) -> None:
            try:
                won.append(await store.claim("t", worker))
            except ThreadBusy as busy:
                lost.append(busy)

        async with anyio.create_task_group() as group:
            for i in range(8):
                group.start_soon(attempt, f"worker-{i}")
        assert (len(won), len(lost)) == (1, 7)
        assert len({busy.holder for busy in lost}) == 1
        await add(store, won[0], *texts(1))

    async def test_law_3_released_thread_can_be_claimed(self, store: JournalStore) -> None:
        """Giving a thread back makes it free; giving it back twice does no harm."""
        claim = await store.claim("t", "w")
        await store.release(claim)
        await store.release(claim)
        assert (await store.claim("t", "another")).token != claim.token

    async def test_law_3_released_claim_is_over(self, store: JournalStore) -> None:
        """A released claim cannot write, even while the thread is free.

        A free thread does not change: it may be deleted, forked and listed without a holder, and its time to go on
        was decided with the release.
        """
        told = story(size=1)
        over = await store.claim("t", "w")
        await tell(store, over, told)
        await store.release(over)
        assert await store.append(over, texts(1)) is Appended.FENCED
        assert await store.renew(over) is False
        forged = story("forged", size=1)
        accepted = await store.snapshot(over, 1, forged.end, forged.bodies[-1])
        assert store.keeps_history or accepted is False, "this is how a store without history refuses a transition"
        again = await claim_and_release(store, "t")
        assert fold_claim(again) == told.end
        assert steps_since(again) == []

    async def test_law_3_stale_claim_cannot_append(self, store: JournalStore) -> None:
        """A claim fences every older one: its append is refused and nothing is stored."""
        stale = await store.claim("t", "w")
        await add(store, stale, *texts(1))
        await store.release(stale)
        fresh = await store.claim("t", "another")
        assert await store.append(stale, texts(2)) is Appended.FENCED
        await add(store, fresh, *texts(1))
        assert len(await store.read("t")) == 2

    async def test_law_3_claim_fences_even_when_it_wrote_nothing(self, store: JournalStore) -> None:
        """The claim itself is the write that moves the head: an older worker is out before any new entry."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        await store.claim("t", "another")
        assert await store.append(stale, texts(1)) is Appended.FENCED
        assert await store.read("t") == ()

    async def test_law_3_stale_claim_cannot_snapshot(self, store: JournalStore) -> None:
        """A fenced worker's state is never stored."""
        told = story()
        stale = await store.claim("t", "w")
        await tell(store, stale, told)
        await store.release(stale)
        fresh = await store.claim("t", "another")
        forged = story("forged")
        accepted = await store.snapshot(stale, len(told.bodies), forged.end, forged.bodies[-1])
        assert store.keeps_history or accepted is False, "this is how a store without history refuses a transition"
        await store.release(fresh)
        assert fold_claim(await claim_and_release(store, "t")) == told.end

    async def test_law_3_live_claim_is_renewed_and_a_stale_one_is_not(self, store: JournalStore) -> None:
        """Renewing says whether the worker still owns the thread."""
        stale = await store.claim("t", "w")
        assert await store.renew(stale) is True
        await store.release(stale)
        fresh = await store.claim("t", "another")
        assert await store.renew(stale) is False
        assert await store.renew(fresh) is True

    async def test_law_3_stale_release_leaves_the_thread_with_its_holder(self, store: JournalStore) -> None:
        """A worker that lost its claim cannot give away what is another's."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        fresh = await store.claim("t", "the holder")
        await store.release(stale, NOON)
        with pytest.raises(ThreadBusy, match="the holder"):
            await store.claim("t", "third")
        await add(store, fresh, *texts(1))

    @needs("history")
    async def test_law_3_entries_name_their_writer(self, store: JournalStore) -> None:
        """A writer that lost an answer can tell its own entries by their tokens."""
        first = await store.claim("t", "w")
        await add(store, first, *texts(2))
        await store.release(first)
        second = await store.claim("t", "w")
        await add(store, second, *texts(1))
        entries = await store.read("t")
        assert [entry.writer for entry in entries] == [first.token, first.token, second.token]

    @needs("history")
    async def test_law_3_entries_name_their_parent(self, store: JournalStore) -> None:
        """An entry carries the id of the one before it, over several appends and claims."""
        for _ in range(2):
            claim = await store.claim("t", "w")
            await add(store, claim, *texts(2))
            await add(store, claim, *texts(1))
            await store.release(claim)
        entries = await store.read("t")
        assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]
        assert (await claim_and_release(store, "t")).entries == entries

    @needs("history")
    async def test_law_3_entries_after_a_snapshot_name_their_parents(self, store: JournalStore) -> None:
        """The chain of parents continues after a snapshot, and old entries stay readable."""
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
        again = await claim_and_release(store, "t")
        assert again.entries == entries[len(entries) - len(again.entries) :]

    @needs("shared")
    async def test_law_3_handles_exclude_each_other(self, open_store: OpenStore) -> None:
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

    @needs("leases")
    async def test_law_3_silent_worker_loses_its_thread_to_the_next(self, open_store: OpenStore) -> None:
        """A thread whose holder died can be claimed, and that claim fences the holder."""
        here, there = await self.handles(open_store)
        dead = await here.claim("t", "dead")
        await add(here, dead, *texts(1))
        await self.expire(here, dead)
        fresh = await there.claim("t", "another")
        assert bodies_of(fresh.entries) == list(texts(1))
        assert await here.append(dead, texts(2)) is Appended.FENCED
        assert await here.renew(dead) is False
        await add(there, fresh, *texts(1))
        assert len(await here.read("t")) == 2

    @needs("leases")
    async def test_law_3_lease_that_ran_out_fences_no_worker(self, store: JournalStore) -> None:
        """A worker that slept past its lease may continue unless its thread was taken."""
        claim = await store.claim("t", "w")
        await self.expire(store, claim)
        await add(store, claim, *texts(1))
        assert await store.renew(claim) is True

    @needs("leases")
    async def test_law_3_renewed_lease_keeps_others_out(self, open_store: OpenStore) -> None:
        """A worker that renews its lease in time keeps its thread."""
        here, there = await self.handles(open_store)
        claim = await here.claim("t", "w")
        await self.expire(here, claim)
        assert await here.renew(claim) is True
        with pytest.raises(ThreadBusy):
            await there.claim("t", "another")

    async def test_law_3_run_that_lost_its_thread_is_stopped(self, open_store: OpenStore) -> None:
        """A worker comes back after another one finished its run: nothing of what it still does is kept."""
        place = await self.place(open_store)
        here, there = place.stores
        first = Process(here)
        talk, entered = Talk(call("act", n=1), "done"), Counter[str]()

        @tool(effect="pure")
        async def act(n: int, ctx: Context) -> str:
            """Take so long that another worker takes over."""
            entered[ctx.idempotency_key] += 1
            if entered[ctx.idempotency_key] > 1:
                return "in time"
            await self.abandon(here, first.claims[-1])
            await agent(there).resume("t")
            return "too late"

        def agent(store: JournalStore) -> Agent[object, object]:
            return Agent(talk.model, tools=[act], checkpointer=store)

        with pytest.raises(Fenced):
            await agent(first).run("Do it.", thread_id="t")
        held = await there.peek("t")
        assert held is not None
        assert results_by_tool(fold_claim(held))["act"] == "in time"
        assert list(entered.values()) == [2]
        if self.features.history:
            entries = await there.read("t")
            assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]
            assert [e.body.next_node for e in entries if isinstance(e.body, Transition)].count(END) == 1
            assert state_of(entries) == fold_claim(held)
