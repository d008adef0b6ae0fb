"""Law 1 for a store with the feature ``pages``: pages of a thread are the thread, wherever they begin and end."""

from __future__ import annotations

from typing import Any, Protocol, cast

from locus.core.journal import Entry
from locus.journal import JournalStore
from locus_testkit.contracts._samples import texts
from locus_testkit.contracts._store import StoreContract, add
from locus_testkit.contracts.features import needs

__all__ = ["PageLaws"]


class _Paged(Protocol):
    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]: ...

    async def head(self, thread_id: str) -> int: ...


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

    @staticmethod
    async def _read_pages(store: JournalStore, thread_id: str, count: int) -> list[Any]:
        found: list[Any] = []
        while page := await _as_paged(store).read_page(thread_id, len(found), count):
            assert len(page) <= count
            found += page
        return found
