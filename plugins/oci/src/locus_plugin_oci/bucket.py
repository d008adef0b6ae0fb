"""`OCIBucketBackend`: what ``checkpointer="oci:bucket/prefix"`` is."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from attrs import evolve

from locus.core.errors import ConfigError
from locus.core.journal import Body, Entry, entry_from_json, entry_to_json
from locus.journal import Appended, Claim, ThreadInfo, ThreadQuery
from locus_plugin_oci.credentials import Credentials
from locus_plugin_oci.errors import BucketDamaged, StoreClosed
from locus_plugin_oci.format import Batch
from locus_plugin_oci.journals import Appending, Journals
from locus_plugin_oci.logs import Logs
from locus_plugin_oci.objects import Objects, Place
from locus_plugin_oci.ownership import Threaded
from locus_plugin_oci.settings import OciSettings
from locus_plugin_oci.threads import Threads
from locus_plugin_oci.worker import Worker, in_event_loop, wait_for

if TYPE_CHECKING:
    from locus.core.journal import Transition
    from locus.core.state import AgentState
    from locus.journal import Posted

__all__ = ["OCIBucketBackend", "checked_place", "make"]

T = TypeVar("T")

_BUCKET = re.compile(r"[A-Za-z0-9_.-]{1,256}")


class _Engine:
    """What lives in the thread of a store."""

    def __init__(self, place: Place, settings: OciSettings) -> None:
        objects = Objects(place, Credentials(settings))
        self.journals = Journals(objects, Logs(objects), settings.lease)
        self.threads = Threads(self.journals)
        self.worker = Worker(self.journals.session, f"locus-oci {place.bucket}")


class OCIBucketBackend(Threaded[_Engine]):
    """Journals in a bucket of OCI Object Storage, shared by any number of stores, processes and machines.

    An append is one request: the thread's head is rewritten if it is still the version that was read
    (``if-match``), so of two workers only the one that claimed last can write, whatever their clocks say. Everything is
    done in one thread of the store's own. A call that is cancelled leaves at once, and what it began is stored or fails
    without it.

    Nothing is asked before the first call. Close it with ``await store.aclose()`` or ``async with``; a store that is
    dropped closes itself.

    Args:
        bucket: its name. It must exist; versions and retention rules make no sense for it.
        namespace: of the bucket; None = as the settings say, else asked for.
        prefix: of the names of all objects; stores with different prefixes know nothing of each other.
        region: see `OciSettings`; None = as the settings say.
        profile: the same.
        endpoint: the address of Object Storage; None = as the settings say.
        settings: who signs, the lease, and the rest; None = the defaults.

    Raises:
        ConfigError: the bucket or the prefix cannot be the name of one.
    """

    keeps_history = True
    #: Entries are read many at a time, so a cached fold would save little.
    snapshot_every = None

    def __init__(
        self,
        bucket: str,
        *,
        namespace: str | None = None,
        prefix: str = "locus",
        region: str | None = None,
        profile: str | None = None,
        endpoint: str | None = None,
        settings: OciSettings | None = None,
    ) -> None:
        own = settings or OciSettings()
        self.settings = evolve(
            own,
            region=region or own.region,
            profile=profile or own.profile,
            namespace=namespace or own.namespace,
            storage_endpoint=endpoint or own.storage_endpoint,
        )
        self._place = checked_place(bucket, prefix, self.settings)
        self.bucket, self.prefix = bucket, self._place.prefix.rstrip("/")
        super().__init__(partial(_Engine, self._place, self.settings))

    def __repr__(self) -> str:
        return f"OCIBucketBackend({self.bucket!r}, prefix={self.prefix!r})"

    # -- the thread ---------------------------------------------------------------------------------

    def _begin(self, work: Callable[[_Engine], Coroutine[Any, Any, T]]) -> Future[T]:
        engine = self._running()
        future = engine.worker.submit(lambda: work(engine))
        if future is None:
            raise StoreClosed(f"the store of bucket {self.bucket!r} was closed; make another one", store="oci")
        return future

    async def _do(self, work: Callable[[_Engine], Coroutine[Any, Any, T]]) -> T:
        return await wait_for(self._begin(work))

    # -- the protocol -------------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Claim a thread, also from a worker whose lease has expired.

        Raises:
            ThreadBusy: a live worker holds it.
            BucketProblem: nothing was taken.
            CredentialsUnusable: no usable credentials were found.
        """
        future = self._begin(lambda engine: engine.journals.claim(thread_id, worker))
        try:
            head, batches, is_abandoned = await wait_for(future)
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not release it.
            future.add_done_callback(self._release_unclaimed)
            raise
        try:
            entries = self._entries(thread_id, batches)
        except BaseException:
            self._begin(lambda engine: engine.journals.release(thread_id, head.token, None))
            raise
        return Claim(thread_id=thread_id, token=head.token, head=head.count, entries=entries, is_abandoned=is_abandoned)

    def _release_unclaimed(self, future: Future[Any]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        head, _, _ = future.result()
        with contextlib.suppress(StoreClosed):
            self._begin(lambda engine: engine.journals.release(head.thread, head.token, None))

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none. Those that wait for each other are written together.

        Returns:
            `Appended.UNKNOWN` where the answer was lost, and reading the head did not help either.

        Raises:
            NotSerialisable: one of them has no JSON form.
            BucketProblem: nothing was stored.
        """
        return await self.post(claim, bodies).wait()

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        """Begin an append. The order of posts is the order of entries, and nothing is stored behind one that was not.

        Raises:
            NotSerialisable: one of the bodies has no JSON form; nothing was begun.
        """
        adding = Appending(
            _encode_bodies(bodies), len(bodies), after.adding if isinstance(after, _PendingPost) else None
        )
        thread_id, token = claim.thread_id, claim.token
        return _PendingPost(adding, self._begin(lambda engine: engine.journals.append(thread_id, token, adding)))

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Nothing is cached; whether the claim is still valid."""

        async def standing(engine: _Engine) -> bool:
            async with engine.journals.turn(claim.thread_id):
                return await engine.journals.standing(claim.thread_id, claim.token) is not None

        return await self._do(standing)

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim is still valid. A timer renews the lease; calling this is not needed for that."""
        return await self._do(lambda engine: engine.journals.renew(claim.thread_id, claim.token))

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back. If that cannot be written and has no due time, it is written later.

        Raises:
            BucketProblem: the time when it wants to go on could not be stored.
        """
        thread_id, token = claim.thread_id, claim.token
        try:
            future = self._begin(lambda engine: engine.journals.release(thread_id, token, not_before))
        except StoreClosed:
            return  # which gave everything back
        if in_event_loop():
            await wait_for(future)

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest, also one whose worker died on it."""
        return await self._do(lambda engine: engine.threads.next_ready(now))

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread; empty for an unknown one."""
        after = max(0, after)
        found = await self._do(lambda engine: engine.journals.read(thread_id, after))
        return () if found is None else self._entries(thread_id, found[1], after)

    async def peek(self, thread_id: str) -> Claim | None:
        """The entries of a thread, without claiming it."""
        found = await self._do(lambda engine: engine.journals.read(thread_id))
        if found is None or not found[0].count:
            return None
        entries = self._entries(thread_id, found[1])
        return Claim(thread_id=thread_id, token="", head=found[0].count, entries=entries)

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first; a dead worker is not a holder.

        Raises:
            JournalError: the query asks for a status or for metadata, which this store does not record.
        """
        return await self._do(lambda engine: engine.threads.threads(query))

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Make a thread that begins with the first entries of another one.

        Args:
            thread_id: the thread to fork; it may be held.
            at: how many of its entries the new one begins with, from 1.
            into: the new thread's id.
            bodies: entries to write behind those, in the same write.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
            NotSerialisable: one of the bodies has no JSON form.
        """
        adding = Appending(_encode_bodies(bodies), len(bodies)) if bodies else None
        await self._do(lambda engine: engine.threads.fork(thread_id, at, into, adding))

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread. Its forks keep what they share with it.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry.

        Raises:
            ThreadBusy: a live worker holds it.
        """
        return await self._do(lambda engine: engine.threads.delete(thread_id, head))

    def _entries(self, thread_id: str, batches: Sequence[Batch], after: int = 0) -> tuple[Entry, ...]:
        """Decoded where they are wanted: the store's thread has others to serve."""
        made: list[Entry] = []
        for batch in batches:
            try:
                forms = _decode_bodies(batch.forms)[: batch.count]
                if len(forms) != batch.count:
                    raise ValueError("entries are missing")
            except (ValueError, TypeError) as e:
                raise BucketDamaged(
                    self.bucket, f"entry {batch.first} of thread {thread_id!r} cannot be read; delete the thread"
                ) from e
            skip = max(0, after + 1 - batch.first)
            for n, form in enumerate(forms[skip:], batch.first + skip):
                parent = batch.parent if n == batch.first else f"{n - 1}:{batch.writer}"
                made.append(Entry(n, batch.writer, parent, entry_from_json(form)))
        return tuple(made)


def checked_place(bucket: str, prefix: str, settings: OciSettings) -> Place:
    """A place in a bucket.

    Args:
        bucket: its name.
        prefix: of the names of all objects; slashes at its ends do not matter.
        settings: the rest.

    Raises:
        ConfigError: the bucket or the prefix cannot be the name of one.
    """
    if _BUCKET.fullmatch(bucket) is None:
        raise ConfigError(f"bucket must consist of letters, digits, '-', '_' and '.', got {bucket!r:.100}")
    words = [word for word in prefix.split("/") if word]
    if any(word in (".", "..") or not word.isprintable() for word in words) or len(prefix) > 400:
        raise ConfigError(f"prefix must be names with slashes between them, like 'team/runs', got {prefix!r:.100}")
    return Place(
        bucket=bucket,
        namespace=settings.namespace,
        prefix="".join(f"{word}/" for word in words),
        endpoint=settings.storage_endpoint,
        timeout=settings.storage_timeout,
        connect_timeout=settings.connect_timeout,
        retries=settings.retries,
        connections=settings.connections,
    )


class _PendingPost:
    """An append under way."""

    __slots__ = ("_future", "adding")

    def __init__(self, adding: Appending, future: Future[Appended]) -> None:
        self.adding, self._future = adding, future

    async def wait(self) -> Appended:
        return await wait_for(self._future)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def _encode_bodies(bodies: Sequence[Body]) -> bytes:
    forms = [entry_to_json(body) for body in bodies]
    try:
        return _encode(forms)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
        return json.dumps(forms, separators=(",", ":")).encode()


def _decode_bodies(text: bytes) -> list[Any]:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found: list[Any] = json.loads(text)
        return found


def make(rest: str, settings: OciSettings | None = None) -> OCIBucketBackend:
    """The store behind ``"oci:BUCKET"`` or ``"oci:BUCKET/PREFIX"``."""
    bucket, _, prefix = rest.partition("/")
    return OCIBucketBackend(bucket, prefix=prefix or "locus", settings=settings)
