"""A store's handle on its runner: calls go there and come back, on whichever event loop the caller is."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from locus_kit.waiters import make_waiter
from locus_plugin_postgres import signals
from locus_plugin_postgres.address import Address
from locus_plugin_postgres.errors import StoreClosed
from locus_plugin_postgres.runner import Call, Runner
from locus_plugin_postgres.session import Session
from locus_plugin_postgres.settings import PostgresSettings

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Handle", "wait_for"]

T = TypeVar("T")
Self = TypeVar("Self", bound="Handle")

#: Runners of the process that this one is a fork of: their connections are not to be closed from here.
_inherited: list[Runner] = []


class Handle:
    """Begins calls, and closes.

    Args:
        address: of the server.
        settings: of the store.
    """

    def __init__(self, address: Address, settings: PostgresSettings) -> None:
        self._address, self.settings = address, settings
        self._closed = False
        self._runner, self._dropped = self._start()

    def _start(self) -> tuple[Runner, weakref.finalize[[], Handle]]:
        session = Session(self._address, self.settings)
        session.on_look = partial(signals.watch, session)
        runner = Runner(session)
        dropped = weakref.finalize(self, runner.stop)
        dropped.atexit = False  # the runner sees to that itself
        return runner, dropped

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.shown!r}, schema={self.settings.schema!r})"

    def _begin(self, names: tuple[str, ...] | None, work: Callable[[Session], Awaitable[T]]) -> Call[T]:
        if self._runner.pid != os.getpid() and not self._closed:
            # After a fork: the thread is not there any more, and the connections are those of the other process.
            self._dropped.detach()
            _inherited.append(self._runner)
            self._runner, self._dropped = self._start()
        call = Call(names, work)
        call.waiter = make_waiter()
        if not self._runner.post(call):
            raise StoreClosed(f"the store of {self._address.shown} was closed; make another PostgresStore")
        return call

    async def _do(self, names: tuple[str, ...] | None, work: Callable[[Session], Awaitable[T]]) -> T:
        return await wait_for(self._begin(names, work))

    async def aclose(self) -> None:
        """Finish what is queued, give every thread back and close the connections; closing again does nothing."""
        self._closed = True
        self._dropped.detach()
        self._runner.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._runner.join)

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def wait_for(call: Call[T]) -> T:
    """What a call gives."""
    if call.waiter is not None:
        await call.waiter.wait()
    # Else no event loop runs: a coroutine is being closed, and what it still asks for is done nevertheless.
    if call.error is not None:
        raise call.error
    return call.result
