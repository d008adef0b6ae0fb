"""What a worker tells those who watch it: `StepEvent`, and wrappers around each iteration."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from locus.core import freeze
from locus_plugin_workflow.payload import TaskPayload

__all__ = ["Observers", "StepEvent", "StepEventKind"]

_LOG = logging.getLogger("locus.workflow")

#: What happens to steps and to runs. An event is sent when it is stored.
StepEventKind: TypeAlias = Literal[
    "step.queued",
    "step.started",
    "step.continue",
    "step.retry",
    "step.completed",
    "step.failed",
    "step.emit",
    "run.completed",
    "run.failed",
]


@frozen(kw_only=True)
class StepEvent:
    """Something that happened, and is stored.

    Args:
        type: what.
        run_id: the run of the workflow.
        workflow: its name.
        step: the name of the step, ``""`` for a run.
        iteration: the cycle that it is about, from 0; of ``step.queued`` the one that is queued.
        attempt: the attempt at it, from 0.
        at: when, UTC.
        output: what the handler gave to ``continue_``, ``complete`` or ``emit``.
        error: why a step, an attempt or a run has failed.
        reason: the kind of that failure: ``"error"``, ``"timeout"``, ``"max_iterations"``, ...
    """

    type: StepEventKind
    run_id: str
    workflow: str
    step: str = ""
    iteration: int = 0
    attempt: int = 0
    at: datetime
    output: Any = field(default=None, converter=freeze)
    error: str = ""
    reason: str = ""


class Observers:
    """Those who watch a worker. What they raise is logged, and changes nothing.

    Args:
        hooks: functions of a `StepEvent`, and objects with ``on_step(event)``, ``wrap_iteration(call_next, payload)``
            or both; each sync or async, but for ``wrap_iteration``, which is async.
    """

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        given = tuple(hooks)
        self._seen: tuple[Callable[[StepEvent], Any], ...] = tuple(
            found for hook in given if callable(found := getattr(hook, "on_step", hook))
        )
        self._around = tuple(found for hook in given if callable(found := getattr(hook, "wrap_iteration", None)))

    async def emit(self, event: StepEvent) -> None:
        """Tell all of them, in their order."""
        for see in self._seen:
            try:
                answer = see(event)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:  # noqa: BLE001  an observer is foreign code
                _LOG.exception("an observer of %s failed", event.type)

    async def around(self, payload: TaskPayload, run: Callable[[], Awaitable[Any]]) -> None:
        """Run an iteration inside of all wrappers, the first of which is the outermost."""
        call = run
        for wrap in reversed(self._around):
            call = _wrap(wrap, call, payload)
        await call()


def _wrap(wrap: Any, call_next: Callable[[], Awaitable[Any]], payload: TaskPayload) -> Callable[[], Awaitable[Any]]:
    async def call() -> Any:
        return await wrap(call_next, payload)

    return call
