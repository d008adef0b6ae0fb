"""Calling a handler: async, or a plain function in a worker thread, or an agent; and what it said."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from locus_plugin_workflow.context import SyncTaskContext, TaskContext
from locus_plugin_workflow.errors import ConflictingVerdicts, FailPermanent, NoVerdict
from locus_plugin_workflow.sleeping import Suspended, find_sleep
from locus_plugin_workflow.verdicts import Complete, Continue, Fail, Verdict

__all__ = ["enter_handler", "is_async"]

_VERDICTS = (Continue, Complete, Fail)


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether a handler is awaited."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


async def enter_handler(handler: Callable[[Any], Any], ctx: TaskContext | SyncTaskContext) -> Verdict | Suspended:
    """Run a handler, and say how its iteration ended, or that it was left for a sleep.

    One that was to be left counts as left, whatever it says instead; that it has failed while it was left counts.

    Raises:
        Exception: see `_call_handler`.
    """
    try:
        verdict = await _call_handler(handler, ctx)
    except NoVerdict:
        if ctx.sleeps.left_for is None:
            raise
        return ctx.sleeps.left_for
    except BaseException as e:
        found = find_sleep(e)
        if found is None:
            raise
        return ctx.sleeps.left_for or found
    return ctx.sleeps.left_for or verdict


async def _call_handler(handler: Callable[[Any], Any], ctx: TaskContext | SyncTaskContext) -> Verdict:
    """Run a handler, and say how its iteration ended.

    Raises:
        NoVerdict: it has not said so.
        ConflictingVerdicts: it has said so in two ways.
        Exception: what it raised.
    """
    try:
        if isinstance(ctx, TaskContext):
            returned = await handler(ctx)
        else:
            (returned,) = await anyio.to_thread.run_sync(partial(_call, handler, ctx), abandon_on_cancel=True)
    except FailPermanent as e:
        return Fail(str(e), is_permanent=True)
    if isinstance(returned, Awaitable):
        close = getattr(returned, "close", None)
        if close is not None:
            close()
        raise TypeError(f"handler {_name(handler)} returned something to await; make it `async def`")
    return _verdict(handler, ctx, returned)


def _call(handler: Callable[[Any], Any], ctx: SyncTaskContext) -> tuple[Any]:
    return (handler(ctx),)  # wrapped: Trio refuses a thread that returns something to await


def _verdict(handler: Any, ctx: TaskContext | SyncTaskContext, returned: Any) -> Verdict:
    said = ctx.verdict
    if returned is not None and not isinstance(returned, _VERDICTS):
        raise TypeError(
            f"handler {_name(handler)} returned {returned!r:.80}; return ctx.complete(...), ctx.continue_(...) or "
            "ctx.fail(...), or nothing after calling one of them"
        )
    if returned is not None and said is not None and returned != said:
        raise ConflictingVerdicts(f"handler {_name(handler)} has said {said!r:.200} and returned {returned!r:.200}")
    verdict: Verdict | None = said if returned is None else returned
    if verdict is None:
        raise NoVerdict(
            f"handler {_name(handler)} returned without a verdict; call ctx.continue_, ctx.complete or ctx.fail"
        )
    return verdict


def _name(handler: Any) -> str:
    return repr(getattr(handler, "__name__", None) or type(handler).__name__)
