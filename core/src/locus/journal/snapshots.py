"""`SnapshotAdapter`: a backend that can only save and load a dict becomes a journal store.

It keeps the newest state and the open steps of each thread, so a run resumes after a crash. Two things it cannot give:
history (no replay, no time travel) and fencing between processes, so a thread must have one writer at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
from attrs import evolve

from locus.core.journal import Body, StateDelta, Transition, entry_from_json, entry_to_json
from locus.core.state import AgentState
from locus.journal.memory import MemoryStore, Thread
from locus.journal.store import Appended, Claim

__all__ = ["SnapshotAdapter"]

Save = Callable[[str, dict[str, Any]], Any | Awaitable[Any]]
Load = Callable[[str], Awaitable[Mapping[str, Any] | None] | Mapping[str, Any] | None]


class SnapshotAdapter(MemoryStore):
    """Journals behind ``save(thread_id, checkpoint)`` and ``load(thread_id)``; either may be async.

    Args:
        save: stores a JSON-safe dict under a thread id: `AgentState.to_checkpoint()` plus a key ``"journal"``.
        load: gives it back, or None for an unknown thread.
    """

    def __init__(self, save: Save, load: Load) -> None:
        super().__init__(history=False)
        self._save, self._load = save, load
        # One save at a time: an older one that finishes late would undo a newer.
        self._saving: dict[str, anyio.Lock] = {}

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread, with what was saved last.

        Raises:
            ThreadBusy: a run of this process holds it.
            CheckpointError: what the backend gave back cannot be read.
        """
        await self._refresh(thread_id)
        return await super().claim(thread_id, worker)

    async def _refresh(self, thread_id: str) -> None:
        thread = self._threads.get(thread_id)
        if thread is None or thread.held is None:
            found = self._load(thread_id)
            data = await found if inspect.isawaitable(found) else found
            if data is not None:
                self._threads[thread_id] = loaded = _loaded(data)
                loaded.created_at = None if thread is None else thread.created_at

    async def peek(self, thread_id: str) -> Claim | None:
        """What was saved last, without taking the thread."""
        await self._refresh(thread_id)
        return await super().peek(thread_id)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add steps and save them with the state they follow."""
        done = await super().append(claim, bodies)
        if done is Appended.OK:
            thread = self._threads[claim.thread_id]
            try:
                await self._store(claim.thread_id)
            except Exception:
                # What was not saved was not appended: another save, or another claim, would find it here.
                thread.bodies = [kept for kept in thread.bodies if not any(kept is body for body in bodies)]
                raise
        return done

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Save the newest state."""
        thread = self._held(claim)
        before = None if thread is None else (thread.newest, thread.bodies, thread.dropped, list(thread.writers))
        # The delta is in the state; keeping it as well would save the conversation twice.
        done = await super().snapshot(claim, at, state, evolve(last, delta=StateDelta()))
        if done:
            try:
                await self._store(claim.thread_id)
            except Exception:
                if thread is not None and before is not None:
                    thread.newest, thread.bodies, thread.dropped, thread.writers = before
                raise
        return done

    async def _store(self, thread_id: str) -> None:
        async with self._saving.setdefault(thread_id, anyio.Lock()):
            await self._save_newest(thread_id)

    async def _save_newest(self, thread_id: str) -> None:
        thread = self._threads[thread_id]
        snapshot = thread.snapshot
        if snapshot is None:
            return  # steps of a run that has not begun: there is nothing to resume yet
        journal = {"at": snapshot.at, "entries": [entry_to_json(b) for b in (snapshot.last, *thread.bodies)]}
        saved = self._save(thread_id, {**snapshot.state.to_checkpoint(), "journal": journal})
        if inspect.isawaitable(saved):
            await saved

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """The backend cannot delete.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a SnapshotAdapter has no delete; remove the thread where its save function puts it")


def _loaded(data: Mapping[str, Any]) -> Thread:
    state = AgentState.from_checkpoint(data)
    journal = data.get("journal") or {}
    bodies = [entry_from_json(e) for e in journal.get("entries", ())]
    if not bodies or not isinstance(bodies[0], Transition):
        # A bare checkpoint, written by something else: the conversation is there, no run is open.
        last = Transition(run_id=state.run_id, node="terminate", next_node="end", delta=StateDelta())
        return Thread(newest=(1, state, last), dropped=1, writers=[(1, "")])
    at = int(journal.get("at", 1))
    return Thread(newest=(at, state, bodies[0]), bodies=bodies[1:], dropped=at, writers=[(at, "")])
