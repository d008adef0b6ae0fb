"""Forks: a new thread that shares the first entries of another, and goes its own way from there."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from locus.core.errors import JournalError
from locus.core.journal import Body
from locus.journal import Claim, JournalStore
from locus_testkit.contracts._samples import NOON, Story, bodies_of, fold_claim, state_of, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell
from locus_testkit.contracts.features import needs

__all__ = ["ForkLaws"]


class ForkLaws(StoreContract):
    """A fork has what was written before it; later entries stay in the thread they were written to."""

    async def test_thread_is_forked_or_that_is_refused(self, store: JournalStore) -> None:
        """A store that cannot do it says so, and makes no thread that is something else."""
        told = story(size=2)
        await _write(store, "t", told)
        if self.features.forks and self.features.history:
            await store.fork("t", 2, "fork")
            assert fold_claim(await claim_and_release(store, "fork")) == told.end
            return
        with pytest.raises(JournalError):
            await store.fork("t", 2, "fork")
        assert await store.peek("fork") is None

    @needs("forks", "history")
    async def test_fork_has_the_first_entries(self, store: JournalStore) -> None:
        """Wherever it is made, state, place, numbers and parents are those of its origin at that entry."""
        told = story(size=5)
        await _write(store, "t", told)
        entries = await store.read("t")
        for at in range(1, 6):
            await store.fork("t", at, f"fork-{at}")
            assert await store.read(f"fork-{at}") == entries[:at]
            again = await claim_and_release(store, f"fork-{at}")
            assert (again.thread_id, again.head, fold_claim(again)) == (f"fork-{at}", at, told.states[at - 1])
        assert await store.read("t") == entries

    @needs("forks", "history")
    async def test_fork_continues_with_what_it_is_given(self, store: JournalStore) -> None:
        """Bodies are written behind the shared entries, by a writer of their own, and into the fork alone."""
        told, other = story(size=3), story("other", start=story(size=3).states[1], size=2)
        await _write(store, "t", told)
        entries = await store.read("t")
        await store.fork("t", 2, "fork", [*other.bodies, *texts(1)])
        made = await store.read("fork")
        assert made[:2] == entries[:2]
        assert bodies_of(made[2:]) == [*other.bodies, *texts(1)]
        assert [entry.n for entry in made] == [1, 2, 3, 4, 5]
        assert [entry.parent for entry in made] == ["", *(entry.id for entry in made[:-1])]
        assert len({entry.writer for entry in made[2:]} - {entry.writer for entry in entries}) == 1
        assert fold_claim(await claim_and_release(store, "fork")) == other.end
        assert await store.read("t") == entries

    @needs("forks", "history")
    async def test_cancelled_fork_is_whole_or_not_there(self, store: JournalStore) -> None:
        """What it shares and what it is given are one write."""
        await _write(store, "t", story(size=3))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.fork("t", 2, "fork", texts(20))
        assert len(await store.read("fork")) in (0, 22)

    @needs("forks", "history")
    async def test_fork_goes_its_own_way(self, store: JournalStore) -> None:
        """Entries and claims of one do not touch the other, and each keeps its chain."""
        told, other = story(size=3), story("other", start=story(size=3).states[1], size=2)
        await _write(store, "t", told)
        await store.fork("t", 2, "fork")
        here, there = await store.claim("t", "w"), await store.claim("fork", "w")
        assert here.token != there.token
        await add(store, here, *texts(2, "here"))
        await tell(store, there, other, after=2)
        await add(store, here, *texts(1, "again"))
        await store.release(here)
        await store.release(there)
        assert bodies_of(await store.read("t")) == [*told.bodies, *texts(2, "here"), *texts(1, "again")]
        assert bodies_of(await store.read("fork")) == [*told.bodies[:2], *other.bodies]
        assert fold_claim(await claim_and_release(store, "fork")) == other.end
        assert steps_since(await claim_and_release(store, "t")) == [*texts(2, "here"), *texts(1, "again")]
        for thread in ("t", "fork"):
            entries = await store.read(thread)
            assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
            assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]

    @needs("forks", "history")
    async def test_fork_ignores_later_snapshots(self, store: JournalStore) -> None:
        """A fork never uses a snapshot from after the fork; it may use one from before."""
        told = story(size=5)
        for cached in range(1, 6):
            origin = f"snapshot-{cached}"
            claim = await store.claim(origin, "w")
            await add(store, claim, *told.bodies)
            await store.snapshot(claim, cached, told.states[cached - 1], told.bodies[cached - 1])
            await store.release(claim)
            for at in (2, 4):
                await store.fork(origin, at, f"{origin}-{at}")
                assert fold_claim(await claim_and_release(store, f"{origin}-{at}")) == told.states[at - 1]
                assert bodies_of(await store.read(f"{origin}-{at}")) == list(told.bodies[:at])

    @needs("forks", "history")
    async def test_fork_of_a_fork(self, store: JournalStore) -> None:
        """A fork is a thread like any other: its own entries are shared as those that it shares."""
        told = story(size=5)
        await _write(store, "t", told)
        await store.fork("t", 3, "one")
        await store.release(await _write_thread(store, "one", texts(2, "one")))
        await store.fork("one", 4, "two")
        await store.fork("one", 2, "three")
        await store.release(await _write_thread(store, "two", texts(1, "two")))
        await store.fork("two", 5, "four")
        wanted = [*told.bodies[:3], *texts(1, "one"), *texts(1, "two")]
        assert bodies_of(await store.read("two")) == wanted
        assert bodies_of(await store.read("four")) == wanted
        assert state_of(await store.read("three")) == told.states[1]

    @needs("forks", "history")
    async def test_thread_at_work_can_be_forked(self, store: JournalStore) -> None:
        """What was accepted does not change: forking it needs no claim, and does not disturb the holder."""
        told = story(size=3)
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await store.fork("t", 2, "fork")
        assert fold_claim(await claim_and_release(store, "fork")) == told.states[1]
        await add(store, claim, *texts(1))
        assert await store.renew(claim)

    @needs("forks", "history")
    async def test_fork_is_listed_and_waits_for_nothing(self, store: JournalStore) -> None:
        """A time or a holder of its origin is not its own."""
        claim = await store.claim("t", "the worker")
        await tell(store, claim, story(size=3))
        await store.fork("t", 3, "held")
        await store.release(claim, NOON)
        await store.fork("t", 2, "due")
        listed = {info.thread_id: (info.head, info.holder) for info in await store.threads()}
        assert listed == {"t": (3, None), "held": (3, None), "due": (2, None)}
        await store.claim("t", "w")
        assert await store.next_ready(NOON) is None

    @needs("forks", "history")
    async def test_fork_that_cannot_be_is_refused_and_leaves_no_trace(self, store: JournalStore) -> None:
        """An unknown thread, an entry that does not exist, a name that is taken: a typed error, and nothing changes."""
        await _write(store, "t", story(size=3))
        await _write(store, "taken", story("other", size=2))
        before = {thread: await store.read(thread) for thread in ("t", "taken")}
        for origin, at, into in (
            ("nobody", 1, "new"),
            ("t", 4, "new"),
            ("t", 0, "new"),
            ("t", -1, "new"),
            ("t", 2, "taken"),
            ("t", 2, "t"),
        ):
            with pytest.raises(JournalError):
                await store.fork(origin, at, into)
        assert {info.thread_id for info in await store.threads()} == {"t", "taken"}
        assert {thread: await store.read(thread) for thread in before} == before
        assert await store.read("new") == ()
        assert (await claim_and_release(store, "new")).head == 0

    @needs("forks", "history", "delete")
    async def test_fork_outlives_its_origin(self, store: JournalStore) -> None:
        """What is shared is forgotten with the last thread that has it."""
        told, large = story(size=3), texts(1, size=300_000)
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await add(store, claim, *large)
        await store.release(claim)
        await store.fork("t", 4, "one")
        await store.fork("t", 4, "two")
        assert await store.delete("one")
        assert bodies_of(await store.read("t")) == [*told.bodies, *large]
        assert await store.delete("t")
        assert bodies_of(await store.read("two")) == [*told.bodies, *large]
        assert (await store.read("t"), await store.read("one")) == ((), ())
        assert (await claim_and_release(store, "t")).head == 0

    @needs("forks", "history", "persistent")
    async def test_another_handle_finds_the_fork(self, open_store: OpenStore) -> None:
        """It is kept like the thread that it came from."""
        told, store = story(size=3), await open_store()
        await _write(store, "t", told)
        await store.fork("t", 2, "fork")
        again = await open_store()
        assert await again.read("fork") == (await store.read("t"))[:2]
        assert fold_claim(await claim_and_release(again, "fork")) == told.states[1]


async def _write(store: JournalStore, thread_id: str, told: Story) -> None:
    claim = await store.claim(thread_id, "w")
    await tell(store, claim, told)
    await store.release(claim)


async def _write_thread(store: JournalStore, thread_id: str, bodies: Sequence[Body]) -> Claim:
    claim = await store.claim(thread_id, "w")
    await add(store, claim, *bodies)
    return claim
