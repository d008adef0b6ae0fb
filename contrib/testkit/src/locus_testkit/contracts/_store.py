"""What the laws of a journal store have in common: features, handles, and the words they are written in."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import ClassVar, TypeAlias

import anyio
import pytest
from attrs import frozen

from locus.core.journal import Body
from locus.journal import Appended, Claim, JournalStore
from locus_testkit.contracts._runs import Place
from locus_testkit.contracts._samples import Story
from locus_testkit.contracts.base import Contract

__all__ = [
    "OpenStore",
    "StoreContract",
    "StoreFeatures",
    "add",
    "claim_and_release",
    "tell",
    "write",
]

#: Opens one more handle on the place of this test.
OpenStore: TypeAlias = Callable[[], Awaitable[JournalStore]]


@frozen(kw_only=True)
class StoreFeatures:
    """What a store offers beyond the laws.

    Args:
        history: it keeps every entry (`JournalStore.keeps_history`), not the newest state only.
        delete: it can forget a thread.
        persistent: another handle on the same place finds what the first one wrote.
        shared: handles on the same place, as several processes have them, fence each other.
        lists: another handle also finds which threads there are, and when they want to go on.
        leases: a worker that says nothing for a while loses its thread to the next claim; needs
            `JournalStoreContract.expire`.
        post: it can begin an append and return (`PostingStore`).
        queries: it records how each thread is and what it is about, and lists by that (`ThreadQuery`).
        forks: it can fork a thread; needs ``history``. A store that cannot says so with a `JournalError`.
        queue: it hands threads to workers (`QueueStore`).
        signals: it brings signals to runs in other processes; needs ``queue``.
        pages: it reads a part of a thread at the cost of the part (``read_page``), and where it ends (``head``).
        states: it gives the state after an entry from its snapshots (``state_at``); needs ``history``.
    """

    history: bool = True
    delete: bool = True
    persistent: bool = False
    shared: bool = False
    lists: bool = True
    leases: bool = False
    queries: bool = True
    forks: bool = True
    post: bool = False
    queue: bool = False
    signals: bool = False
    pages: bool = False
    states: bool = False


@pytest.mark.anyio
class StoreContract(Contract):
    """The fixtures of the laws."""

    features: ClassVar[StoreFeatures] = StoreFeatures()
    #: Seconds within which a store that finds something out by itself must have said so.
    patience: ClassVar[float] = 60.0

    def make_store(self, folder: Path) -> JournalStore | Awaitable[JournalStore]:
        """A handle on the store of this test; may be a coroutine function.

        Args:
            folder: an empty directory; the same for all handles of one test.
        """
        raise NotImplementedError(f"{type(self).__name__} needs make_store(self, folder), which gives a journal store")

    async def close_store(self, store: JournalStore) -> None:
        """Close a handle: awaits its ``aclose()`` where it has one."""
        close = getattr(store, "aclose", None)
        if close is not None:
            await close()

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        """Let the lease of a claim run out, as if its worker had said nothing for long enough (feature ``leases``).

        Args:
            store: the handle that made the claim; where handles fence each other, another one asks then.
            claim: what it is about.
        """
        raise NotImplementedError(
            f"{type(self).__name__} declares the feature leases and needs expire(self, store, claim)"
        )

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        """Let time pass for the store (feature ``queue``): sleeps. A store with a clock of its own advances that.

        A store that goes by the clock of a machine should be made with a lease of a second or two.

        Args:
            store: one of the handles of the test.
            seconds: how long.
        """
        await anyio.sleep(seconds)

    async def abandon(self, store: JournalStore, claim: Claim) -> None:
        """Free the thread of a worker that died: its lease runs out, or, without leases, it is released for it."""
        if self.features.leases:
            await self.expire(store, claim)
        else:
            await store.release(claim)

    async def place(self, open_store: OpenStore) -> Place:
        """Where the runs of one test are kept: two handles, if the second one finds what the first wrote."""
        first = await open_store()
        return Place(stores=(first, await open_store() if self.features.persistent else first), abandon=self.abandon)

    async def handles(self, open_store: OpenStore) -> tuple[JournalStore, JournalStore]:
        """Where two workers of one test are: each at a handle of its own, if handles fence each other."""
        first = await open_store()
        return first, await open_store() if self.features.shared else first

    @pytest.fixture
    async def open_store(self, tmp_path: Path) -> AsyncIterator[OpenStore]:
        """Opens handles on this test's place; all are closed at its end."""
        opened: list[JournalStore] = []

        async def one_more() -> JournalStore:
            made = self.make_store(tmp_path)
            store = await made if inspect.isawaitable(made) else made
            opened.append(store)
            return store

        yield one_more
        for store in opened:
            await self.close_store(store)

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> JournalStore:
        """One handle."""
        return await open_store()


async def add(store: JournalStore, claim: Claim, *bodies: Body) -> None:
    """Append, and insist that it was accepted."""
    assert await store.append(claim, bodies) is Appended.OK


async def tell(store: JournalStore, claim: Claim, told: Story, *, after: int = 0) -> None:
    """Commit the transitions of a story as the loop does: as entries, or, without history, as newest states.

    Args:
        store: where.
        claim: the right to it.
        told: what happened.
        after: how many entries the thread has.
    """
    if store.keeps_history:
        await add(store, claim, *told.bodies)
        return
    for at, (body, state) in enumerate(zip(told.bodies, told.states, strict=True), after + 1):
        assert await store.snapshot(claim, at, state, body) is True


async def write(store: JournalStore, thread_id: str, *bodies: Body) -> None:
    """One worker's whole visit."""
    claim = await store.claim(thread_id, "w")
    await add(store, claim, *bodies)
    await store.release(claim)


async def claim_and_release(store: JournalStore, thread_id: str) -> Claim:
    """What a claim of a free thread gives; the thread is free again."""
    claim = await store.claim(thread_id, "next")
    await store.release(claim)
    return claim
