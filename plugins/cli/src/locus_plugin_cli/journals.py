"""`Journals`: an open store and the event loop that a command uses it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from attrs import evolve

from locus.core.errors import NothingToResume, StoreError, closest
from locus.journal import JournalHost, JournalStore
from locus_plugin_cli.stopper import ignoring_one_interrupt
from locus_plugin_cli.thread_store import StoreChoice, warn_and_use_memory

__all__ = ["Journals"]

T = TypeVar("T")


class Journals:
    """A store that is open; a context manager, which closes it in the end.

    Args:
        kept: the store.
        new_loop: makes the event loop; None = asyncio does.
    """

    def __init__(self, kept: StoreChoice, *, new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self.kept = kept
        # One loop for all that a command does: what a store or a provider keeps open belongs to a loop.
        self._runner = asyncio.Runner(loop_factory=new_loop)
        self._around = ExitStack()
        self._entered: set[str] = set()
        self._recoveries: list[Callable[[Exception], bool]] = []

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ignoring_one_interrupt():
            try:
                close = getattr(self.store, "aclose", None)
                if close is not None:
                    self.run(close())
            finally:
                try:
                    self._runner.__exit__(kind, error, trace)
                finally:
                    self._around.close()

    @property
    def store(self) -> JournalStore:
        """The store."""
        return self.kept.store

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the loop."""
        return self._runner.run(work)

    def enter(self, name: str, make: Callable[[], AbstractContextManager[object]]) -> None:
        """Enter a context that lasts until the command has ended and everything else is closed; once for each name."""
        if name not in self._entered:
            self._entered.add(name)
            recover: Any = self._around.enter_context(make())
            if callable(recover):
                self._recoveries.append(recover)

    def recovers(self, error: Exception) -> bool:
        """Whether one of the contexts has dealt with an error, so that the failed run can be tried again."""
        return any(recover(error) for recover in self._recoveries)

    def insist(self) -> None:
        """From now on the store was asked for, for example because a conversation in it was named."""
        if self.kept.lasting:
            self.kept = evolve(self.kept, asked=True)

    def warn_and_use_memory(self, error: StoreError) -> None:
        """Continue in memory if the store was not asked for.

        Raises:
            StoreError: it was asked for.
        """
        if self.kept.asked or not self.kept.lasting:
            raise error
        self.kept = warn_and_use_memory(error)

    def found(self, thread_id: str) -> JournalHost:
        """The entries of a thread.

        Raises:
            NothingToResume: nothing does; the message names the nearest one.
            StoreError, CheckpointError: it cannot be read.
        """
        host = self.run(JournalHost.peek(self.store, thread_id))
        if host is None:
            raise self.unknown(thread_id)
        return host

    def unknown(self, thread_id: str) -> NothingToResume:
        """The error for a thread that is not there."""
        names = [info.thread_id for info in self.run(self.store.threads()) if info.head]
        near = closest(thread_id, names)
        hint = f"did you mean {near!r}?" if near is not None else "`locus threads` lists what there is"
        return NothingToResume(f"there is no thread {thread_id!r} in {self.kept.name}; {hint}")
