"""Law 1 for a store with the features ``pages`` and ``states``: a part of a thread, and a state in its middle."""

from __future__ import annotations

from typing import Any, Protocol, cast

from locus.core.journal import BLANK, Entry, fold
from locus.core.state import AgentState
from locus.journal import JournalStore
from locus_testkit.contracts._samples import story, texts
from locus_testkit.contracts._store import StoreContract, add
from locus_testkit.contracts.features import needs

__all__ = ["PageLaws"]


class _Paged(Protocol):
    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]: ...

    async def head(self, thread_id: str) -> int: ...


class _WithStates(Protocol):
    async def state_at(self, thread_id: str, n: int) -> AgentState | None: ...


def _as_paged(store: JournalStore) -> _Paged:
    for name in ("read_page", "head"):
        assert callable(getattr(store, name, None)), f"{type(store).__name__} declares pages and has no {name}()"
    return cast(_Paged, store)


async def _write(store: JournalStore, thread_id: str, *batches: int) -> None:
    """Append so many entries at a time, with a claim for each: what claims write lies between them."""
    for number, size in enumerate(batches):
        claim = await store.claim(thread_id, "w")
        await add(store, claim, *texts(size, f"run-{number}"))
        await store.release(claim)


class PageLaws(StoreContract):
    """A long thread is read a part at a time."""

    @needs("pages")
    async def test_law_1_pages_are_the_thread(self, store: JournalStore) -> None:
        """Of any size, in any order, also those of forks; numbers and parents are those of the whole thread."""
        await _write(store, "t", 1, 4, 1, 1, 3, 2)
        await _write(store, "other", 2, 2)
        names = ["t", "other"]
        if self.features.forks:
            for at in (1, 3, 5, 12):
                await store.fork("t", at, f"fork-{at}", texts(1, "more"))
            await store.fork("fork-5", 3, "fork of a fork")
            names += [*(f"fork-{at}" for at in (1, 3, 5, 12)), "fork of a fork"]
        for name in names:
            whole = await store.read(name)
            assert await _as_paged(store).head(name) == len(whole)
            for count in (1, 2, 3, 7, 100):
                assert await self._read_pages(store, name, count) == list(whole)
            for after in (5, 0, 4, len(whole), 1):
                assert await _as_paged(store).read_page(name, after, 3) == whole[after : after + 3]

    @needs("pages")
    async def test_law_1_a_thread_that_is_not_there_has_no_page(self, store: JournalStore) -> None:
        """Neither one that was never written to, nor one that was forgotten; one that was made again has its own."""
        paged = _as_paged(store)
        assert (await paged.head("t"), await paged.read_page("t", 0, 5)) == (0, ())
        if not self.features.delete:
            return
        await _write(store, "t", 2, 3)
        assert len(await paged.read_page("t", 0, 2)) == 2
        await store.delete("t")
        assert (await paged.head("t"), await paged.read_page("t", 2, 5)) == (0, ())
        await _write(store, "t", 1, 2)
        assert (await paged.head("t"), await paged.read_page("t", 2, 5)) == (3, (await store.read("t"))[2:])

    @needs("states", "history")
    async def test_law_1_a_state_is_that_of_its_entry(self, store: JournalStore) -> None:
        """Whichever snapshots lie before and behind it, in a thread and in its fork; steps change nothing."""
        assert callable(getattr(store, "state_at", None)), (
            f"{type(store).__name__} declares states and has no state_at()"
        )
        asked = cast(_WithStates, store)
        told = story(size=9)
        claim = await store.claim("t", "w")
        for at, (body, state) in enumerate(zip(told.bodies, told.states, strict=True), 1):
            await add(store, claim, *texts(at % 3, f"step-{at}"), body)
            if at in (3, 6):
                await store.snapshot(claim, claim.head + sum(each % 3 + 1 for each in range(1, at + 1)), state, body)
        await store.release(claim)
        names = ["t"]
        if self.features.forks:
            head = len(await store.read("t"))
            for at in (head, head // 2):
                await store.fork("t", at, f"fork-{at}", texts(1, "more"))
                names.append(f"fork-{at}")
        for name in names:
            entries = await store.read(name)
            for n in range(1, len(entries) + 1):
                assert await asked.state_at(name, n) == fold(BLANK, [entry.body for entry in entries[:n]])
            assert await asked.state_at(name, len(entries) + 1) is None
            assert await asked.state_at(name, 0) is None
        assert await asked.state_at("nowhere", 1) is None

    @staticmethod
    async def _read_pages(store: JournalStore, thread_id: str, count: int) -> list[Any]:
        found: list[Any] = []
        while page := await _as_paged(store).read_page(thread_id, len(found), count):
            assert len(page) <= count
            found += page
        return found
