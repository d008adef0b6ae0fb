"""Which span is the current one, and how another process finds it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

__all__ = ["current", "parse_traceparent", "traceparent"]

_W3C = TraceContextTextMapPropagator()
_KEY = "traceparent"


@contextmanager
def current(span: Span) -> Iterator[None]:
    """Make a span the current one, with whatever else is in the context.

    It is set back and not reset: a run may be closed in another context than the one it was driven in.
    """
    before = otel_context.get_current()
    otel_context.attach(trace.set_span_in_context(span, before))
    try:
        yield
    finally:
        otel_context.attach(before)


def traceparent(span: Span) -> str:
    """The span as W3C Trace Context writes it; ``""`` where nothing is traced."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier.get(_KEY, "")


def parse_traceparent(text: object) -> SpanContext | None:
    """The span that `traceparent` has written down, or None."""
    if not isinstance(text, str) or not text:
        return None
    found = trace.get_current_span(_W3C.extract({_KEY: text}, Context())).get_span_context()
    return found if found.is_valid else None
