"""`SnapshotAdapter`: a backend that can only save and load a dict becomes a journal store.

It keeps the newest state and the open steps of each thread, so a run resumes after a crash. Two things it cannot give:
history (no replay, no time travel) and fencing between processes, so a thread must have one writer at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import anyio
from attrs import evolve

from locus.core.journal import Body, StateDelta, Transition, entry_from_json, entry_to_json
from locus.core.state import AgentState
from locus.journal import Appended, Claim, MemoryStore

__all__ = ["SnapshotAdapter"]

Save = Callable[[str, dict[str, Any]], Any | Awaitable[Any]]
Load = Callable[[str], Awaitable[Mapping[str, Any] | None] | Mapping[str, Any] | None]


class SnapshotAdapter(MemoryStore):
    """Journals behind ``save(thread_id, checkpoint)`` and ``load(thread_id)``; either may be async.

    Args:
        save: stores a JSON-safe dict under a thread id: `AgentState.to_checkpoint()` plus a key ``"journal"``.
        load: gives it back, or None for an unknown thread.
    """

    # What is handed in would be lost with this process: this is not a `QueueStore`.
    submit = None  # type: ignore[assignment]

    def __init__(self, save: Save, load: Load) -> None:
        super().__init__(history=False)
        self._save, self._load = save, load
        #: Thread -> token of the run of this process that holds it: memory knows more of it than the backend.
        self._holders: dict[str, str] = {}
        # One save at a time: an older one that finishes late would undo a newer.
        self._saving: dict[str, anyio.Lock] = {}

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread, with what was saved last.

        Raises:
            ThreadBusy: a run of this process holds it.
            CheckpointError: what the backend gave back cannot be read.
        """
        await self._refresh(thread_id)
        claim = await super().claim(thread_id, worker)
        self._holders[thread_id] = claim.token
        return claim

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back."""
        if self._holders.get(claim.thread_id) == claim.token:
            del self._holders[claim.thread_id]
        await super().release(claim, not_before)

    async def peek(self, thread_id: str) -> Claim | None:
        """What was saved last, without taking the thread."""
        await self._refresh(thread_id)
        return await super().peek(thread_id)

    async def _refresh(self, thread_id: str) -> None:
        """Have in memory what the backend has, unless a run of this process holds the thread."""
        if thread_id in self._holders:
            return
        found = self._load(thread_id)
        data = await found if inspect.isawaitable(found) else found
        if data is None or thread_id in self._holders:
            return
        at, state, last, steps = _parse_checkpoint(data)
        claim = await super().claim(thread_id, "load")
        await super().snapshot(claim, at, state, last)
        await super().append(claim, steps)
        await super().release(claim)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Save steps with the state that they follow, and add them."""
        async with self._saving.setdefault(claim.thread_id, anyio.Lock()):
            if not await self.renew(claim):
                return Appended.FENCED
            held = await super().peek(claim.thread_id)
            # Without a state these are steps of a run that has not begun: there is nothing to resume yet.
            if held is not None and held.snapshot is not None:
                newest = held.snapshot
                steps = [entry.body for entry in held.entries]
                await self._store(claim.thread_id, newest.at, newest.state, newest.last, [*steps, *bodies])
            return await super().append(claim, bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Save the newest state."""
        # The delta is in the state; keeping it as well would save the conversation twice.
        last = evolve(last, delta=StateDelta())
        async with self._saving.setdefault(claim.thread_id, anyio.Lock()):
            if not await self.renew(claim):
                return False
            await self._store(claim.thread_id, at, state, last, ())
            return await super().snapshot(claim, at, state, last)

    async def _store(self, thread_id: str, at: int, state: AgentState, last: Transition, steps: Sequence[Body]) -> None:
        # Before memory has it: what was not saved was not appended, and another save or claim must not find it.
        journal = {"at": at, "entries": [entry_to_json(body) for body in (last, *steps)]}
        saved = self._save(thread_id, {**state.to_checkpoint(), "journal": journal})
        if inspect.isawaitable(saved):
            await saved

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread of which nothing was saved, with ``head=0``; the backend cannot delete.

        Raises:
            NotImplementedError: for any other thread.
        """
        if head == 0:
            return await super().delete(thread_id, head=0)
        raise NotImplementedError("a SnapshotAdapter has no delete; remove the thread where its save function puts it")


def _parse_checkpoint(data: Mapping[str, Any]) -> tuple[int, AgentState, Transition, list[Body]]:
    """How many entries made the state, the state, the last transition, and the steps behind it."""
    state = AgentState.from_checkpoint(data)
    journal = data.get("journal") or {}
    bodies = [entry_from_json(entry) for entry in journal.get("entries", ())]
    if not bodies or not isinstance(bodies[0], Transition):
        # A bare checkpoint, written by something else: the conversation is there, no run is open.
        return 1, state, Transition(run_id=state.run_id, node="terminate", next_node="end", delta=StateDelta()), []
    return int(journal.get("at", 1)), state, bodies[0], bodies[1:]
