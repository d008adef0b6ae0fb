"""One body for a sync and an async method.

A method is written as a generator that yields the calls it wants to be made and gets what they return or raise. Over
sync backends it is run as a function; where one of them is async it is run in the caller's event loop, and the sync
ones are called in a worker thread, so that they do not hold the loop up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import anyio.to_thread

__all__ = ["Steps", "take", "take_async"]

T = TypeVar("T")

#: Yields calls, gets what they return or raise, returns the result.
Steps: TypeAlias = Generator[Callable[[], Any], Any, T]


def take(steps: Steps[T]) -> T:
    """Make the calls of a method, all of which are sync; gives its result."""
    try:
        call = next(steps)
        while True:
            try:
                made = call()
            except Exception as e:  # noqa: BLE001  # the method decides
                call = steps.throw(e)
            else:
                call = steps.send(made)
    except StopIteration as end:
        value: T = end.value
        return value


async def take_async(steps: Steps[T]) -> T:
    """Make the calls of a method, each of them sync or async; gives its result."""
    try:
        call = next(steps)
        while True:
            try:
                # Within a tuple: trio takes a coroutine that comes out of a thread for a mistake.
                (made,) = await anyio.to_thread.run_sync(_call, call)
                made = await made if inspect.isawaitable(made) else made
            except Exception as e:  # noqa: BLE001  # the same
                call = steps.throw(e)
            else:
                call = steps.send(made)
    except StopIteration as end:
        value: T = end.value
        return value


def _call(call: Callable[[], Any]) -> tuple[Any]:
    return (call(),)
