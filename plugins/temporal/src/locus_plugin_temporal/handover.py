"""`Carried`: the open runs of a workflow, for the next one that goes on with them: `continue_as_new` starts afresh."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

from attrs import evolve

from locus.core.journal import Body, StateDelta, Transition, entry_from_json, entry_to_json
from locus.core.state import AgentState
from locus.journal import JournalStore, MemoryStore

__all__ = ["Carried", "pack", "unpack"]


@dataclass(frozen=True, kw_only=True)
class Carried:
    """An open run, as an argument of the next workflow.

    Args:
        thread_id: its thread.
        journal: what its journal holds, compressed; it grows with the conversation.
        answers: those that have come too early for it, by thread.
        cancelled: the reason of a cancel that came meanwhile, or None.
    """

    thread_id: str
    journal: str
    answers: dict[str, list[Any]] = field(default_factory=dict)
    cancelled: str | None = None


async def pack(store: JournalStore, thread_id: str) -> str:
    """What is left of a thread: its state, and what was written since.

    Raises:
        ValueError: the thread is empty.
        NotSerialisable: a value has no JSON form.
    """
    claim = await store.peek(thread_id)
    if claim is None or claim.snapshot is None:
        raise ValueError(f"thread {thread_id!r} has no state to go on with")
    newest = claim.snapshot
    # The delta is in the state; kept as well, the conversation would be there twice.
    bodies: list[Body] = [evolve(newest.last, delta=StateDelta()), *(entry.body for entry in claim.entries)]
    form = {"at": newest.at, "state": newest.state.to_checkpoint(), "entries": [entry_to_json(b) for b in bodies]}
    return b64encode(zlib.compress(json.dumps(form, separators=(",", ":")).encode(), 1)).decode()


async def unpack(thread_id: str, packed: str) -> MemoryStore:
    """A store that holds the thread.

    Raises:
        CheckpointError: the text is damaged.
    """
    form = json.loads(zlib.decompress(b64decode(packed)))
    store, state = MemoryStore(history=False), AgentState.from_checkpoint(form["state"])
    last, *steps = [entry_from_json(entry) for entry in form["entries"]]
    assert isinstance(last, Transition)
    claim = await store.claim(thread_id, "")
    await store.snapshot(claim, form["at"], state, last)
    await store.append(claim, steps)
    await store.release(claim)
    return store
