"""`Threaded`: what lives in a thread of its own, which a fork of the process starts again and closing ends."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import anyio
import anyio.to_thread

from locus_plugin_oci.worker import Worker

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Engine", "Threaded"]


class Engine(Protocol):
    """What lives in the thread."""

    @property
    def worker(self) -> Worker:
        """The thread."""
        ...


EngineT = TypeVar("EngineT", bound=Engine)


class Threaded(Generic[EngineT]):
    """Owns an engine and its thread; what is dropped without being closed ends its thread.

    Args:
        make: makes the engine, again in a process that was forked: the thread did not come along.
    """

    def __init__(self, make: Callable[[], EngineT]) -> None:
        self._make, self._closed = make, False
        self._start()

    def _start(self) -> None:
        self._engine = self._make()
        self._dropped = weakref.finalize(self, self._engine.worker.stop)
        self._dropped.atexit = False  # the worker sees to that itself

    def _running(self) -> EngineT:
        """The engine; of a closed owner the one that was stopped."""
        if self._engine.worker.pid != os.getpid() and not self._closed:
            self._dropped.detach()
            self._start()
        return self._engine

    async def aclose(self) -> None:
        """Finish what was begun, and end the thread; closing again does nothing."""
        self._closed = True
        self._dropped.detach()
        self._engine.worker.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._engine.worker.join)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
