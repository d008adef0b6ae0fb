"""`CrashingStore`: a process that dies in one of its writes, so that a test can look at what a resume makes of it.

`every_crash` goes through all the writes of a run. A plugin whose runs end the same whichever of them is the last one
keeps its state where a resume finds it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from locus import Agent, AgentResult
from locus.core.errors import NothingToResume
from locus.core.journal import END, Body, Entry, Transition
from locus.core.state import AgentState
from locus.journal import Appended, Claim, JournalStore, MemoryStore, ThreadInfo, ThreadQuery

__all__ = ["CrashingStore", "FailingStore", "SimulatedCrash", "every_crash", "is_crash"]

_T = TypeVar("_T")
_Out = TypeVar("_Out")

#: More writes than the run of a test makes; one that dies as often is one that never ends.
_MOST = 500


class SimulatedCrash(GeneratorExit):
    """The process is gone, as far as its run is concerned: a run takes it as if its coroutine was thrown away.

    Of any other exception of a tool, a model or a hook an answer could be made.
    """


def is_crash(error: BaseException) -> bool:
    """Whether an error is `SimulatedCrash`, possibly inside of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return isinstance(error, SimulatedCrash)


def _build_agent(agent: Agent[Any, _Out] | Callable[[], Agent[Any, _Out]]) -> Agent[Any, _Out]:
    return agent if isinstance(agent, Agent) else agent()


class CrashingStore:
    """A journal store as one process sees it: until it dies, and then not at all.

    Writes are appends, snapshots, releases and forks. From its crash on, every write raises `SimulatedCrash`, until
    `revive`; reads work all the time.

    Args:
        at: in which of its writes it dies: the number of the write, from 1, or the name of a node, in the first write
            that has a transition of it; None = never.
        stored: whether that write reaches the store.
        store: where journals are kept; None = a `MemoryStore` of its own.

    Raises:
        ValueError: ``at`` is less than 1.
    """

    def __init__(self, at: int | str | None = None, *, stored: bool = False, store: JournalStore | None = None) -> None:
        if isinstance(at, int) and at < 1:
            raise ValueError(f"at must be 1 or more, got {at!r}; writes are counted from 1")
        self.store: JournalStore = MemoryStore() if store is None else store
        self.at, self.stored = at, stored
        #: How many writes were begun, by all the processes.
        self.writes = 0
        #: Whether it is dead now; how often it has died.
        self.dead, self.crashes = False, 0
        self.claims: list[Claim] = []

    def __repr__(self) -> str:
        how = "never" if self.at is None else f"{'stored' if self.stored else 'lost'} at {self.at!r}"
        return f"<CrashingStore: {how}, {self.writes} writes, {self.crashes} crashes>"

    async def revive(self) -> None:
        """Let another process begin: what the dead one held is free."""
        self.dead = False
        claims, self.claims = self.claims, []
        for claim in claims:
            await self.store.release(claim)

    async def outlive(
        self,
        agent: Agent[Any, _Out] | Callable[[], Agent[Any, _Out]],
        prompt: str,
        *,
        thread_id: str = "t",
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> AgentResult[_Out] | None:
        """Run an agent, and go on in another process if this one dies.

        Args:
            agent: with this store as its checkpointer; or a function that makes one for each process.
            prompt: of the user.
            thread_id: where.
            between: called when it has died and the next process has not begun.

        Returns:
            The result; None where the run had ended when it died, or nothing of it was stored.

        Raises:
            NothingToResume: the agent says so of a run that is open in the store.
        """
        try:
            return await _build_agent(agent).run(prompt, thread_id=thread_id)
        except BaseException as error:
            if not is_crash(error):
                raise
        await self.revive()
        if between is not None:
            await between()
        try:
            return await _build_agent(agent).resume(thread_id)
        except NothingToResume:
            if await self._open(thread_id):
                raise
            return None

    async def _open(self, thread_id: str) -> bool:
        """Whether the last stored transition of a thread leads on."""
        found = await self.store.peek(thread_id)
        if found is None:
            return False
        last = None if found.snapshot is None else found.snapshot.last
        for entry in found.entries:
            last = entry.body if isinstance(entry.body, Transition) else last
        return last is not None and last.next_node != END

    # -- the protocol of a store --------------------------------------------------------------------

    @property
    def keeps_history(self) -> bool:
        """As the store says."""
        return self.store.keeps_history

    @property
    def snapshot_every(self) -> int | None:
        """As the store says."""
        return self.store.snapshot_every

    def _alive(self) -> None:
        if self.dead:
            raise SimulatedCrash

    def _last(self, bodies: Sequence[Body]) -> bool:
        """Whether it dies in this write."""
        if isinstance(self.at, str):
            return not self.crashes and any(isinstance(each, Transition) and each.node == self.at for each in bodies)
        return self.writes == self.at

    async def _write(self, write: Callable[[], Awaitable[_T]], bodies: Sequence[Body]) -> _T:
        self._alive()
        self.writes += 1
        self.dead = self._last(bodies)
        if not self.dead:
            return await write()
        self.crashes += 1
        if self.stored:
            await write()
        raise SimulatedCrash

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread."""
        self._alive()
        claim = await self.store.claim(thread_id, worker)
        self.claims.append(claim)
        return claim

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, or die."""
        return await self._write(lambda: self.store.append(claim, bodies), bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold, or die."""
        bodies = () if self.keeps_history else (last,)
        return await self._write(lambda: self.store.snapshot(claim, at, state, last), bodies)

    async def renew(self, claim: Claim) -> bool:
        """Say that the worker lives."""
        self._alive()
        return await self.store.renew(claim)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give a thread back, or die."""
        await self._write(lambda: self.store.release(claim, not_before), ())

    async def next_ready(self, now: datetime) -> str | None:
        """A thread whose time has come."""
        return await self.store.next_ready(now)

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread."""
        return await self.store.read(thread_id, after)

    async def peek(self, thread_id: str) -> Claim | None:
        """The stored entries of a thread."""
        return await self.store.peek(thread_id)

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects."""
        return await self.store.threads(query)

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Fork a thread, or die."""
        await self._write(lambda: self.store.fork(thread_id, at, into, bodies), bodies)

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread."""
        self._alive()
        return await self.store.delete(thread_id, head=head)


class FailingStore(CrashingStore):
    """A `CrashingStore` that fails once in place of dying, as a disk does: what its process writes later is taken."""

    async def _write(self, write: Callable[[], Awaitable[_T]], bodies: Sequence[Body]) -> _T:
        try:
            return await super()._write(write, bodies)
        except SimulatedCrash:
            self.dead = False
            raise OSError("the store failed in this write") from None


def every_crash(make: Callable[[], JournalStore] = MemoryStore, *, least: int = 1) -> Iterator[CrashingStore]:
    """A store for each way in which the process of a run can die: in its first write, lost or stored, and so on.

    Give each to one run, the same one every time; the store in which that run has lived to its end is the last.

    Args:
        make: makes the store below.
        least: how many crashes there are at least; a run that has fewer is not the one that the test is about.

    Raises:
        AssertionError: there were fewer, a store was not written to, or a run does not end.
    """
    crashes = 0
    for at in range(1, _MOST + 1):
        for stored in (False, True):
            store = CrashingStore(at, stored=stored, store=make())
            yield store
            if not store.writes:
                raise AssertionError("nothing was written to the store; give it to the agent: checkpointer=store")
            crashes += store.crashes
        if not store.crashes:
            break
    else:
        raise AssertionError(f"the run does not end within {_MOST} writes")
    if crashes < least:
        raise AssertionError(f"the run died {crashes} times, and at least {least} were expected")
