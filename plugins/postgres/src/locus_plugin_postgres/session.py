"""The connections of a store, and what it holds. Lives in the runner's thread and is touched by no other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import uuid4

import asyncpg
from attrs import define, field

from locus.core.errors import LocusError
from locus.core.journal import BLANK
from locus.core.state import AgentState
from locus.journal import Watch
from locus.journal.listing import NEW, About, Progress
from locus_kit.folds import Folds
from locus_plugin_postgres.address import Address
from locus_plugin_postgres.errors import PostgresProblem, PostgresUnreachable
from locus_plugin_postgres.failures import is_passing, is_undone, problem
from locus_plugin_postgres.folds import KeptFold
from locus_plugin_postgres.hints import Hints
from locus_plugin_postgres.schema import in_schema, settle
from locus_plugin_postgres.settings import PostgresSettings
from locus_plugin_postgres.tls import arguments

__all__ = ["Held", "Session"]

T = TypeVar("T")

#: How the statements of a call belong together: each alone, all or none, or all of them as at one moment.
Together = Literal["", "write", "read"]

_BEGIN = {"write": "BEGIN", "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}

#: Seconds to wait before another try, at first and at most.
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5

#: Seconds for which a store that closes tries to give its threads back.
_GOODBYE = 2.0

#: Seconds between two looks for signals and lost claims.
_LOOK = 2.0

_REGISTER = """
INSERT INTO {s}.workers (id, place, renewed) VALUES ($1, $2, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET renewed = clock_timestamp()
"""
_CLEAN = """
DELETE FROM {s}.workers w WHERE renewed < clock_timestamp() - interval '1 day'
AND NOT EXISTS (SELECT 1 FROM {s}.threads t WHERE t.worker = w.id)
"""
_RELEASE = """
UPDATE {s}.threads SET token = '', worker = NULL, not_before = $3, updated = clock_timestamp()
WHERE key = $1 AND token = $2
"""
_RELEASE_ALL = "UPDATE {s}.threads SET token = '', worker = NULL, updated = clock_timestamp() WHERE worker = $1"


@define
class Held:
    """A claim of this store.

    Args:
        thread: id of the thread's row.
        head: number of its newest entry; None = to be read again.
        tip: writer of that.
        progress: how far the thread's newest run is there.
        about: what the thread is about.
        at: of its newest snapshot; 0 = it has none, None = it is not known, so no other follows.
        state: the state there.
        watch: of the claim.
        shown: the numbers of the signals that it was shown.
    """

    thread: int
    head: int | None
    tip: str = ""
    progress: Progress = NEW
    about: About = field(factory=About)
    at: int | None = 0
    state: AgentState = BLANK
    watch: Watch | None = None
    shown: set[int] = field(factory=set)


def _always() -> bool:
    return True


class Session:
    """Connections are made when they are needed, and again when they are lost."""

    def __init__(self, address: Address, settings: PostgresSettings) -> None:
        self.address, self.settings = address, settings
        self.worker = uuid4().hex
        self.lease = timedelta(seconds=settings.lease)
        #: The claims of this store, by token.
        self.held: dict[str, Held] = {}
        #: Claims that were given back and could not be written so yet: token -> key of the thread, not before.
        self.owed: dict[str, tuple[bytes, datetime | None]] = {}
        #: By id of the thread's row.
        self.folds: Folds[int, KeptFold] = Folds()
        self._idle: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(settings.connections)
        self._registered = False
        self.hints = Hints(settings.schema, None if settings.pooler else self._connect)
        #: Looks after the claims of this store, see `signals.watch`.
        self.on_look: Callable[[], Awaitable[None]] | None = None
        #: Whether the program that uses this store is at work, see `PostgresStore.renew_while`.
        self.is_alive: Callable[[], bool] = _always

    # -- connections ------------------------------------------------------------------------------

    def sql(self, statement: str) -> str:
        """A statement about the tables of this store."""
        return in_schema(statement, self.settings.schema)

    async def run(
        self,
        work: Callable[[asyncpg.Connection, bool], Awaitable[T]],
        *,
        together: Together = "",
        patience: float | None = None,
    ) -> T:
        """Do something with a connection; where that is lost, again with another one.

        Args:
            work: called with a connection, and whether an earlier call of it was broken off and may have been done. It
                must be harmless to do again.
            together: how its statements belong together.
            patience: seconds in all; that of the settings when None. A server that cannot be reached is tried no
                longer than the settings say, however long the work itself may take.

        Raises:
            PostgresProblem: it could not be done.
        """
        now = asyncio.get_running_loop().time
        limit = self.settings.patience if patience is None else patience
        deadline = now() + limit
        was_begun, pause, failure = False, _PAUSE, None
        away_since: float | None = None
        while True:
            tried_at, is_connected = now(), False
            try:
                async with asyncio.timeout_at(deadline), self._connection() as db:
                    is_connected = True
                    try:
                        async with self._together(db, together):
                            return await work(db, was_begun)
                    except BaseException as e:
                        was_begun = was_begun or not (isinstance(e, Exception) and is_undone(e))
                        raise
            except LocusError:
                raise
            except Exception as e:  # noqa: BLE001 - it becomes one of ours
                # That time is over says less than what went wrong before.
                failure = failure if isinstance(e, TimeoutError) and failure is not None else e
                if is_connected:
                    away_since, end = None, deadline
                else:
                    away_since = tried_at if away_since is None else away_since
                    end = min(deadline, away_since + self.settings.patience)
                if not is_passing(e) or now() + pause > end:
                    tried = limit if end == deadline else self.settings.patience
                    self._raise(failure, tried, is_unknown=was_begun)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _raise(self, error: Exception, patience: float, *, is_unknown: bool) -> None:
        made = problem(error, self.address, patience)
        if isinstance(made, PostgresUnreachable):
            made.is_unknown = is_unknown
        if isinstance(error, asyncpg.ClientConfigurationError):  # which may quote the address
            error = Exception("the address or a file that it names is invalid")
        raise made from error

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        async with self._free:
            while self._idle and self._idle[-1].is_closed():
                self._idle.pop()
            db = self._idle.pop() if self._idle else await self._connect()
            try:
                yield db
            except LocusError:  # said after the server was asked, in good order
                self._idle.append(db)
                raise
            except asyncpg.PostgresError as e:
                if is_passing(e) or db.is_in_transaction():
                    db.terminate()
                else:
                    self._idle.append(db)
                raise
            except BaseException:
                db.terminate()
                raise
            self._idle.append(db)

    async def _connect(self) -> asyncpg.Connection:
        settings = self.settings
        db = await asyncpg.connect(
            **arguments(self.address, settings),
            timeout=settings.patience,
            # A statement that was prepared on one connection of a pooler is not there on the next one.
            statement_cache_size=0 if settings.pooler else 100,
            server_settings={"application_name": "locus"} if settings.pooler else self._options(),
        )
        try:
            await settle(db, self.address, settings.schema)
        except BaseException:
            db.terminate()
            raise
        return db

    def _options(self) -> dict[str, str]:
        """The options of a connection: a worker that hangs in a transaction must not hold others up."""
        return {
            "application_name": "locus",
            "synchronous_commit": "on" if self.settings.sync == "full" else "off",
            "idle_in_transaction_session_timeout": str(round(self.settings.patience * 1000)),
        }

    @contextlib.asynccontextmanager
    async def _together(self, db: asyncpg.Connection, together: Together) -> AsyncIterator[None]:
        if self.settings.pooler:
            set_all = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in self._options().items())
            await db.execute(f"{_BEGIN[together or 'write']}; {set_all}")
        elif together:
            await db.execute(_BEGIN[together])
        else:
            yield
            return
        try:
            yield
        except BaseException:
            if not db.is_closed():
                with contextlib.suppress(Exception):
                    await db.execute("ROLLBACK")
            raise
        await db.execute("COMMIT")

    # -- life -------------------------------------------------------------------------------------

    async def register(self) -> None:
        """Say that this store lives, before its first claim."""
        if not self._registered:
            await self.run(lambda db, _: self.renew(db))
            self._registered = True

    async def renew(self, db: asyncpg.Connection) -> None:
        """Say that this store lives."""
        if not self._registered:
            await db.execute(self.sql(_CLEAN))
        place = f"pid {os.getpid()} on {socket.gethostname()}"
        await db.execute(self.sql(_REGISTER), self.worker, place)

    async def keep_alive(self) -> None:
        """Renew the lease three times in its time, and settle what is owed; never returns."""
        third, look = self.settings.lease / 3, min(self.settings.lease / 3, _LOOK)
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(look)
            if self.held and self.on_look is not None:
                await self.on_look()
            if loop.time() < renewed + third - look / 2:
                continue
            renewed = loop.time()
            if not (self.held or self.owed) or not self.is_alive():
                continue
            with contextlib.suppress(LocusError):  # the next call reports it
                await self.run(lambda db, _: self.renew(db), patience=self.settings.lease / 3)
                await self.settle_owed()

    def lose_claim(self, token: str) -> None:
        """A claim is over, because another one was made."""
        held = self.held.pop(token, None)
        if held is not None and held.watch is not None:
            held.watch.lose()

    async def settle_owed(self) -> None:
        """Write that claims were given back."""
        for token, (key, not_before) in tuple(self.owed.items()):
            await self.release(key, token, not_before)

    async def release(self, key: bytes, token: str, not_before: datetime | None) -> None:
        """Write that a claim was given back, if it is still valid."""
        self.owed[token] = key, not_before
        self.held.pop(token, None)
        await self.run(lambda db, _: db.execute(self.sql(_RELEASE), key, token, not_before))
        self.owed.pop(token, None)

    async def close(self) -> None:
        """Give everything back and close the connections."""
        if self._registered:
            with contextlib.suppress(PostgresProblem):
                await self.run(self._leave, patience=_GOODBYE)
        await self.hints.close()
        for db in self._idle:
            with contextlib.suppress(Exception):
                await db.close(timeout=_GOODBYE)
        self._idle.clear()

    async def _leave(self, db: asyncpg.Connection, _: Any) -> None:
        for token, (key, not_before) in self.owed.items():
            await db.execute(self.sql(_RELEASE), key, token, not_before)
        await db.execute(self.sql(_RELEASE_ALL), self.worker)
        await db.execute(self.sql("DELETE FROM {s}.workers WHERE id = $1"), self.worker)
