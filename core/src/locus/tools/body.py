"""A tool's body: entering it, how long it may take, and what it means that an exception left it."""

from __future__ import annotations

from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import anyio

from locus.core.directives import Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from locus.tools.context import ToolContext
    from locus.tools.definition import Bound, Tool

__all__ = ["call_in_thread", "enter_body", "find_question", "split_failures", "time_limit"]


async def enter_body(tool: Tool[..., Any], bound: Bound, context: ToolContext[Any] | None) -> Any:
    """Run the body once; a synchronous one in a worker thread."""
    if tool.is_async:
        return await bound.call(context)
    return await call_in_thread(partial(bound.call, context))


async def call_in_thread(function: Callable[[], Any]) -> Any:
    """What a synchronous function returns, called in a worker thread; a coroutine that it returns is awaited.

    Such a coroutine comes from an async function under a plain decorator. Where the caller is cancelled, the thread
    goes on by itself, and a coroutine that comes out of it then is closed, since it is never awaited.
    """
    returned: list[Any] = []
    is_abandoned = False

    def call() -> None:
        returned.append(function())
        if is_abandoned:
            _close(returned)

    try:
        await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        is_abandoned = True
        _close(returned)  # as well as in the thread: one of the two sees the other's mark
        raise
    return await returned[0] if hasattr(type(returned[0]), "__await__") else returned[0]


def _close(returned: list[Any]) -> None:
    for value in returned:
        if isinstance(value, CoroutineType):
            value.close()


def time_limit(tool: Tool[..., Any], deadline: float | None) -> float | None:
    """Seconds that the body may take: its own limit, and what is left until the deadline of the run; None = any."""
    if deadline is None:
        return tool.timeout
    left = max(0.0, deadline - anyio.current_time())
    return left if tool.timeout is None else min(left, tool.timeout)


def split_failures(error: BaseException) -> ExceptionGroup[Exception] | None:
    """What failed in a body's task group while it was cancelled; the cancellation comes again by itself."""
    _, errors = error.split(anyio.get_cancelled_exc_class()) if isinstance(error, BaseExceptionGroup) else (None, None)
    return errors if isinstance(errors, ExceptionGroup) else None


def find_question(error: BaseException) -> Interrupt | None:
    """The question, also where it left the body through a task group of its own."""
    while isinstance(error, BaseExceptionGroup):
        questions, others = error.split(Interrupt)
        if questions is None or not (others is None or isinstance(others, ExceptionGroup)):
            return None
        error = questions.exceptions[0]
    return error if isinstance(error, Interrupt) else None
