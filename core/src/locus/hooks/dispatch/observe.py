"""Observers: isolated, heard in order, and out after the third failure. A failing guard cancels the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus.core.directives import Cancel, Continue, Reject, Retry
from locus.core.events import Event, HookFailedEvent, ModelChunkEvent, ToolStartEvent
from locus.hooks.caller import as_caller, deaf
from locus.hooks.dispatch.call import is_failure, nonsense, within

if TYPE_CHECKING:
    from locus.hooks.context import RunContext
    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

__all__ = ["notify"]

_EXPECTED = "None, Continue(), Cancel(...), Retry(...), or Reject(...) of a tool call"
# Reject answers the start of a tool alone, where a guard's refusal must not be undone by somebody's Retry.
_STRICTNESS: dict[type, int] = {Continue: 0, Retry: 1, Reject: 2, Cancel: 3}


async def notify(
    impls: tuple[Impl, ...], event: Event, run: RunContext, health: HookHealth
) -> Cancel | Retry | Reject | None:
    """Tell everybody who listens.

    Args:
        impls: ``table.heard[type(event)]``.
        event: as it was stamped.
        run: what the hooks see of the run.
        health: the run's failures. They are told after everybody has heard the event, but for failures of
            hearing of a failure: two observers that cannot hear of each other's would never stop.

    Returns:
        The strictest directive, or None to go on: Cancel beats Reject beats Retry, the first of equals wins.
    """
    strictest: Any = None
    failed: list[HookFailedEvent] | None = None
    muted = health.quarantined
    hears_nothing = deaf()
    culprit = event.plugin if type(event) is HookFailedEvent else None
    for impl in impls:
        if (muted and impl in muted) or impl.plugin == culprit:
            continue
        if hears_nothing and (run, impl.plugin) in hears_nothing:
            continue
        try:
            answer = impl.call(event, run)
            if impl.is_async:
                answer = await as_caller(impl.plugin, answer)
            if answer is None or type(answer) is Continue:
                continue
            directive = await _directive(impl, answer, event)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=True))
            directive = Cancel(f"guard {impl.plugin} failed") if impl.guard else None
        if directive is not None and (strictest is None or _STRICTNESS[type(directive)] > _STRICTNESS[type(strictest)]):
            strictest = directive
    if failed and culprit is None:
        await health.tell(failed)
    verdict: Cancel | Retry | Reject | None = strictest
    return verdict


async def _directive(impl: Impl, answer: Any, event: Event) -> Cancel | Retry | Reject | None:
    """What an observer means by something else than None."""
    if hasattr(answer, "__await__"):
        if type(event) is ModelChunkEvent:
            close = getattr(answer, "close", None)
            if close is not None:  # a coroutine that nobody awaits would warn
                close()
            nonsense(answer, "None or a directive: who hears chunks must be sync")
        answer = await as_caller(impl.plugin, within(impl.timeout, answer))
    if answer is None or type(answer) is Continue:
        return None
    if type(answer) not in _STRICTNESS:
        nonsense(answer, _EXPECTED)
    if type(answer) is Reject and type(event) is not ToolStartEvent:
        nonsense(
            answer,
            "no Reject here: it answers on_tool_call and on_tool_start only; use Cancel to end the run",
        )
    directive: Cancel | Retry | Reject = answer
    return directive
