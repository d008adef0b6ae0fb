"""`call_in_thread`: a synchronous function in a worker thread, and the coroutine that it may return."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Coroutine
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from locus.tools import call_in_thread

pytestmark = pytest.mark.anyio


async def give(value: int) -> int:
    await anyio.lowlevel.checkpoint()
    return value


async def test_what_it_returns_is_given_and_a_coroutine_awaited() -> None:
    assert await call_in_thread(lambda: 1) == 1
    assert await call_in_thread(lambda: give(2)) == 2


async def test_what_it_raises_is_raised() -> None:
    def fail() -> int:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await call_in_thread(fail)


async def test_a_coroutine_that_comes_after_a_cancel_is_closed() -> None:
    """Nobody awaits it any more, and nobody is warned about it."""
    entered, go_on = anyio.Event(), threading.Event()
    made: list[Coroutine[Any, Any, int]] = []

    def slow() -> Coroutine[Any, Any, int]:
        anyio.from_thread.run_sync(entered.set)
        go_on.wait(30)
        made.append(give(1))
        return made[0]

    async with anyio.create_task_group() as group:
        group.start_soon(call_in_thread, slow)
        await entered.wait()
        group.cancel_scope.cancel()
    go_on.set()
    with anyio.fail_after(30):
        while not made or inspect.getcoroutinestate(made[0]) != inspect.CORO_CLOSED:  # noqa: ASYNC110  # a thread does it
            await anyio.sleep(0.01)
