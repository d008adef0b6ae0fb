"""`Pointed`: any journal store with a point before and after each of its calls, and a note of what it acknowledged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from tests.durability.log import Log
from tests.durability.points import Points

from locus.core.journal import Body, Entry, Outcome, Transition, entry_to_json
from locus.core.state import AgentState
from locus.journal.store import Appended, Claim, JournalStore, Posted, ThreadInfo, ThreadQuery

__all__ = ["Pointed", "after", "digest"]


def digest(body: Body) -> str:
    """A short name of an entry's content."""
    return blake2b(json.dumps(entry_to_json(body), sort_keys=True).encode(), digest_size=8).hexdigest()


class Pointed:
    """A journal store where a process may die before and after each call.

    Args:
        store: the store proper.
        points: where the process may die.
        log: gets an ``acked`` line for each append that returned `Appended.OK`: what the loop has been told.
    """

    def __init__(self, store: JournalStore, points: Points, log: Log) -> None:
        self.inner, self.points, self.log = store, points, log

    @property
    def keeps_history(self) -> bool:
        return self.inner.keeps_history

    @property
    def snapshot_every(self) -> int | None:
        return self.inner.snapshot_every

    async def claim(self, thread_id: str, worker: str) -> Claim:
        self.points.reach("claim: before")
        claim = await self.inner.claim(thread_id, worker)
        self.points.reach("claim: after")
        return claim

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        self.points.reach("append: before")
        got = await self.inner.append(claim, bodies)
        self.points.reach(after(bodies))
        self.heard(claim, bodies, got)
        return got

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        self.points.reach("snapshot: before")
        got = await self.inner.snapshot(claim, at, state, last)
        self.points.reach("snapshot: after")
        return got

    async def renew(self, claim: Claim) -> bool:
        self.points.reach("renew: before")
        return await self.inner.renew(claim)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        self.points.reach("release: before")
        await self.inner.release(claim, not_before)
        self.points.reach("release: after")

    async def next_ready(self, now: datetime) -> str | None:
        return await self.inner.next_ready(now)

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return await self.inner.read(thread_id, after)

    async def peek(self, thread_id: str) -> Claim | None:
        self.points.reach("peek: before")
        return await self.inner.peek(thread_id)

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return await self.inner.threads(query)

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await self.inner.fork(thread_id, at, into, bodies)

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        return await self.inner.delete(thread_id, head=head)

    def __getattr__(self, name: str) -> Any:
        # What else the store can do is no point of a run.
        found = getattr(self.inner, name)
        return self._posting(found) if name == "post" and found is not None else found

    def _posting(self, post: Callable[..., Posted]) -> Callable[..., Posted]:
        """An append that is begun: there are points before it, while it is written, and when that is known."""

        def pointed(claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
            self.points.reach("post: before")
            made = _Posted(self, post(claim, bodies, after=after.inner if isinstance(after, _Posted) else None))
            made.claim, made.bodies = claim, bodies
            self.points.reach("post: under way")
            return made

        return pointed

    def heard(self, claim: Claim, bodies: Sequence[Body], got: Appended) -> None:
        """Note what the loop is told of an append."""
        if got is Appended.OK:
            settled = [str(body.step_id) for body in bodies if isinstance(body, Outcome)]
            digests = [digest(body) for body in bodies]
            self.log.add("acked", thread=claim.thread_id, writer=claim.token, digests=digests, settled=settled)
        else:
            self.log.add("refused", thread=claim.thread_id, writer=claim.token)


class _Posted:
    """An append under way, until it is known what came of it."""

    claim: Claim
    bodies: Sequence[Body]

    def __init__(self, store: Pointed, inner: Posted) -> None:
        self._store, self.inner = store, inner

    async def wait(self) -> Appended:
        got = await self.inner.wait()
        self._store.points.reach(f"post: known, {after(self.bodies)}")
        self._store.heard(self.claim, self.bodies, got)
        return got


def after(bodies: Sequence[Body]) -> str:
    """The name of the point after an append."""
    last = bodies[-1]
    if isinstance(last, Transition):
        return "append: after the final transition" if last.next_node == "end" else "append: after a transition"
    return f"append: after {type(last).__name__}"
