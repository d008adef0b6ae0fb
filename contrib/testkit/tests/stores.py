"""A store that keeps every law and has every feature, and the contract over such stores, called by hand."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

import anyio.lowlevel
from attrs import evolve

from locus.core.journal import BLANK, Body, Entry, fold
from locus.core.state import AgentState
from locus.journal import Appended, Claim, JournalStore, MemoryStore
from locus.journal.store import Posted, ThreadInfo, ThreadQuery
from locus_testkit import FakeClock, JournalStoreContract, StoreFeatures

__all__ = ["LAWS", "Begun", "Complete", "Opened", "at_once", "law_of", "share"]

T = TypeVar("T")

#: Not a law of stores: `test_contract_base.py` has it.
_OF_THE_CONTRACT = "test_every_promise_is_kept_or_excused"
#: The tests of the contract.
LAWS = sorted(n for n in dir(JournalStoreContract) if n.startswith("test_") and n != _OF_THE_CONTRACT)


def law_of(test: str) -> int | None:
    """The number of the law that a test proves; None for what is no law of runs."""
    found = re.match(r"test_law_(\d+)_", test)
    return None if found is None else int(found.group(1))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What comes of something that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")


class Begun:
    """An append that was begun, and what came of it."""

    def __init__(self, got: Appended) -> None:
        self.got = got

    async def wait(self) -> Appended:
        await anyio.lowlevel.checkpoint()
        return self.got


class Complete(MemoryStore):
    """Journals in memory, with leases that run out when a test says so."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        super().__init__(clock=self.clock)
        self.lapsed: set[str] = set()

    def holder(self, thread_id: str) -> str:
        """The token of the worker that holds a thread, or ``""``."""
        thread = self._threads.get(thread_id)
        return "" if thread is None or thread.held is None else thread.held.token

    async def expire(self, claim: Claim) -> None:
        """Let a lease run out."""
        self.lapsed.add(claim.token)

    async def claim(self, thread_id: str, worker: str) -> Claim:
        is_abandoned = self.holder(thread_id) in self.lapsed
        if is_abandoned:
            held, self._threads[thread_id].held = self._threads[thread_id].held, None
            assert held is not None
            held.watch.lose()
        return evolve(await super().claim(thread_id, worker), is_abandoned=is_abandoned)

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        lapsed = [(t, t.held) for t in self._threads.values() if t.held is not None and t.held.token in self.lapsed]
        for thread, _ in lapsed:
            thread.held = None
        try:
            return await super().threads(query)
        finally:
            for thread, claim in lapsed:
                thread.held = claim

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        return (await self.read(thread_id, after))[:count]

    async def head(self, thread_id: str) -> int:
        return len(await self.read(thread_id))

    async def state_at(self, thread_id: str, n: int) -> AgentState | None:
        entries = await self.read(thread_id)
        return fold(BLANK, [entry.body for entry in entries[:n]]) if 0 < n <= len(entries) else None

    async def renew(self, claim: Claim) -> bool:
        alive = await super().renew(claim)
        if alive:
            self.lapsed.discard(claim.token)
        return alive

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        if isinstance(after, Begun) and after.got is not Appended.OK:
            return Begun(Appended.FENCED)
        return Begun(at_once(self.add_entries(claim, bodies)))

    def add_entries(self, claim: Claim, bodies: Sequence[Body]) -> Coroutine[Any, Any, Appended]:
        """What a post does: an append, or, where that waits for something, the one of memory."""
        return self.append(claim, bodies)

    async def next_ready(self, now: datetime) -> str | None:
        free = [i for i, t in self._threads.items() if t.held is None or t.held.token in self.lapsed]
        due = {i: t for i in free if (t := self._threads[i].not_before) is not None and t <= now}
        return min(due, key=lambda i: due[i], default=None)


class Opened(JournalStoreContract):
    """The contract with every feature, over one kind of store.

    Args:
        kind: makes a handle.
    """

    patience = 0.1
    features = StoreFeatures(
        persistent=True, shared=True, leases=True, post=True, queue=True, signals=True, pages=True, states=True
    )

    def __init__(self, kind: Callable[[], JournalStore]) -> None:
        self.kind = kind

    async def expire(self, store: JournalStore, claim: Claim) -> None:
        assert isinstance(store, Complete)
        await store.expire(claim)

    async def pass_time(self, store: JournalStore, seconds: float) -> None:
        assert isinstance(store, Complete)
        store.clock.advance(seconds)

    async def obey(self, test: str) -> None:
        """Run one test of the contract."""

        async def open_store() -> JournalStore:
            return self.kind()

        method = getattr(self, test)
        if "open_store" in inspect.signature(method).parameters:
            await method(open_store)
        else:
            await method(await open_store())


def share(kind: Callable[[], JournalStore]) -> Callable[[], JournalStore]:
    """Several handles on one store."""
    one: list[JournalStore] = []

    def handle() -> JournalStore:
        if not one:
            one.append(kind())
        return one[0]

    return handle
