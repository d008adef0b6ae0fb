"""What fails in a tracer, a processor or an exporter must never harm the run: it is logged once and left at that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from opentelemetry import trace

__all__ = ["FailureLog", "log_errors"]

P = ParamSpec("P")
R = TypeVar("R")

_LOG = logging.getLogger("locus.telemetry")


class FailureLog:
    """Remembers what failed first."""

    def __init__(self) -> None:
        self.failed = 0

    def failure(self, error: Exception) -> None:
        """Log the first failure."""
        self.failed += 1
        if self.failed == 1:
            _LOG.warning("telemetry failed, and is tried again: %s: %s", type(error).__name__, error)


S = TypeVar("S", bound="HasFailureLog")


class HasFailureLog:
    """Something with a log of failures, for methods under `log_errors`."""

    failures: FailureLog


def log_errors(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R | None]:
    """Make a method log an `Exception` and return None."""

    @wraps(method)
    def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return method(self, *args, **kwargs)
        except Exception as e:  # noqa: BLE001 - an error of a user's provider must not end the run
            self.failures.failure(e)
            return None

    return wrapped


#: The span to use where none could be made.
NO_SPAN = trace.INVALID_SPAN
