"""Threads as a whole: which there are, which want to go on, forks, and forgetting them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from attrs import frozen

from locus.core.errors import JournalError, NothingToResume
from locus.journal import ThreadInfo, ThreadQuery
from locus.journal.listing import page
from locus_plugin_oci.errors import BucketProblem
from locus_plugin_oci.format import Batch, Head
from locus_plugin_oci.journals import Appending, Journals, Seen, busy
from locus_plugin_oci.keys import (
    DUE,
    THREADS,
    due_name,
    due_until,
    from_micros,
    head_name,
    micros,
    new_log,
    owner_of,
    pin_name,
    thread_key,
)
from locus_plugin_oci.objects import ObjectInfo, OutcomeUnknown

__all__ = ["Threads"]

#: Heads that are read at a time.
_AT_A_TIME = 16

#: Heads that are remembered between two listings.
_REMEMBERED = 10_000


@frozen
class _Summary:
    """What a listing shows of a head, and what it depends on."""

    thread: str
    head: int
    token: str
    worker: str
    pulse: str
    lease: float
    since: int

    @classmethod
    def of(cls, head: Head) -> _Summary:
        return cls(head.thread, head.count, head.token, head.worker, head.pulse, head.lease, head.since)


class Threads:
    """The threads of a bucket.

    Args:
        journals: of the same store.
    """

    def __init__(self, journals: Journals) -> None:
        self._journals, self._objects = journals, journals.objects
        #: (name, ETag) -> the content of that version: it does not change.
        self._known: dict[tuple[str, str], _Summary] = {}

    # -- which there are ----------------------------------------------------------------------------

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first; each head is read once.

        Raises:
            BucketProblem: the bucket cannot be read.
            JournalError: the query asks for a status or for metadata, which a head does not hold.
        """
        await self._journals.behind()
        rows = [row async for row in self._objects.list(THREADS)]
        slots = asyncio.Semaphore(_AT_A_TIME)

        async def summary(row: ObjectInfo) -> tuple[ObjectInfo, _Summary] | None:
            async with slots:
                found = await self._summary(row)
            return None if found is None else (row, found)

        found = [each for each in await asyncio.gather(*map(summary, rows)) if each is not None]
        found.sort(key=lambda each: each[0].changed, reverse=True)
        living = await self._living([each for _, each in found if each.token])
        infos = [
            ThreadInfo(
                thread_id=each.thread,
                head=each.head,
                holder=each.worker if each.token in living else None,
                updated_at=row.changed,
                since=from_micros(each.since) if each.token in living else None,
            )
            for row, each in found
        ]
        return page(infos, query)

    async def _summary(self, row: ObjectInfo) -> _Summary | None:
        key = (row.name, row.etag)
        found = self._known.get(key) if row.etag else None
        if found is None:
            seen = await self._journals.see_object(row.name)
            if seen is None:
                return None
            found = _Summary.of(seen.head)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[row.name, seen.etag] = found
        return found

    async def _living(self, held: Sequence[_Summary]) -> set[str]:
        """The tokens of those claims whose holders live."""
        stores = {each.pulse: each.lease for each in held if each.pulse != self._journals.store}
        answers = await asyncio.gather(*(self._journals.pulse.lives(*each) for each in stores.items()))
        alive = {store for store, lives in zip(stores, answers, strict=True) if lives}
        return {
            each.token
            for each in held
            if each.pulse in alive or (each.pulse == self._journals.store and self._journals.holds(each.token))
        }

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest, also one whose worker died on it; None if no thread is due.

        Raises:
            BucketProblem: the service failed.
        """
        await self._journals.behind()
        async for row in self._objects.list(DUE, end=due_until(micros(now))):
            moment, token, key = row.name.removeprefix(DUE).split("/")
            seen = await self._journals.see_object(head_name(key))
            if seen is not None and seen.head.mark == token and seen.head.due == int(moment):
                if not await self._journals.alive(seen):
                    return seen.head.thread
            elif seen is None or seen.head.token != token:
                # The writer of the note can no longer write that head.
                with contextlib.suppress(BucketProblem, OutcomeUnknown):
                    await self._objects.delete(row.name)
        return None

    # -- forks --------------------------------------------------------------------------------------

    async def fork(self, thread_id: str, at: int, into: str, adding: Appending | None) -> None:
        """Make a thread that begins with the first entries of another one.

        Objects with entries are shared; the newest entries, which lie in the head, are copied with it.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
            BucketProblem: nothing was made.
        """
        await self._journals.behind(thread_id)
        async with self._journals.turn(into):
            seen = await self._journals.see(thread_id)
            if seen is None or not seen.head.count:
                raise NothingToResume(f"cannot fork thread {thread_id!r}: it does not exist")
            there = await self._journals.see(into)
            if there is not None and (there.head.count or await self._journals.alive(there)):
                raise JournalError(f"cannot fork {thread_id!r} into {into!r}: that thread exists; choose another id")
            if not 1 <= at <= seen.head.count:
                raise JournalError(
                    f"cannot fork {thread_id!r} after entry {at}: it has the entries 1 to {seen.head.count}"
                )
            await self._fork(seen, at, into, adding, there)

    async def _fork(self, seen: Seen, at: int, into: str, adding: Appending | None, there: Seen | None) -> None:
        key = thread_key(into)
        parts, tail, parent = await self._journals.logs.cut(seen.head, at)
        log = new_log(key)
        lent = (seen.head.log, *seen.head.shares) if parts else ()
        head = Head(thread=into, log=log, write="", count=at, parts=parts, tail=tail, parent=parent, shares=lent)
        try:
            for each in lent:
                await self._objects.put(pin_name(each, log), b"")
            if lent:
                # A deletion looks for pins when the head is gone, so one of both sees the other.
                again = await self._journals.see_object(owner_of(seen.head.log))
                if again is None or again.head.log != seen.head.log:
                    raise NothingToResume(f"thread {seen.head.thread!r} was deleted while it was forked")
            if adding is not None and adding.count:
                batch = Batch(at + 1, head.last, uuid4().hex, adding.count, adding.forms)
                head = await self._journals.logs.with_batches(head, [batch])
            made = await self._journals.write(head, None if there is None else there.etag, seen.now)
        except OutcomeUnknown as e:
            raise e.problem from e
        except BaseException:
            await self._unmade(log, lent)
            raise
        if made is None:
            await self._unmade(log, lent)
            raise JournalError(f"cannot fork into {into!r}: that thread was just created elsewhere; choose another id")

    async def _unmade(self, log: str, lent: Sequence[str]) -> None:
        with contextlib.suppress(BucketProblem, OutcomeUnknown):
            for each in lent:
                await self._objects.delete(pin_name(each, log))
            await self._empty(log)

    # -- forgetting ---------------------------------------------------------------------------------

    async def delete(self, thread_id: str, head: int | None = None) -> bool:
        """Forget a thread, and what no fork of it needs; False if it did not exist.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry.

        Raises:
            ThreadBusy: a live worker holds it.
            BucketProblem: it is still there; or it is gone, and objects of it are left in the bucket.
        """
        async with self._journals.turn(thread_id):
            while (seen := await self._journals.see(thread_id)) is not None:
                if await self._journals.alive(seen):
                    raise busy(seen.head)
                if head is not None and seen.head.count != head:
                    return False
                name = head_name(thread_key(thread_id))
                try:
                    gone = await self._objects.delete(name, match=seen.etag)
                except OutcomeUnknown:
                    gone = await self._journals.see_object(name) is None
                if gone:
                    await self._clear(seen.head)
                    return True
            return False

    async def _clear(self, head: Head) -> None:
        """Delete what only a thread needed whose head is gone."""
        try:
            if head.due is not None:
                await self._objects.delete(due_name(head.due, head.mark, thread_key(head.thread)))
            for log in head.shares:
                await self._objects.delete(pin_name(log, head.log))
                owner = await self._journals.see_object(owner_of(log))
                if owner is None or owner.head.log != log:
                    await self._empty(log)
            await self._empty(head.log)
        except OutcomeUnknown as e:
            raise e.problem from e

    async def _empty(self, log: str) -> None:
        """Delete the entries of a thread that is gone, unless a fork needs them."""
        names = [row.name async for row in self._objects.list(log)]
        if any(name.startswith(f"{log}pins/") for name in names):
            return
        slots = asyncio.Semaphore(_AT_A_TIME)

        async def drop(name: str) -> None:
            async with slots:
                await self._objects.delete(name)

        await asyncio.gather(*map(drop, names))
