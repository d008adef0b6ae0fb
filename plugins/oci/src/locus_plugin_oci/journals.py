"""Journals in a bucket: taking a thread, adding to it and giving it back. Runs in the store's own event loop.

A change of a thread writes its head anew, on the condition that it is still the version that was read. So one of two
writers wins, whatever they believe and whatever their clocks say; a claim is such a write, too, and fences the claim
before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import uuid4
from weakref import WeakValueDictionary

from attrs import define, evolve, field, frozen

from locus.core.errors import StoreError, ThreadBusy
from locus.journal import Appended
from locus_plugin_oci.errors import BucketProblem, CredentialsUnusable
from locus_plugin_oci.format import Batch, Head
from locus_plugin_oci.keys import due_name, from_micros, head_name, heartbeat_name, micros, new_log, thread_key
from locus_plugin_oci.liveness import Heartbeat
from locus_plugin_oci.logs import Logs, PartMissing
from locus_plugin_oci.objects import Objects, OutcomeUnknown

__all__ = ["Appending", "Journals", "Seen"]

#: Seconds that giving everything back may take when a store is closed; a lease tells it as well.
_CLOSING = 10.0

#: How often a write is retried because another writer was faster; more is a fault.
_TRIES = 50


@frozen
class Seen:
    """A head as it was read.

    Args:
        head: the head.
        etag: of its version.
        now: the service's clock.
    """

    head: Head
    etag: str
    now: datetime


@define(eq=False)
class Appending:
    """What one append adds.

    Args:
        forms: the JSON forms of its entries, as the text of a list.
        count: how many entries.
        after: what must have been stored before, or None.
    """

    forms: bytes = field(repr=False)
    count: int
    after: Appending | None = None
    result: Appended | None = None
    error: BaseException | None = None


@define(eq=False)
class _HeldThread:
    """A claim of this store, with the newest version of the head; None = to be read again."""

    thread: str
    seen: Seen | None
    waiting: list[Appending] = field(factory=list)


@define(eq=False)
class _Turns:
    """The tasks that wait for a thread, served in the order of their requests."""

    lock: asyncio.Lock = field(factory=asyncio.Lock)


class Journals:
    """The journals of one store.

    Args:
        objects: of the bucket.
        logs: of the bucket.
        lease: seconds, see `OciSettings`.
    """

    def __init__(self, objects: Objects, logs: Logs, lease: float) -> None:
        self.objects, self.logs = objects, logs
        self.store = uuid4().hex
        self.pulse = Heartbeat(objects, self.store, lease, self._busy, self._settle)
        #: The claims of this store, by token.
        self._held: dict[str, _HeldThread] = {}
        #: Claims that are being made.
        self._claiming = 0
        #: What could not be given back: token -> thread.
        self._owed: dict[str, str] = {}
        self._turns: WeakValueDictionary[str, _Turns] = WeakValueDictionary()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """The life of the store."""
        async with self.objects.session():
            yield
            # The workers that still hold a thread are gone.
            self._owed |= {token: held.thread for token, held in self._held.items()}
            self._held.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await self._settle()
                    await self.pulse.close()

    def holds(self, token: str) -> bool:
        """Whether a claim is one of this store."""
        return token in self._held

    def _busy(self) -> bool:
        return bool(self._held or self._owed or self._claiming)

    @asynccontextmanager
    async def turn(self, thread_id: str) -> AsyncIterator[None]:
        """Keep the other tasks of this store from changing the thread meanwhile."""
        turns = self._turns.setdefault(thread_id, _Turns())
        async with turns.lock:
            yield

    async def behind(self, thread_id: str | None = None) -> None:
        """Wait for what this store has begun to change, in one thread or in all, so that the next read sees it."""
        for name in [thread_id] if thread_id is not None else list(self._turns):
            async with self.turn(name):
                pass

    # -- heads --------------------------------------------------------------------------------------

    async def see(self, thread_id: str) -> Seen | None:
        """The head of a thread, or None if the thread does not exist.

        Raises:
            BucketProblem: it cannot be read.
        """
        return await self.see_object(head_name(thread_key(thread_id)))

    async def see_object(self, name: str) -> Seen | None:
        """The head that is an object."""
        found = await self.objects.get(name)
        if found is None:
            return None
        return Seen(Head.decode(found.body, self.objects.place.bucket, name), found.etag, found.now)

    async def write(self, head: Head, etag: str | None, now: datetime) -> Seen | None:
        """Write a head in the place of a version, None = the first one. Returns None if another writer was faster.

        Raises:
            Lost: it is not known whether it was written.
            BucketProblem: it was not written.
        """
        name = head_name(thread_key(head.thread))
        head = evolve(head, write=uuid4().hex)
        try:
            made = await self.objects.put(name, head.encode(), match=etag)
        except OutcomeUnknown as lost:
            try:
                found = await self.see_object(name)
            except BucketProblem:
                raise lost from None
            if found is not None and found.head.write == head.write:
                return found
            # Deleted by another worker, possibly after it had been written; or still under way.
            raise
        return None if made is None else Seen(head, made, now)

    async def alive(self, seen: Seen) -> bool:
        """Whether a thread is held by a live worker.

        Raises:
            BucketProblem: the service failed.
        """
        head = seen.head
        if not head.token:
            return False
        if head.pulse == self.store:
            return self.holds(head.token)
        return await self.pulse.lives(head.pulse, head.lease)

    # -- claims -------------------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> tuple[Head, tuple[Batch, ...], bool]:
        """Take a thread; the head has the token. Also whether a worker that is gone still held it.

        Raises:
            ThreadBusy: a live worker holds it.
            BucketProblem: nothing was taken.
        """
        self._claiming += 1
        try:
            await self._settle()
            async with self.turn(thread_id):
                seen, is_abandoned = await self._take(thread_id, worker)
                try:
                    batches = await self._all(seen.head)
                except BaseException:
                    await self._give_back(seen.head.token, thread_id, None)
                    raise
            return seen.head, batches, is_abandoned
        finally:
            self._claiming -= 1

    async def _take(self, thread_id: str, worker: str) -> tuple[Seen, bool]:
        token, is_abandoned = uuid4().hex, False
        for _ in range(_TRIES):
            seen = await self.see(thread_id)
            if seen is None or seen.head.token != token:
                if seen is not None and await self.alive(seen):
                    raise busy(seen.head)
                is_abandoned = seen is not None and bool(seen.head.token)
                made = await self._read_taken(thread_id, worker, token, seen)
                if made is None:
                    continue
                if seen is not None and seen.head.token and seen.head.pulse != self.store:
                    await self._forget_pulse(seen.head.pulse)
                seen = made
            self._held[token] = _HeldThread(thread_id, seen)
            return seen, is_abandoned
        raise StoreError(f"thread {thread_id!r} changes too often to be claimed", store="oci")

    async def _read_taken(self, thread_id: str, worker: str, token: str, seen: Seen | None) -> Seen | None:
        await self.pulse.beat()
        if seen is None:
            key = thread_key(thread_id)
            seen_now, etag = await self._now(), None
            head = Head(thread=thread_id, log=new_log(key), write="")
        else:
            seen_now, etag, head = seen.now, seen.etag, seen.head
        head = evolve(
            head,
            token=token,
            worker=worker,
            pulse=self.store,
            lease=self.pulse.lease,
            since=micros(seen_now),
        )
        try:
            return await self.write(head, etag, seen_now)
        except OutcomeUnknown as e:
            # It may still be written, without anything referring to it.
            self._owed[token] = thread_id
            raise e.problem from e

    async def _now(self) -> datetime:
        """The service's clock."""
        found = await self.objects.get(heartbeat_name(self.store), head=True)
        return found.now if found is not None else datetime.now().astimezone()

    async def _forget_pulse(self, store: str) -> None:
        # A worker that is only slow writes another one; a missing one means as little life as an old one.
        with contextlib.suppress(BucketProblem, OutcomeUnknown):
            await self.objects.delete(heartbeat_name(store))

    async def _all(self, head: Head) -> tuple[Batch, ...]:
        return await self.logs.read(head)

    async def standing(self, thread_id: str, token: str) -> Seen | None:
        """The head, where a claim holds the thread; a claim of another store is one, too.

        Raises:
            BucketProblem: the service failed.
        """
        held = self._held.get(token)
        if held is not None and held.seen is not None:
            return held.seen
        seen = await self.see(thread_id) if token else None
        if seen is None or seen.head.token != token:
            self._held.pop(token, None)
            return None
        if held is not None:
            held.seen = seen
        return seen

    async def renew(self, thread_id: str, token: str) -> bool:
        """Whether a claim is valid; also renews this store's heartbeat.

        Raises:
            BucketProblem: the service failed.
        """
        async with self.turn(thread_id):
            seen = await self.see(thread_id) if token else None
            if seen is None or seen.head.token != token:
                self._held.pop(token, None)
                return False
            if token in self._held:
                self._remember(token, seen)
                await self.pulse.beat(now=True)
            return True

    async def release(self, thread_id: str, token: str, not_before: datetime | None) -> None:
        """Give a thread back; when it wants to go on is stored in the same write.

        Raises:
            BucketProblem: that time could not be stored. Without one, it is given back later.
        """
        async with self.turn(thread_id):
            try:
                await self._give_back(token, thread_id, not_before)
            except (BucketProblem, CredentialsUnusable):
                if not_before is not None:
                    raise

    async def _give_back(self, token: str, thread_id: str, not_before: datetime | None) -> None:
        if not token:
            return
        try:
            seen = await self.standing(thread_id, token)
            for _ in range(_TRIES):
                if seen is None:
                    return
                head = seen.head
                due = None if not_before is None else micros(not_before)
                if due is not None:
                    # Before the head: a note without a thread is recognised, a missing note is not.
                    await self._put(due_name(due, token, thread_key(thread_id)))
                mark = token if due is not None else ""
                free = evolve(head, token="", worker="", pulse="", lease=0.0, since=0, due=due, mark=mark)
                if await self.write(free, seen.etag, seen.now) is not None:
                    await self._drop_note(head)
                    return
                seen = await self._again(thread_id, token)
        except OutcomeUnknown as e:
            self._owed[token] = thread_id
            raise e.problem from e
        except (BucketProblem, CredentialsUnusable):
            self._owed[token] = thread_id
            raise
        finally:
            self._held.pop(token, None)

    async def _again(self, thread_id: str, token: str) -> Seen | None:
        self._remember(token, None)
        return await self.standing(thread_id, token)

    def _remember(self, token: str, seen: Seen | None) -> None:
        held = self._held.get(token)
        if held is not None:
            held.seen = seen

    async def _put(self, name: str) -> None:
        try:
            await self.objects.put(name, b"")
        except OutcomeUnknown as e:
            raise e.problem from e

    async def _drop_note(self, head: Head) -> None:
        """Delete the note of a time that does not hold any more; one that stays is seen through."""
        if head.due is not None:
            with contextlib.suppress(BucketProblem, OutcomeUnknown):
                await self.objects.delete(due_name(head.due, head.mark, thread_key(head.thread)))

    async def _settle(self) -> None:
        """Give back what could not be given back before."""
        for token, thread_id in tuple(self._owed.items()):
            if self._owed.pop(token, None) is None:
                continue  # another task is at it
            with contextlib.suppress(BucketProblem, CredentialsUnusable):
                async with self.turn(thread_id):
                    await self._give_back(token, thread_id, None)

    # -- entries ------------------------------------------------------------------------------------

    async def append(self, thread_id: str, token: str, adding: Appending) -> Appended:
        """Add entries, all or none. What waits for the same turn is written with them.

        Raises:
            BucketProblem: nothing was stored.
        """
        held = self._held.get(token)
        if held is not None:
            held.waiting.append(adding)
        async with self.turn(thread_id):
            if adding.result is None and adding.error is None:
                together = [adding]
                if held is not None:
                    together, held.waiting = held.waiting, []
                await self._append(thread_id, token, together)
        if adding.error is not None:
            raise adding.error
        assert adding.result is not None
        return adding.result

    async def _append(self, thread_id: str, token: str, together: Sequence[Appending]) -> None:
        """Give each its result, or its error."""
        wanted: list[Appending] = []
        for each in together:
            # The waiter of the one before gets the reason why it was not stored.
            if each.after is None or each.after.result is Appended.OK or each.after in wanted:
                wanted.append(each)
            else:
                each.result = Appended.FENCED
        if not wanted:
            return
        try:
            result = await self._store(thread_id, token, wanted)
        except Exception as e:  # noqa: BLE001  it is raised by each of those who wait
            for each in wanted:
                each.error = e
        else:
            for each in wanted:
                each.result = result

    async def _store(self, thread_id: str, token: str, wanted: Sequence[Appending]) -> Appended:
        seen = await self.standing(thread_id, token)
        for _ in range(_TRIES):
            if seen is None:
                return Appended.FENCED
            head = seen.head
            batches: list[Batch] = []
            count, parent = head.count, head.last
            for each in wanted:
                if each.count:
                    batches.append(Batch(count + 1, parent, token, each.count, each.forms))
                    count += each.count
                    parent = f"{count}:{token}"
            try:
                made = await self.write(await self.logs.with_batches(head, batches), seen.etag, seen.now)
            except OutcomeUnknown:
                self._remember(token, None)
                return Appended.UNKNOWN
            if made is not None:
                self._remember(token, made)
                return Appended.OK
            seen = await self._again(thread_id, token)
        raise StoreError(f"thread {thread_id!r} changes too often to be written to", store="oci")

    async def read(self, thread_id: str, after: int = 0) -> tuple[Head, tuple[Batch, ...]] | None:
        """A thread and its entries after a number, without claiming it; None if the thread does not exist.

        Raises:
            BucketProblem: they cannot be read.
        """
        await self.behind(thread_id)
        seen = await self.see(thread_id)
        while seen is not None:
            try:
                return seen.head, await self.logs.read(seen.head, after)
            except PartMissing:
                # Deleted while it was read?
                again = await self.see(thread_id)
                if again is not None and again.head.log == seen.head.log:
                    raise
                seen = again
        return None


def busy(head: Head) -> ThreadBusy:
    """The refusal for a thread that a live worker holds."""
    return ThreadBusy(head.thread, head.worker, from_micros(head.since).isoformat())
