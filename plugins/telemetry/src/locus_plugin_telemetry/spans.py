"""One span while it is open: it remembers when it ended, because its attributes come a moment later."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer

from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.failures import NO_SPAN, FailureLog, HasFailureLog, log_errors

__all__ = ["Open", "clean", "error_type"]

_TYPE = re.compile(r"[A-Za-z_][\w.]*")


def error_type(error: BaseException | str) -> str:
    """The class of an error; of an error's text, the part before the colon."""
    if isinstance(error, BaseException):
        return type(error).__name__
    name = error.partition(":")[0]
    return name if _TYPE.fullmatch(name) else c.OTHER


def clean(value: Any) -> Any:
    """A text without halves of surrogate pairs: an exporter would lose it, or the whole batch with it."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode()


def _drop_missing(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: clean(value) for key, value in attributes.items() if value is not None}


class Open(HasFailureLog):
    """A span that has not ended.

    Args:
        tracer: what makes it.
        name: its name.
        context: of its parent.
        attributes: what is known when it begins, for samplers.
        kind: its kind.
        links: to other traces.
        began: nanoseconds since the epoch, or None for now.
    """

    __slots__ = ("about", "began", "context", "ended", "error", "failures", "span")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        context: Context,
        attributes: Mapping[str, Any],
        failures: FailureLog,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: tuple[Link, ...] = (),
        began: int | None = None,
    ) -> None:
        self.failures, self.context = failures, context
        self.began = time.time_ns() if began is None else began
        self.ended = 0
        self.error: str | None = None
        #: What tells it from others while it is open.
        self.about: Any = None
        self.span: Span = self._start(tracer, name, kind, attributes, links) or NO_SPAN

    @log_errors
    def _start(
        self, tracer: Tracer, name: str, kind: SpanKind, attributes: Mapping[str, Any], links: tuple[Link, ...]
    ) -> Span:
        return tracer.start_span(
            clean(name),
            context=self.context,
            kind=kind,
            attributes=_drop_missing(attributes),
            links=links,
            start_time=self.began,
        )

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0, (self.ended or time.time_ns()) - self.began) / 1e9

    def over(self, error: str | None = None) -> None:
        """Record its end, with the class of an error; its attributes are still to come."""
        self.ended = self.ended or time.time_ns()
        self.error = self.error or error

    @log_errors
    def put(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes; None is not set."""
        self.span.set_attributes(_drop_missing(attributes))

    @log_errors
    def note(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add an event."""
        self.span.add_event(name, _drop_missing(attributes))

    @log_errors
    def link(self, link: Link) -> None:
        """Add a link that was not known when it began."""
        self.span.add_link(link.context, link.attributes)

    @log_errors
    def close(self, *, description: str | None = None, fine: bool = False) -> None:
        """End it, at the time at which `over` was called.

        Args:
            description: of the error.
            fine: mark it as successful, whatever was recorded.
        """
        self.over()
        if self.error is not None:
            self.span.set_attribute(c.ERROR_TYPE, self.error)
            self.span.set_status(Status(StatusCode.ERROR, clean(description)))
        elif fine:
            self.span.set_status(Status(StatusCode.OK))
        self.span.end(self.ended)
