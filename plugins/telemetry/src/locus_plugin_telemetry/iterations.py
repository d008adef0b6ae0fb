"""A span for each iteration of a step of a workflow, below the span that started the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.propagation import current, parse_traceparent
from locus_plugin_telemetry.segment import Kit
from locus_plugin_telemetry.spans import Open, error_type

__all__ = ["Payload", "trace_iteration"]


class Payload(Protocol):
    """What is dispatched of a step."""

    @property
    def run_id(self) -> str:
        """The run of the workflow."""

    @property
    def step(self) -> str:
        """The name of the step."""

    @property
    def iteration(self) -> int:
        """Which cycle of the loop, from 0."""

    @property
    def attempt(self) -> int:
        """Which attempt at it, from 0."""

    @property
    def redelivered(self) -> bool:
        """Whether a worker had this attempt before."""

    @property
    def traceparent(self) -> str:
        """W3C trace context of whatever started the run, or ``""``."""


async def trace_iteration(kit: Kit, call_next: Callable[[], Awaitable[Any]], payload: Payload) -> Any:
    """Run an iteration in a span of its own; gives what it gives."""
    parent = parse_traceparent(payload.traceparent)
    context = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
    about = {
        c.WORKFLOW_RUN: payload.run_id,
        c.WORKFLOW_STEP: payload.step,
        c.WORKFLOW_ITERATION: payload.iteration,
        c.WORKFLOW_ATTEMPT: payload.attempt,
        c.WORKFLOW_REDELIVERED: payload.redelivered,
    }
    span = Open(kit.tracer, c.WORKFLOW_SPAN, context, about, kit.failures)
    try:
        with current(span.span):
            verdict = await call_next()
        name = type(verdict).__name__.lower()
        span.put({c.WORKFLOW_VERDICT: name})
        span.over(c.OTHER if name == "fail" else None)
        return verdict
    except anyio.get_cancelled_exc_class():
        span.over(c.CANCELLED)
        raise
    except BaseException as error:
        span.over(error_type(error))
        raise
    finally:
        span.close()
