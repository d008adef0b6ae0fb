"""A tool's body: entering it, how long it may take, and what it means that an exception left it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from locus.core.directives import Interrupt

if TYPE_CHECKING:
    from locus.tools.context import ToolContext
    from locus.tools.definition import Bound, Tool

__all__ = ["enter_body", "find_question", "split_failures", "time_limit"]


async def enter_body(tool: Tool[..., Any], bound: Bound, context: ToolContext[Any] | None) -> Any:
    """Run the body once; a synchronous one in a worker thread."""
    if tool.is_async:
        return await bound.call(context)
    (value,) = await anyio.to_thread.run_sync(_call_in_tuple, bound, context, abandon_on_cancel=True)
    # A decorator that is a plain function hands on what the coroutine function under it gave it.
    return await value if hasattr(type(value), "__await__") else value


def _call_in_tuple(bound: Bound, context: ToolContext[Any] | None) -> tuple[Any]:
    # In a tuple: trio takes a coroutine that comes out of a thread for a mistake.
    return (bound.call(context),)


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
