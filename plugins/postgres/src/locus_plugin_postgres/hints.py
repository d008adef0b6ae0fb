"""Hints: a waiting worker looks at once where another process wrote something for it. They may be lost at any time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sys
from collections.abc import Awaitable, Callable
from threading import Lock

import anyio
import asyncpg

from locus_plugin_postgres.rows import encode

__all__ = ["Hints", "key_of_queue", "make_setter"]


def key_of_queue(queue: str) -> str:
    """What a hint names a queue by: a payload is short, and ASCII."""
    return hashlib.sha256(encode(queue)).hexdigest()[:32]


def make_setter(event: anyio.Event) -> Callable[[], object]:
    """What sets an event of the task under way, from any thread."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        run: Callable[..., object] = trio.lowlevel.current_trio_token().run_sync_soon
    else:
        run = asyncio.get_running_loop().call_soon_threadsafe

    def set_event() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            run(event.set)

    return set_event


class Hints:
    """A connection that listens, and who is to be told.

    Args:
        schema: of the tables.
        connect: makes the connection; None where a pooler would lend it to others.
    """

    def __init__(self, schema: str, connect: Callable[[], Awaitable[asyncpg.Connection]] | None) -> None:
        #: Of this schema; a name of PostgreSQL has 63 bytes.
        self.channel = f"locus_{hashlib.sha256(schema.encode()).hexdigest()[:16]}"
        self._connect = connect
        self._db: asyncpg.Connection | None = None
        self._opening = asyncio.Lock()
        self._lock = Lock()
        self._listeners: dict[object, tuple[frozenset[str], Callable[[], object]]] = {}

    def add(self, keys: frozenset[str], tell: Callable[[], object]) -> object:
        """Have a function called, in the thread of the store, when one of the keys is named; gives what ends that."""
        listener = object()
        with self._lock:
            self._listeners[listener] = keys, tell
        return listener

    def remove(self, listener: object) -> None:
        """Call it no more."""
        with self._lock:
            self._listeners.pop(listener, None)

    async def listen(self) -> bool:
        """Listen from now on; False where that is not possible at the moment."""
        if self._connect is None:
            return False
        async with self._opening:
            if self._db is not None and not self._db.is_closed():
                return True
            with contextlib.suppress(Exception):  # a look at the tables finds the same, a little later
                self._db = await self._connect()
                await self._db.add_listener(self.channel, lambda *said: self._hear(said[3]))
                return True
        return False

    async def send(self, db: asyncpg.Connection, key: str) -> None:
        """Name a key, when the transaction under way is committed."""
        await db.execute("SELECT pg_notify($1, $2)", self.channel, key)

    def _hear(self, key: str) -> None:
        with self._lock:
            found = [tell for keys, tell in self._listeners.values() if key in keys]
        for tell in found:
            tell()

    async def close(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.terminate()
