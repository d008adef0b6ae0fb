"""Ctrl-C while a run is under way: once ends it, without its model, twice at once, three times the process.

A plain signal handler, because it has to work while a blocking hook keeps the event loop busy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import anyio

from locus import Run
from locus_plugin_cli import status

__all__ = ["Stopper", "ignoring_one_interrupt"]

T = TypeVar("T")

#: What `TerminateEvent` gives as the reason behind "Cancelled: ".
REASON = "Ctrl-C"


class Stopper:
    """Counts how often Ctrl-C was pressed during a run, and acts on it.

    Args:
        say: tells the person what happens; called in the event loop, never in the signal handler.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.pressed = 0

    async def guard(self, run: Run[Any], work: Callable[[], Awaitable[T]]) -> T | None:
        """Do the work; None when it was stopped in the middle.

        Args:
            run: what ends when Ctrl-C is pressed.
            work: consumes the run to its end.
        """
        with anyio.CancelScope() as scope, self._listening(run, scope):
            return await work()
        return None

    @contextmanager
    def _listening(self, run: Run[Any], scope: anyio.CancelScope) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def pressed(number: int, frame: FrameType | None) -> None:
            self.pressed += 1
            if self.pressed == 1:
                run.cancel(REASON)
                loop.call_soon_threadsafe(self._say, "ending at the next safe point; Ctrl-C again ends at once")
            elif self.pressed == 2:
                loop.call_soon_threadsafe(scope.cancel)
            else:
                # Something holds the event loop, so nothing gentler is left.
                os._exit(status.STOPPED)

        with _handling(pressed), _waking(loop):
            yield


@contextmanager
def ignoring_one_interrupt() -> Iterator[None]:
    """While a command that is over puts its things away: one more Ctrl-C changes nothing, the next ends the process."""
    presses = iter((False, True))

    def pressed(number: int, frame: FrameType | None) -> None:
        if next(presses, True):
            os._exit(status.STOPPED)

    with _handling(pressed):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Hear Ctrl-C; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _waking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let a signal wake the loop: one that comes right before the loop falls asleep would else be heard much later."""
    if os.name == "nt":
        yield  # the loop sees to it itself there
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        loop.add_reader(reader, reader.recv, 4096)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(reader)
