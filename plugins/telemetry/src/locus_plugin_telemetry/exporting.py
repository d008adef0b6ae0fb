"""From the variables of OpenTelemetry to providers with exporters; needs the SDK."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace

from locus.plugin import Lazy

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["begin"]

# The SDK is not a dependency: a library that only makes spans does without it.
_metrics: Any = Lazy("opentelemetry.sdk.metrics")
_metrics_export: Any = Lazy("opentelemetry.sdk.metrics.export")
_resources: Any = Lazy("opentelemetry.sdk.resources")
_trace: Any = Lazy("opentelemetry.sdk.trace")
_trace_export: Any = Lazy("opentelemetry.sdk.trace.export")

_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def begin(environ: Mapping[str, str]) -> tuple[list[TracerProvider | MeterProvider], list[str]]:
    """Set the global providers, as far as the environment names exporters for them.

    Args:
        environ: with ``OTEL_TRACES_EXPORTER``, ``OTEL_EXPORTER_OTLP_ENDPOINT`` and their relatives. An endpoint alone
            means ``otlp``, over HTTP unless ``OTEL_EXPORTER_OTLP_PROTOCOL`` is ``grpc``.

    Returns:
        The providers, to be shut down in the end, and what is wrong.
    """
    made: list[TracerProvider | MeterProvider] = []
    problems: list[str] = []
    resource = _resources.Resource.create({} if _names_service(environ) else {"service.name": "locus"})
    traces = _exporters("TRACES", environ, problems)
    if traces:
        tracer = _trace.TracerProvider(resource=resource)
        for exporter in traces:
            tracer.add_span_processor(_trace_export.BatchSpanProcessor(exporter))
        trace.set_tracer_provider(tracer)
        made.append(tracer)
    measured = _exporters("METRICS", environ, problems)
    if measured:
        meter = _metrics.MeterProvider(
            [_metrics_export.PeriodicExportingMetricReader(exporter) for exporter in measured], resource=resource
        )
        metrics.set_meter_provider(meter)
        made.append(meter)
    return made, problems


def _names_service(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("OTEL_SERVICE_NAME")) or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _exporters(signal: str, environ: Mapping[str, str], problems: list[str]) -> list[Any]:
    """The exporters of one kind of signal, ``"TRACES"`` or ``"METRICS"``; what cannot be had is a problem."""
    variable = f"OTEL_{signal}_EXPORTER"
    named = [name.strip() for name in environ.get(variable, "").split(",") if name.strip()]
    if not named:
        endpoint = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        named = ["otlp"] if endpoint else []
    found = []
    for name in named:
        if name == "none":
            continue
        if name == "console":
            # The output is for what was asked for.
            kind = _trace_export.ConsoleSpanExporter if signal == "TRACES" else _metrics_export.ConsoleMetricExporter
            found.append(kind(out=sys.stderr))
            continue
        point = _PROTOCOLS.get(_protocol(signal, environ), "") if name == "otlp" else name
        points = entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=point)
        if not points:
            problems.append(
                f"{variable} is {name!r} ({_protocol(signal, environ)}), and no installed package has that exporter; "
                "pip install 'locus-plugin-telemetry[otlp]' has otlp over http/protobuf"
            )
            continue
        try:
            found.append(next(iter(points)).load()())
        except Exception as e:  # noqa: BLE001  an exporter is foreign code
            problems.append(f"the exporter {name!r} cannot be made: {type(e).__name__}: {e}")
    return found


def _protocol(signal: str, environ: Mapping[str, str]) -> str:
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return own or "http/protobuf"
