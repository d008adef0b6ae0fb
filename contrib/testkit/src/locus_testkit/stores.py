"""Stores in memory that fail, wait or lose a thread where a test says so; for deaths see `CrashingStore`."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar

from locus.core.journal import Body, Transition
from locus.core.state import AgentState
from locus.journal import Appended, Claim, MemoryStore

__all__ = ["FullStore", "InterceptedStore"]

_T = TypeVar("_T")

#: The methods of a store that can be intercepted.
Method: TypeAlias = Literal["claim", "append", "snapshot", "release", "peek", "fork"]


class InterceptedStore(MemoryStore):
    """A `MemoryStore` that calls functions of a test before and after its methods.

    Args:
        before: method -> a function, which may be async, called with the arguments of the method. What it raises is
            raised, and what it returns, other than None, is returned: in both cases nothing else is done.
        after: the same, called when the work is done.
        history: see `MemoryStore`.

    Example::

        async def wait(claim, bodies):
            await anyio.sleep(1)

        slow = InterceptedStore({"append": wait})
        lost = InterceptedStore({"append": lambda claim, bodies: Appended.FENCED})
    """

    def __init__(
        self,
        before: Mapping[Method, Callable[..., Any]] | None = None,
        after: Mapping[Method, Callable[..., Any]] | None = None,
        *,
        history: bool = True,
    ) -> None:
        super().__init__(history=history)
        self.before: dict[Method, Callable[..., Any]] = dict(before or {})
        self.after: dict[Method, Callable[..., Any]] = dict(after or {})

    async def _around(self, method: Method, work: Callable[[], Awaitable[_T]], *arguments: Any) -> _T:
        early = await _ask(self.before.get(method), arguments)
        if early is not None:
            return early  # type: ignore[no-any-return]
        done = await work()
        late = await _ask(self.after.get(method), arguments)
        return done if late is None else late

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread."""
        work = super().claim
        return await self._around("claim", lambda: work(thread_id, worker), thread_id, worker)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries."""
        work = super().append
        return await self._around("append", lambda: work(claim, bodies), claim, bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold."""
        work = super().snapshot
        return await self._around("snapshot", lambda: work(claim, at, state, last), claim, at, state, last)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give a thread back."""
        work = super().release
        await self._around("release", lambda: work(claim, not_before), claim, not_before)

    async def peek(self, thread_id: str) -> Claim | None:
        """What a claim would show."""
        work = super().peek
        return await self._around("peek", lambda: work(thread_id), thread_id)

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Make a thread that begins like another one."""
        work = super().fork
        await self._around("fork", lambda: work(thread_id, at, into, bodies), thread_id, at, into, bodies)


async def _ask(function: Callable[..., Any] | None, arguments: tuple[Any, ...]) -> Any:
    if function is None:
        return None
    answer = function(*arguments)
    return await answer if inspect.isawaitable(answer) else answer


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, "no space left on device")


class FullStore(InterceptedStore):
    """A store that takes nothing more from its n-th write on, until it is mended; what is refused is not stored.

    Args:
        at: the write that is the first to fail, from 1; 0 = none. Appends count, and snapshots where no history is
            kept.
        error: makes what is raised.
        counts: which entries make an append count; all of them when None.
        history: see `MemoryStore`.
    """

    def __init__(
        self,
        at: int = 0,
        error: Callable[[], Exception] = _no_space,
        *,
        counts: Callable[[Body], bool] | None = None,
        history: bool = True,
    ) -> None:
        super().__init__({"append": self._write_entries}, history=history)
        if not history:
            self.before["snapshot"] = lambda *_: self._write()
        self.at, self.error, self.counts = at, error, counts
        #: How many writes that count were begun.
        self.writes = 0

    def _write_entries(self, _: Claim, bodies: Sequence[Body]) -> None:
        if self.counts is None or any(map(self.counts, bodies)):
            self._write()
        elif self.at and self.writes >= self.at:
            raise self.error()

    def _write(self) -> None:
        self.writes += 1
        if self.at and self.writes >= self.at:
            raise self.error()

    def mend(self) -> None:
        """There is room again."""
        self.at = 0
