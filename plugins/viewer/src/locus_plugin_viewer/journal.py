"""A thread's journal a window at a time: what a page shows is read, and nothing else, however long the thread is.

The entries are numbered, so a window is a range of numbers, the same for every reader. What belongs together is a
*block*: a transition with the steps before it. A block belongs to the window in which it begins; so a window is read
from the first block that begins in it to the end of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import frozen

from locus.core.errors import JournalError, NothingToResume
from locus.core.journal import Entry, Transition
from locus.journal import JournalStore

__all__ = ["WINDOW", "Window", "find_boundary", "find_head", "read_after", "read_head", "read_some", "read_window"]

#: Entries of a window.
WINDOW = 120

#: Entries that are read at a time to find the end of a block.
_MORE = 60


@runtime_checkable
class _PagedStore(Protocol):
    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]: ...


async def read_some(store: JournalStore, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
    """At most ``count`` entries, those after number ``after``."""
    if isinstance(store, _PagedStore):
        return await store.read_page(thread_id, after, count)
    return (await store.read(thread_id, after))[:count]


async def find_head(store: JournalStore, thread_id: str) -> int:
    """The number of the newest entry; 0 for a thread that does not exist.

    Raises:
        JournalError: the store keeps no history.
    """
    if not store.keeps_history:
        raise JournalError(f"{type(store).__name__} keeps the newest state of a thread and no history to show")
    ask: Any = getattr(store, "head", None)
    if ask is not None:
        return int(await ask(thread_id))
    found = await store.peek(thread_id)
    return 0 if found is None else found.head


async def read_head(store: JournalStore, thread_id: str) -> int:
    """The number of the newest entry of a thread that there is.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    head = await find_head(store, thread_id)
    if not head:
        raise NothingToResume(f"thread {thread_id!r} does not exist in this store")
    return head


@frozen(kw_only=True)
class Window:
    """A part of a thread.

    Args:
        number: which, from 0.
        count: how many the thread has.
        head: number of the thread's newest entry.
        entries: its blocks, whole; the last one is open where the thread ends in it.
    """

    number: int
    count: int
    head: int
    entries: tuple[Entry, ...]

    @property
    def is_last(self) -> bool:
        """Whether nothing comes after it."""
        return self.number == self.count - 1


async def read_window(store: JournalStore, thread_id: str, number: int | None = None) -> Window:
    """A window of a thread.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        number: which, from 0; None = the last one, and so is one that does not exist.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    head = await read_head(store, thread_id)
    count = (head - 1) // WINDOW + 1
    wanted = count - 1 if number is None or not 0 <= number < count else number
    after, end = wanted * WINDOW, (wanted + 1) * WINDOW
    # With the entry before it: that one says whether the window begins with a block.
    before = 1 if after else 0
    found = list(await read_some(store, thread_id, after - before, WINDOW + before))
    first = 0
    if before:
        first = next((i + 1 for i, entry in enumerate(found) if isinstance(entry.body, Transition)), len(found))
    entries = found[first:]
    if entries and not isinstance(entries[-1].body, Transition) and entries[-1].n < head:
        entries += await _rest_of_block(store, thread_id, end)
    return Window(number=wanted, count=count, head=head, entries=tuple(entries))


async def _rest_of_block(store: JournalStore, thread_id: str, after: int) -> list[Entry]:
    rest: list[Entry] = []
    while page := await read_some(store, thread_id, after, _MORE):
        for entry in page:
            rest.append(entry)
            if isinstance(entry.body, Transition):
                return rest
        after = page[-1].n
    return rest


async def find_boundary(store: JournalStore, thread_id: str, n: int) -> int:
    """The number of the newest transition up to entry ``n``: where the block that holds the next entry begins.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        n: any number, also one behind the end of the thread.
    """
    end = n
    while end > 0:
        after = max(0, end - _MORE)
        page = await read_some(store, thread_id, after, end - after)
        if not page:  # the thread ends before, maybe long before: the number was in an address
            end = min(after, await find_head(store, thread_id))
            continue
        found = _last_transition(page)
        if found is not None:
            return found
        end = after
    return 0


def _last_transition(entries: Sequence[Entry]) -> int | None:
    return next((entry.n for entry in reversed(entries) if isinstance(entry.body, Transition)), None)


async def read_after(store: JournalStore, thread_id: str, after: int) -> tuple[Entry, ...]:
    """What was written after a transition: at least the whole block behind it, and not all of a long thread.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        after: the number of the transition, or 0.
    """
    found: list[Entry] = []
    while page := await read_some(store, thread_id, after, 2 * WINDOW):
        found += page
        after = page[-1].n
        if len(page) < 2 * WINDOW or _last_transition(page) is not None:
            break
    return tuple(found)
