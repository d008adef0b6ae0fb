"""`Intake`: where a worker's next offer comes from: its queues in turn, and a store that may fail for a while."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import anyio

from locus.core.errors import StoreError

if TYPE_CHECKING:
    from locus.journal import Offer, QueueStore
    from locus_plugin_worker.rota import Rota

__all__ = ["Intake"]

#: Seconds between two searches for the queues of a pattern.
_DISCOVER = 10.0

#: Seconds until a store that failed is asked again: the first time, and at most.
_SOON, _LATE = 0.25, 15.0


class Intake:
    """Looks for offers.

    Args:
        store: where the queues are.
        rota: the queues.
        name: of the worker.
        on_queue: is called with a queue that has turned up.
        on_error: is called with an error of the store; it is asked again later.
    """

    def __init__(
        self,
        store: QueueStore,
        rota: Rota,
        name: str,
        on_queue: Callable[[str], object],
        on_error: Callable[[StoreError], object],
    ) -> None:
        self._store, self._rota, self._name = store, rota, name
        self._on_queue, self._on_error = on_queue, on_error
        self._discover_at = -math.inf
        #: How many looks in a row the store has failed.
        self.failures = 0

    async def begin(self) -> None:
        """Ask the store for the first time.

        Raises:
            StoreError: it cannot be used.
        """
        self._find(await self._store.queues())

    async def look(self, wait: float) -> Offer | None:
        """The next offer; None when so many seconds have passed, or the store has failed."""
        try:
            await self._discover()
            queues = self._rota.turn()
            if queues:
                found = await self._store.take(queues, self._name, wait)
            else:
                found = None
                await anyio.sleep(wait)
        except StoreError as e:
            self._on_error(e)
            await anyio.sleep(min(_SOON * 2.0 ** min(self.failures, 10), _LATE))
            self.failures += 1
            return None
        self.failures = 0
        return found

    async def _discover(self) -> None:
        if self._rota.has_patterns and anyio.current_time() >= self._discover_at:
            self._find(await self._store.queues())

    def _find(self, names: Iterable[str]) -> None:
        for name in self._rota.add(names):
            self._on_queue(name)
        self._discover_at = anyio.current_time() + _DISCOVER
