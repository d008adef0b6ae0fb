"""Who may write: of two workers that believe they own a thread, only the newer one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from locus.core.errors import ThreadBusy
from locus.memory.store import Appended, Claim, JournalStore
from locus_testkit.contracts._samples import NOON, folded, steps_since, story, texts
from locus_testkit.contracts._store import StoreContract, add, reclaimed, tell

__all__ = ["ClaimLaws"]


class ClaimLaws(StoreContract):
    """A claim moves the head, and that fences whoever came before; times say who is wanted next."""

    async def test_tokens_are_never_used_twice(self, store: JournalStore) -> None:
        """The token of a claim names one writer for ever, on all threads."""
        tokens = [(await reclaimed(store, thread)).token for thread in ("a", "b", "a", "b", "a")]
        assert len(set(tokens)) == 5
        assert all(tokens)

    async def test_held_thread_is_busy_and_names_its_holder(self, store: JournalStore) -> None:
        """A second claim is refused with the worker that holds the thread, and since when."""
        await store.claim("t", "the first worker")
        with pytest.raises(ThreadBusy) as caught:
            await store.claim("t", "another")
        assert (caught.value.thread_id, caught.value.holder) == ("t", "the first worker")
        if caught.value.since:
            assert datetime.fromisoformat(caught.value.since).tzinfo is not None

    async def test_refused_claim_leaves_the_holder_alone(self, store: JournalStore) -> None:
        """Somebody who asks for a busy thread does not fence its holder."""
        claim = await store.claim("t", "w")
        with pytest.raises(ThreadBusy):
            await store.claim("t", "another")
        await add(store, claim, *texts(1))
        assert await store.renew(claim)

    async def test_one_of_many_claims_wins(self, store: JournalStore) -> None:
        """Workers that ask at the same time: one gets the thread, the others hear who has it."""
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

    async def test_released_thread_can_be_claimed(self, store: JournalStore) -> None:
        """Giving a thread back makes it free; giving it back twice does no harm."""
        claim = await store.claim("t", "w")
        await store.release(claim)
        await store.release(claim)
        assert (await store.claim("t", "another")).token != claim.token

    async def test_released_claim_is_over(self, store: JournalStore) -> None:
        """Whoever gave the thread back cannot write to it, also while nobody else has taken it.

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
        again = await reclaimed(store, "t")
        assert folded(again) == told.end
        assert steps_since(again) == []

    async def test_stale_claim_cannot_append(self, store: JournalStore) -> None:
        """A claim fences every older one: its append is refused and nothing is stored."""
        stale = await store.claim("t", "w")
        await add(store, stale, *texts(1))
        await store.release(stale)
        fresh = await store.claim("t", "another")
        assert await store.append(stale, texts(2)) is Appended.FENCED
        await add(store, fresh, *texts(1))
        assert len(await store.read("t")) == 2

    async def test_claim_fences_even_when_it_wrote_nothing(self, store: JournalStore) -> None:
        """The claim itself is the write that moves the head: an older worker is out before any new entry."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        await store.claim("t", "another")
        assert await store.append(stale, texts(1)) is Appended.FENCED
        assert await store.read("t") == ()

    async def test_stale_claim_cannot_snapshot(self, store: JournalStore) -> None:
        """A fenced worker's idea of the state reaches nobody."""
        told = story()
        stale = await store.claim("t", "w")
        await tell(store, stale, told)
        await store.release(stale)
        fresh = await store.claim("t", "another")
        forged = story("forged")
        accepted = await store.snapshot(stale, len(told.bodies), forged.end, forged.bodies[-1])
        assert store.keeps_history or accepted is False, "this is how a store without history refuses a transition"
        await store.release(fresh)
        assert folded(await reclaimed(store, "t")) == told.end

    async def test_live_claim_is_renewed_and_a_stale_one_is_not(self, store: JournalStore) -> None:
        """Renewing says whether the worker still owns the thread."""
        stale = await store.claim("t", "w")
        assert await store.renew(stale) is True
        await store.release(stale)
        fresh = await store.claim("t", "another")
        assert await store.renew(stale) is False
        assert await store.renew(fresh) is True

    async def test_stale_release_leaves_the_thread_with_its_holder(self, store: JournalStore) -> None:
        """A worker that lost its claim cannot give away what is another's."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        fresh = await store.claim("t", "the holder")
        await store.release(stale, NOON)
        with pytest.raises(ThreadBusy, match="the holder"):
            await store.claim("t", "third")
        await add(store, fresh, *texts(1))

    async def test_thread_is_ready_when_its_time_has_come(self, store: JournalStore) -> None:
        """A thread that was released with a time is offered from that time on, and not before."""
        await store.release(await store.claim("t", "w"), NOON)
        assert await store.next_ready(NOON - timedelta(seconds=1)) is None
        assert await store.next_ready(NOON) == "t"
        assert await store.next_ready(NOON + timedelta(days=1)) == "t"

    async def test_ready_compares_moments_not_their_spelling(self, store: JournalStore) -> None:
        """Time zones and fractions of a second do not change which moment is earlier."""
        east = datetime.fromisoformat("2030-01-01T14:00:00.500000+02:00")
        await store.release(await store.claim("t", "w"), east)
        assert await store.next_ready(NOON) is None
        assert await store.next_ready(NOON + timedelta(seconds=1)) == "t"

    async def test_thread_without_a_time_is_never_ready(self, store: JournalStore) -> None:
        """A thread that waits to be resumed is not offered; giving it back without a time takes it out."""
        await store.release(await store.claim("t", "w"))
        assert await store.next_ready(datetime.max.replace(tzinfo=UTC)) is None
        await store.release(await store.claim("t", "w"), NOON)
        await store.release(await store.claim("t", "w"))
        assert await store.next_ready(datetime.max.replace(tzinfo=UTC)) is None

    async def test_held_thread_is_not_ready(self, store: JournalStore) -> None:
        """What a worker holds is offered to nobody else, however late it is."""
        for thread in ("a", "b"):
            await store.release(await store.claim(thread, "w"), NOON)
        await store.claim("a", "w")
        assert await store.next_ready(NOON) == "b"
        await store.claim("b", "w")
        assert await store.next_ready(NOON) is None
