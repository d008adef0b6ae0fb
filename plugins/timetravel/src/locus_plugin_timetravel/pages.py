"""A thread read from its beginning, a page at a time: what is found early is found without reading the rest."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import evolve

from locus.core.errors import JournalError, NothingToResume
from locus.core.journal import BLANK, TOTALS, Transition

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from locus.core.journal import Body, Entry
    from locus.core.messages import Usage
    from locus.journal import Appended, Claim, JournalStore

__all__ = [
    "EntryBatch",
    "FormStore",
    "PagedStore",
    "Pages",
    "newest_first",
    "newest_transition",
    "newest_usage",
    "nth_transition",
    "read_node",
    "steps_after",
]

_COUNT = 256


@runtime_checkable
class PagedStore(Protocol):
    """What a store may have beside the methods of `JournalStore`, for threads of any length."""

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        """At most ``count`` entries, those after number ``after``; it costs what these cost."""
        ...

    async def head(self, thread_id: str) -> int:
        """The number of the newest entry; 0 for an unknown thread."""
        ...


class EntryBatch(Protocol):
    """The entries of a thread that is to be stored whole."""

    def add(self, body: Body, text: bytes) -> None:
        """One more entry, and its JSON text: `locus.core.journal.entry_to_json`, encoded."""
        ...


@runtime_checkable
class FormStore(Protocol):
    """What a store may have that keeps the JSON of entries: they need not be decoded to export and import them."""

    async def read_forms(self, thread_id: str) -> Sequence[tuple[int, str, str, bytes]]:
        """All entries: number, writer, parent, and the JSON text of the body."""
        ...

    def new_batch(self) -> EntryBatch:
        """An empty batch."""
        ...

    async def append_batch(self, claim: Claim, batch: Any) -> Appended:
        """Add all entries of a batch to a thread that has none, in one write."""
        ...


class Pages:
    """Reads a thread page by page; a store that is no `PagedStore` gives everything as the first page.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        after: number of the entry before the first one wanted, from 0.

    Raises:
        JournalError: the store keeps no history.
    """

    def __init__(self, store: JournalStore, thread_id: str, after: int = 0) -> None:
        if not store.keeps_history:
            raise JournalError(
                f"thread {thread_id!r}: {type(store).__name__} keeps the newest state of a thread and no history; "
                "give the agent a checkpointer that does, such as MemoryStore()"
            )
        self._store, self._thread_id = store, thread_id
        self._after, self._done = after, False

    async def next(self) -> tuple[Entry, ...]:
        """The next entries, oldest first; empty at the end.

        Raises:
            NothingToResume: the thread does not exist.
        """
        if self._done:
            return ()
        if isinstance(self._store, PagedStore):
            page = await self._store.read_page(self._thread_id, self._after, _COUNT)
        else:
            page, self._done = await self._store.read(self._thread_id, self._after), True
        if not page and not self._after:
            raise NothingToResume(f"thread {self._thread_id!r} does not exist in this {type(self._store).__name__}")
        self._after += len(page)
        return page


async def nth_transition(store: JournalStore, thread_id: str, n: int) -> tuple[int, Transition]:
    """The entry number of a thread's n-th transition, and the transition; costs what the thread has up to there.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        n: from 1, as in `History`.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the transition does not exist, or the store keeps no history.
    """
    pages, found = Pages(store, thread_id), 0
    wanted = n if isinstance(n, int) and not isinstance(n, bool) else 0
    while page := await pages.next():
        for entry in page:
            if isinstance(entry.body, Transition):
                found += 1
                if found == wanted:
                    return entry.n, entry.body
    have = f"it has the transitions 1 to {found}" if found else "none was committed yet"
    raise JournalError(f"thread {thread_id!r} has no transition {n!r}; {have}")


async def read_node(store: JournalStore, thread_id: str, n: int) -> tuple[Entry | None, list[Entry]]:
    """The transition before an entry, or None at the beginning, and the entries of the entry's node.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        n: the number of the entry, from 1.

    Returns:
        The entries up to the transition that ends the node, or to the end of the thread where it has none yet.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: it has no such entry, or the store keeps no history.
    """
    last: Entry | None = None
    found: list[Entry] = []
    end = max(0, n - 1)
    while end > 0 and last is None:
        after = max(0, end - _COUNT)
        page = (await Pages(store, thread_id, after).next())[: end - after]
        cut = next((i for i in reversed(range(len(page))) if isinstance(page[i].body, Transition)), None)
        found[:0] = page[0 if cut is None else cut + 1 :]
        last, end = None if cut is None else page[cut], after
    pages = Pages(store, thread_id, n - 1)
    while page := await pages.next():
        for entry in page:
            found.append(entry)
            if isinstance(entry.body, Transition):
                return last, found
    if not found or found[-1].n < n:
        raise JournalError(f"thread {thread_id!r} has no entry {n!r}")
    return last, found


async def newest_first(store: JournalStore, thread_id: str) -> AsyncGenerator[Entry]:
    """The entries of a thread from its end; what is found late is found without reading the rest.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    if not isinstance(store, PagedStore):
        for entry in reversed(await Pages(store, thread_id).next()):
            yield entry
        return
    head = await store.head(thread_id)
    # The first page for its errors: it need not be read to the end.
    page = await Pages(store, thread_id, max(0, head - _COUNT)).next()
    while page:
        for entry in reversed(page):
            yield entry
        first = page[0].n - 1
        after = max(0, first - _COUNT)
        page = await store.read_page(thread_id, after, first - after) if first else ()


async def newest_transition(store: JournalStore, thread_id: str) -> tuple[int, Transition]:
    """The same of a thread's newest transition.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: no transition was committed, or the store keeps no history.
    """
    async with aclosing(newest_first(store, thread_id)) as entries:
        async for entry in entries:
            if isinstance(entry.body, Transition):
                return entry.n, entry.body
    raise JournalError(f"thread {thread_id!r} has no transition; none was committed yet")


async def newest_usage(store: JournalStore, thread_id: str) -> Usage:
    """What the newest run of a thread has spent; the last transition of a run that has ended says it.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    found: dict[str, Any] = {}
    async with aclosing(newest_first(store, thread_id)) as entries:
        async for entry in entries:
            if isinstance(entry.body, Transition):
                changed = entry.body.delta.changed
                found = {**{name: changed[name] for name in TOTALS if name in changed}, **found}
                if len(found) == len(TOTALS):
                    break
    return evolve(BLANK, **found).usage


async def steps_after(store: JournalStore, thread_id: str, number: int) -> list[Body]:
    """What a thread's journal holds behind an entry, up to the next transition or the end.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        number: of the entry, from 1.
    """
    pages = Pages(store, thread_id, number)
    found: list[Body] = []
    while page := await pages.next():
        for entry in page:
            if isinstance(entry.body, Transition):
                return found
            found.append(entry.body)
    return found
