"""Stores that break what a law says of pages and of states in the past, each in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from locus.core.journal import Entry
from locus.core.state import AgentState

from .stores import Complete

__all__ = ["BROKEN"]


class BeginsPagesAtTheNumber(Complete):
    """Takes the number of the entry before a page for that of its first one."""

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        return await super().read_page(thread_id, max(0, after - 1), count)


class EndsPagesWithTheThreadOfAFork(Complete):
    """Gives no more than was shared with the thread that a fork was made from."""

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        page = await super().read_page(thread_id, after, count)
        shared = {entry.id for other in self._threads if other != thread_id for entry in await self.read(other)}
        return tuple(entry for entry in page if not thread_id.startswith("fork") or entry.id in shared)


class KeepsPagesOfAForgottenThread(Complete):
    """Knows the pages that were read before, whatever became of their thread."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, int, int], tuple[Entry, ...]] = {}

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        found = self.kept.get((thread_id, after, count)) or await super().read_page(thread_id, after, count)
        self.kept[thread_id, after, count] = found
        return found

    async def head(self, thread_id: str) -> int:
        return max([await super().head(thread_id), *(e.n for page in self.kept.values() for e in page)])


class GivesTheStateOfTheSnapshot(Complete):
    """Folds what was cached before an entry, and nothing behind it."""

    async def state_at(self, thread_id: str, n: int) -> AgentState | None:
        thread = self._threads.get(thread_id)
        cached = None if thread is None else thread.snapshot
        found = await super().state_at(thread_id, n)
        return found if found is None or cached is None or cached.at > n else cached.state


class GivesTheNewestState(Complete):
    """Gives the state of a thread where an entry of its past is asked about."""

    async def state_at(self, thread_id: str, n: int) -> AgentState | None:
        head = await self.head(thread_id)
        return await super().state_at(thread_id, max(n, head))


#: Which tests of the contract each of them must fail.
BROKEN: dict[Callable[[], Any], tuple[str, ...]] = {
    BeginsPagesAtTheNumber: ("test_law_1_pages_are_the_thread",),
    EndsPagesWithTheThreadOfAFork: ("test_law_1_pages_are_the_thread",),
    GivesTheStateOfTheSnapshot: ("test_law_1_a_state_is_that_of_its_entry",),
    GivesTheNewestState: ("test_law_1_a_state_is_that_of_its_entry",),
    KeepsPagesOfAForgottenThread: ("test_law_1_a_thread_that_is_not_there_has_no_page",),
}
