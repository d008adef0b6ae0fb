"""`PostgresStore`: what ``checkpointer="postgres://..."`` is.

Each call runs in one thread of the store's own. For all of them:

1. Calls about a thread are done in the order in which they were made, those about different threads side by side.
2. An append is one statement, which stores all of it or nothing, and only where the token of its claim is still there
   and the head is the one that it continues. No clock takes part in that.
3. Where an answer is lost, the same is asked again until `patience` is over. Every statement can be: it finds what it
   has done before by its token.
4. A task that is cancelled waits until its call is done, so it always knows whether its append was stored.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from locus.core.journal import entry_to_json
from locus.journal import Appended, Claim, ThreadInfo, ThreadQuery
from locus.plugins import Secret
from locus_plugin_postgres import claims, entries, threads
from locus_plugin_postgres.address import Address
from locus_plugin_postgres.errors import StoreClosed
from locus_plugin_postgres.handle import wait_for
from locus_plugin_postgres.queue_store import QueueHandle
from locus_plugin_postgres.rows import key_of
from locus_plugin_postgres.runner import Call
from locus_plugin_postgres.session import Session
from locus_plugin_postgres.settings import PostgresSettings, Sync, Tls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from locus.core.journal import Body, Entry, Transition
    from locus.core.state import AgentState
    from locus.journal import Posted, Snapshot

__all__ = ["PostgresStore", "make"]

T = TypeVar("T")


class PostgresStore(QueueHandle):
    """Journals in PostgreSQL, which may be shared by any number of stores, processes and machines.

    The first call connects, and makes the tables if they are missing. A call that is cancelled does its work first, so
    an append whose task was cancelled has been stored, or has failed, when the cancellation arrives.

    Close it with ``await store.aclose()`` or ``async with``. A store that is dropped closes itself.

    Args:
        address: ``"postgres://USER@HOST:PORT/DATABASE"``. What it leaves out, the variables of libpq say (``PGUSER``
            and others). Its password is never shown.
        schema: see `PostgresSettings`, as for all that follows.
        password: a `Secret`.
        tls: how the server is authenticated.
        ca_file: certificates that sign that of the server.
        cert_file: certificate of the client.
        key_file: its private key.
        sync: ``"full"`` or ``"normal"``.
        lease: seconds.
        patience: seconds.
        connections: the most that this store opens.
        pooler: whether a pooler in transaction mode is in between.

    Raises:
        ConfigError: the address cannot be read.
        ValueError: another argument is invalid.
    """

    keeps_history = True
    snapshot_every = claims.SNAPSHOT_EVERY

    def __init__(
        self,
        address: str,
        *,
        schema: str = "locus",
        password: Secret | None = None,
        tls: Tls | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        sync: Sync = "full",
        lease: float = 30.0,
        patience: float = 10.0,
        connections: int = 4,
        pooler: bool = False,
    ) -> None:
        settings = PostgresSettings(
            schema=schema,
            password=password,
            tls=tls,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            sync=sync,
            lease=lease,
            patience=patience,
            connections=connections,
            pooler=pooler,
        )
        super().__init__(Address.parse(address), settings)
        self._folds: dict[str, Snapshot] = {}

    # -- the protocol -----------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread, also from a worker whose lease has ended.

        Raises:
            ThreadBusy: a live worker holds it.
            PostgresProblem: the server cannot be used.
        """
        token = uuid4().hex
        try:
            return await self._do((thread_id,), lambda session: claims.claim(session, thread_id, worker, token))
        except Exception:
            raise
        except BaseException:
            # The caller was cancelled, and will not give it back.
            with contextlib.suppress(StoreClosed):
                self._begin((thread_id,), lambda session: session.release(key_of(thread_id), token, None))
            raise

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries, all or none.

        Raises:
            NotSerialisable: one of them has no JSON form.
            PostgresProblem: nothing was stored.
        """
        return await self.post(claim, bodies).wait()

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        """Begin an append. The order of posts is the order of entries, and nothing is stored behind one that was not.

        Raises:
            NotSerialisable: one of the bodies has no JSON form; nothing was begun.
        """
        known = tuple(bodies)
        # In the thread that made them: the values are in the cache of that processor.
        forms = [entry_to_json(body) for body in known]
        before = after.call if isinstance(after, _Posted) else None

        async def work(session: Session) -> Appended:
            if before is not None and (before.error is not None or before.result is not Appended.OK):
                return Appended.FENCED  # the task that waits for that one gets the reason
            return await entries.append(session, claim, known, forms)

        return _Posted(self._begin((claim.thread_id,), work))

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache a fold: what became of the state since the one before is written."""
        return await self._do((claim.thread_id,), lambda session: claims.snapshot(session, claim, at, state, last))

    async def renew(self, claim: Claim) -> bool:
        """Whether the claim is still valid. A timer renews leases; this need not be called for that."""
        return await self._do((claim.thread_id,), lambda session: claims.renew(session, claim))

    def renew_while(self, is_alive: Callable[[], bool]) -> None:
        """Let the timer renew leases only while this says so: others get the threads of a program that hangs.

        Args:
            is_alive: called in the store's thread, three times in a lease.
        """
        self._runner.session.is_alive = is_alive

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back. Where that cannot be written, it is written later.

        Raises:
            PostgresProblem: it could not be written yet.
        """
        fold = self._folds.pop(claim.token, None)
        with contextlib.suppress(StoreClosed):  # which gave everything back
            await self._do((claim.thread_id,), lambda session: claims.release(session, claim, not_before, fold))

    def keep_fold(self, claim: Claim, fold: Snapshot) -> None:
        """Remember it, when the thread is given back."""
        self._folds[claim.token] = fold

    async def next_ready(self, now: datetime) -> str | None:
        """The thread that has waited longest, also one whose worker died on it."""
        return await self._do(None, lambda session: threads.next_ready(session, now))

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The entries of a thread; empty for an unknown one."""
        return await self._do((thread_id,), lambda session: entries.read(session, thread_id, after))

    async def read_page(self, thread_id: str, after: int, count: int) -> tuple[Entry, ...]:
        """At most ``count`` entries of a thread, those after a number; it costs what these cost.

        Args:
            thread_id: the thread; empty for an unknown one.
            after: number of the entry before the first one wanted, from 0.
            count: 1 or more.
        """
        return await self._do((thread_id,), lambda session: entries.read(session, thread_id, after, count))

    async def head(self, thread_id: str) -> int:
        """The number of a thread's newest entry; 0 for an unknown thread."""
        return await self._do((thread_id,), lambda session: entries.read_head(session, thread_id))

    async def state_at(self, thread_id: str, n: int) -> AgentState | None:
        """The state after the first ``n`` entries of a thread, from 1; None where it has fewer.

        It costs what the state holds, and not what the thread has written: it is folded from the snapshots before it.
        """
        return await self._do((thread_id,), lambda session: claims.state_at(session, thread_id, n))

    async def peek(self, thread_id: str) -> Claim | None:
        """The entries of a thread, without taking it."""
        return await self._do((thread_id,), lambda session: claims.peek(session, thread_id))

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, the most recently changed first; a dead worker is not a holder.

        Raises:
            JournalError: the query's ``after`` is not a thread.
        """
        return await self._do(None, lambda session: threads.threads(session, query or ThreadQuery()))

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread. Its forks keep what they share with it.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry.

        Raises:
            ThreadBusy: a live worker holds it.
        """
        return await self._do((thread_id,), lambda session: threads.delete(session, thread_id, head))

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """Make a thread that begins with the first entries of another one; the server copies them.

        Args:
            thread_id: the thread to fork; it may be held.
            at: how many of its entries the new one begins with, from 1.
            into: the new thread's id.
            bodies: entries to write behind those, in the same transaction.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, or ``at`` is not the number of an entry.
            NotSerialisable: one of the bodies has no JSON form.
        """
        known, born = tuple(bodies), uuid4().hex
        forms = [entry_to_json(body) for body in known]
        await self._do(
            (thread_id, into), lambda session: threads.fork(session, thread_id, at, into, known, forms, born)
        )

    # -- the server -------------------------------------------------------------------------------

    async def setup(self) -> None:
        """Make the tables, or migrate those of an older version: what the first call of any store does as well.

        For a user that may do this, so that the users of workers need not be allowed to.

        Raises:
            PostgresProblem: they cannot be made, or are of a newer version.
        """
        await self._do((), lambda session: session.run(_nothing))


async def _nothing(_: object, __: object) -> None:
    """Connecting is all that is wanted."""


class _Posted:
    """An append under way."""

    __slots__ = ("call",)

    def __init__(self, call: Call[Appended]) -> None:
        self.call = call

    async def wait(self) -> Appended:
        return await wait_for(self.call)


def make(rest: str, settings: PostgresSettings) -> PostgresStore:
    """The store behind ``"postgres://..."``."""
    return PostgresStore(
        f"postgres:{rest}",
        schema=settings.schema,
        password=settings.password,
        tls=settings.tls,
        ca_file=settings.ca_file,
        cert_file=settings.cert_file,
        key_file=settings.key_file,
        sync=settings.sync,
        lease=settings.lease,
        patience=settings.patience,
        connections=settings.connections,
        pooler=settings.pooler,
    )
