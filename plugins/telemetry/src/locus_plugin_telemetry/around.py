"""What the plugin does around a command of ``locus``: there the plugin itself is the program that sets up exporters.

In a library it sets no provider, because that is for the program. The command line has no other code to do it, so there
the usual variables of OpenTelemetry count: ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_EXPORTER``, and so on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import ProxyTracerProvider

from locus.plugin import Lazy

__all__ = ["command_session"]

# The SDK is an extra: without it nothing can be sent, and the command says so.
_exporting: Any = Lazy("locus_plugin_telemetry.exporting")

_NOTHING = "telemetry: nothing is sent"


class _Failures(logging.Handler):
    """Keeps the first error that an exporter logs, instead of a traceback in the middle of the output."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        self.first = self.first or " ".join(record.getMessage().split())


@contextmanager
def command_session(say: Callable[[str], None]) -> Iterator[None]:
    """Set up the exporters that the environment names, and send what is left when the command is over.

    Args:
        say: says a line to the person.
    """
    if not isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        yield  # something else has set them up, such as `opentelemetry-instrument`
        return
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        say(f"{_NOTHING}: OTEL_SDK_DISABLED is true")
        yield
        return
    if find_spec("opentelemetry.sdk") is None:
        say(f"{_NOTHING}, because the OpenTelemetry SDK is not installed: pip install 'locus-plugin-telemetry[otlp]'")
        yield
        return
    failures, log = _Failures(), logging.getLogger("opentelemetry")
    log.addHandler(failures)
    propagates, log.propagate = log.propagate, False
    try:
        exporters, problems = _exporting.begin(os.environ)
        for problem in problems:
            say(f"telemetry: {problem}")
        if not exporters and not problems:
            say(
                f"{_NOTHING}, because no exporter is configured: set OTEL_EXPORTER_OTLP_ENDPOINT, "
                "for example to http://127.0.0.1:4318"
            )
        try:
            yield
        finally:
            for exporter in exporters:
                exporter.shutdown()
            if failures.first:
                say(f"telemetry: not everything was sent: {failures.first:.300}")
    finally:
        log.removeHandler(failures)
        log.propagate = propagates
