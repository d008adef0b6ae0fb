"""Whether the store that holds a thread still lives: it keeps changing an object, and the service's clock is asked.

It decides only who tries to claim. A worker that was wrongly taken for dead finds the head changed, and can
write nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime

from locus_plugin_oci.errors import BucketProblem, CredentialsUnusable
from locus_plugin_oci.format import FORMAT
from locus_plugin_oci.keys import heartbeat_name
from locus_plugin_oci.objects import Objects, OutcomeUnknown

__all__ = ["Heartbeat"]


class Heartbeat:
    """The pulse of one store, and a look at those of others.

    Args:
        objects: of the bucket.
        store: the store's own name, unique for ever.
        lease: seconds of silence after which it is taken for dead.
        needed: whether anybody relies on it just now.
        settle: called at each beat, for what could not be written before.
    """

    def __init__(
        self,
        objects: Objects,
        store: str,
        lease: float,
        needed: Callable[[], bool],
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self._objects, self.store, self.lease = objects, store, lease
        self._needed, self._settle = needed, settle
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None
        self._one = asyncio.Lock()

    async def beat(self, *, now: bool = False) -> None:
        """Write the heartbeat, unless it was just written, and keep writing it as long as it is needed.

        Raises:
            BucketProblem: that could not be written.
        """
        async with self._one:
            loop = asyncio.get_running_loop()
            if now or loop.time() >= self._due:
                told = json.dumps({"format": FORMAT, "host": socket.gethostname(), "pid": os.getpid()})
                try:
                    await self._objects.put(heartbeat_name(self.store), told.encode())
                except OutcomeUnknown as e:
                    raise e.problem from e
                self._due = loop.time() + self.lease / 3
            if self._task is None:
                self._task = loop.create_task(self._beating(), name="background")

    async def _beating(self) -> None:
        loop = asyncio.get_running_loop()
        failed = False
        while True:
            await asyncio.sleep(max(0.01, self.lease / 30 if failed else self._due - loop.time()))
            try:
                await self._settle()
                if not self._needed():
                    break
                await self.beat()
            except Exception:  # noqa: BLE001  # whatever it is, the holder of a thread still lives
                failed = True
            else:
                failed = False
        self._task = None
        await self._end()

    async def _end(self, *, closing: bool = False) -> None:
        """Stop the heartbeat, unless it is needed again."""
        async with self._one:
            if self._needed() and not closing:
                if self._task is None:
                    self._task = asyncio.get_running_loop().create_task(self._beating(), name="background")
                return
            self._due = 0.0
            # One that stays behind says nothing once the lease is over.
            with contextlib.suppress(BucketProblem, CredentialsUnusable, OutcomeUnknown):
                await self._objects.delete(heartbeat_name(self.store))

    async def close(self) -> None:
        """Stop the heartbeat, and delete its object."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._due:
            await self._end(closing=True)

    async def lives(self, store: str, lease: float) -> bool:
        """Whether another store lives.

        Args:
            store: its name.
            lease: seconds that a silence of it may last.

        Raises:
            BucketProblem: the service failed.
        """
        found = await self._objects.get(heartbeat_name(store), head=True)
        return found is not None and _age(found.changed, found.now) <= lease


def _age(then: datetime, now: datetime) -> float:
    return (now - then).total_seconds()
