"""Whose cancellation is it: the runtime's, which must go on up, or one that a tool raised by itself?

A tool that awaits a cancelled task raises `CancelledError` although the run was not cancelled. On
asyncio the task knows the difference; on trio only the runtime can raise `Cancelled`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import anyio

from locus.core.directives import Suspended

if TYPE_CHECKING:
    from collections.abc import Callable

#: What ends the program, closes a coroutine or suspends a run. The code that raises it has not failed.
_EXITS = (KeyboardInterrupt, SystemExit, GeneratorExit, Suspended)


def _asyncio() -> Any:
    # Never imported here: when a run is on asyncio, it is loaded.
    return sys.modules.get("asyncio")


def cancellations() -> Callable[[], int]:
    """A counter of how often the task under way was asked to end, on asyncio.

    There, a request is delivered once, and a body can swallow it or fail while it cleans up. On trio the counter
    stays at 0: it asks again at every turn.
    """
    asyncio = _asyncio()
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # another library's event loop
        task = None
    return int if task is None else cast("Callable[[], int]", task.cancelling)


def is_cancellation(error: BaseException) -> bool:
    """Whether this is the runtime cancelling the task under way."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    asyncio = _asyncio()
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return True
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def find_exit(error: BaseException) -> BaseException | None:
    """What is to end more than the code that raised it, also where it left a task group; None for anything else."""
    while isinstance(error, BaseExceptionGroup):
        exits = error.subgroup(_is_exit)
        if exits is None:
            return None
        error = exits.exceptions[0]
    return error if _is_exit(error) else None


def _is_exit(error: BaseException) -> bool:
    if type(error) is GeneratorExit:
        # Where a coroutine is closed, each of its frames gets a GeneratorExit of its own, the innermost first. One that
        # has come through another frame was raised there, by code that is not being closed.
        return error.__traceback__ is None or error.__traceback__.tb_next is None
    return isinstance(error, _EXITS)


def is_failure(error: BaseException) -> bool:
    """Whether an error is a failure of the code that raised it.

    A cancellation of the run, Ctrl-C, SystemExit and the closing of a coroutine are not failures: they always
    propagate. A cancellation that code raised by itself, because it awaited a task that had been cancelled, is one; so
    is what an extension module raises that is not an `Exception`.
    """
    if isinstance(error, Exception):
        return True
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(anyio.get_cancelled_exc_class()) is None and error.subgroup(_is_exit) is None
    return not _is_exit(error) and not is_cancellation(error)
