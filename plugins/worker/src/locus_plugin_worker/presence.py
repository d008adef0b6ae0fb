"""`Presence`: a worker that is alive, as others see it in the store.

A worker holds a thread of its own, whose one entry says what it serves. The claim of that thread is renewed like any
other: it ends with the worker's process or its lease, whichever the store watches, and no clock or table is added. The
threads are numbered, and a worker takes the first that is free, so that workers that died leave nothing that grows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio
from attrs import frozen

from locus.core.errors import LocusError, ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal import ThreadQuery

if TYPE_CHECKING:
    from locus.journal import Claim, JournalStore

__all__ = ["PREFIX", "Presence", "present", "read_presences"]

#: How the threads of workers are named; a number follows.
PREFIX: Final = "locus.worker/"

#: Seconds in which a worker that leaves takes itself off the list.
_SHIELD: Final = 3.0

_STEP: Final = StepId(0, "worker")


@frozen(kw_only=True)
class Presence:
    """A worker.

    Args:
        name: what it calls itself.
        since: when it began.
        slots: how many runs at once.
        queues: the queues, by name or pattern.
    """

    name: str
    since: datetime | None
    slots: int
    queues: tuple[str, ...]

    def serves(self, queue: str) -> bool:
        """Whether it looks at a queue."""
        return any(each == queue or fnmatchcase(queue, each) for each in self.queues)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        since = None if self.since is None else self.since.isoformat()
        return {"name": self.name, "since": since, "slots": self.slots, "queues": list(self.queues)}


@asynccontextmanager
async def present(store: JournalStore, name: str, slots: int, queues: tuple[str, ...]) -> AsyncIterator[None]:
    """Be on the list of workers."""
    claim = await _first_free(store, name)
    value = {"name": name, "slots": slots, "queues": queues}
    await store.append(claim, [Outcome(run_id=name, step_id=_STEP, value=value)])
    try:
        yield
    finally:
        with anyio.move_on_after(_SHIELD, shield=True):
            try:
                await store.release(claim)
                await store.delete(claim.thread_id)
            except LocusError:  # another worker has the number already, or the store has failed
                pass


async def _first_free(store: JournalStore, name: str) -> Claim:
    for number in count():
        try:
            await store.delete(f"{PREFIX}{number}")  # what a worker has left that died
            return await store.claim(f"{PREFIX}{number}", name)
        except ThreadBusy:
            continue
    raise AssertionError


async def read_presences(store: JournalStore) -> tuple[Presence, ...]:
    """The workers that are alive, in the order of their numbers."""
    found: list[tuple[int, Presence]] = []
    for info in await store.threads(ThreadQuery(status=("running",))):
        number = info.thread_id.removeprefix(PREFIX)
        if number == info.thread_id or not number.isdecimal():
            continue
        for entry in reversed(await store.read(info.thread_id)):
            value = entry.body.value if isinstance(entry.body, Outcome) else None
            if isinstance(value, Mapping):
                made = Presence(
                    name=str(value["name"]), since=info.since, slots=int(value["slots"]), queues=tuple(value["queues"])
                )
                found.append((int(number), made))
                break
    return tuple(each for _, each in sorted(found, key=lambda pair: pair[0]))
