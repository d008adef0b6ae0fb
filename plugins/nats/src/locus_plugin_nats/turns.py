"""What is asked of one thread of the journal is done one at a time, in the order in which it was asked."""

from __future__ import annotations

import asyncio

from attrs import define, field

__all__ = ["Queued", "Turn"]


@define
class Queued:
    """Those who want to do something with one thread.

    Args:
        lock: held by the one whose turn it is.
        count: how many they are, with that one.
    """

    lock: asyncio.Lock = field(factory=asyncio.Lock)
    count: int = 0


class Turn:
    """``async with`` waits for it. Each write takes one, and a generator made into a context costs three times as much.

    Args:
        queued: thread -> those who want to do something with it; only threads with one.
        key: of the thread.
    """

    __slots__ = ("_key", "_queued")

    def __init__(self, queued: dict[str, Queued], key: str) -> None:
        self._queued, self._key = queued, key

    async def __aenter__(self) -> None:
        queued = self._queued.get(self._key)
        if queued is None:
            queued = self._queued[self._key] = Queued()
        queued.count += 1
        try:
            await queued.lock.acquire()
        except BaseException:
            self._leave(queued)
            raise

    async def __aexit__(self, *_: object) -> None:
        queued = self._queued[self._key]
        queued.lock.release()
        self._leave(queued)

    def _leave(self, queued: Queued) -> None:
        queued.count -= 1
        if not queued.count:
            del self._queued[self._key]
