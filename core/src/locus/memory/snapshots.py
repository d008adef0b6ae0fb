"""`SnapshotAdapter`: a backend that can only save and load a dict becomes a journal store.

It keeps the newest state and the open steps of each thread, so a run resumes after a crash. Two things it
cannot give: history (no replay, no time travel) and fencing between processes. One writer a thread, then.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import evolve

from locus.core.journal import (
    BLANK,
    Body,
    StateDelta,
    Transition,
    delta,
    entry_from_json,
    entry_to_json,
    fold,
)
from locus.core.state import AgentState
from locus.memory.inmemory import MemoryStore
from locus.memory.store import Appended, Claim, Entry, ThreadInfo

__all__ = ["SnapshotAdapter"]

Save = Callable[[str, dict[str, Any]], Any | Awaitable[Any]]
Load = Callable[[str], Mapping[str, Any] | None | Awaitable[Mapping[str, Any] | None]]


class SnapshotAdapter:
    """Journals behind ``save(thread_id, checkpoint)`` and ``load(thread_id)``; either may be async.

    Args:
        save: stores a JSON-safe dict under a thread id: `AgentState.to_checkpoint()` plus a key ``"journal"``.
        load: gives it back, or None for an unknown thread.
    """

    def __init__(self, save: Save, load: Load) -> None:
        self._save, self._load = save, load
        self._live = MemoryStore()
        self._states: dict[str, AgentState] = {}
        self._tails: dict[str, list[Body]] = {}

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread and load what was saved last."""
        claim = await self._live.claim(thread_id, worker)
        try:
            if thread_id not in self._states:
                found = self._load(thread_id)
                data = await found if inspect.isawaitable(found) else found
                state = BLANK if data is None else AgentState.from_checkpoint(data)
                tail = [] if data is None else [entry_from_json(e) for e in data.get("journal", ())]
                self._states[thread_id], self._tails[thread_id] = state, tail
        except BaseException:
            await self._live.release(claim)
            raise
        tail = self._tails[thread_id]
        bodies: list[Body] = list(tail)
        if tail and isinstance(tail[0], Transition):
            # The saved state is the fold up to and including the first entry of the tail.
            bodies = [_whole(tail[0], self._states[thread_id]), *tail[1:]]
        entries = tuple(Entry(i + 1, "snapshot", "", b) for i, b in enumerate(bodies))
        return Claim(thread_id=thread_id, token=claim.token, head=len(entries), entries=entries)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Save the newest state and what happened since its transition."""
        if not await self._live.renew(claim):
            return Appended.FENCED
        state, tail = self._states[claim.thread_id], self._tails[claim.thread_id]
        for body in bodies:
            if isinstance(body, Transition):
                state, tail = fold(state, [body]), [body]
            else:
                tail = [*tail, body]
        light = [_light(b) for b in tail]
        saved = self._save(claim.thread_id, {**state.to_checkpoint(), "journal": [entry_to_json(b) for b in light]})
        if inspect.isawaitable(saved):
            await saved
        self._states[claim.thread_id], self._tails[claim.thread_id] = state, light
        return Appended.OK

    async def snapshot(self, claim: Claim, at: int, state: AgentState) -> None:
        """Every save is a snapshot already."""

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim still stands in this process."""
        return await self._live.renew(claim)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back."""
        await self._live.release(claim, not_before)
        self._states.pop(claim.thread_id, None)
        self._tails.pop(claim.thread_id, None)

    async def next_ready(self, now: datetime) -> str | None:
        """A thread of this process that is due."""
        return await self._live.next_ready(now)

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """What is left of the journal: the entries since the last transition."""
        claim = await self.claim(thread_id, "reader")
        await self.release(claim)
        return tuple(e for e in claim.entries if e.n > after)

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """The threads that this process has used; the backend cannot list."""
        return await self._live.threads()

    async def delete(self, thread_id: str) -> bool:
        """The backend cannot delete."""
        raise NotImplementedError("a SnapshotAdapter has no delete; remove the thread where its save function puts it")


def _light(body: Body) -> Body:
    # The delta is in the saved state; keeping it as well would save the conversation twice.
    return evolve(body, delta=StateDelta()) if isinstance(body, Transition) else body


def _whole(transition: Transition, state: AgentState) -> Transition:
    return evolve(transition, delta=delta(BLANK, state))
