"""Agents whose spans and measurements are kept."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from locus import Agent, tool
from locus_plugin_telemetry import TelemetryHook, TelemetrySettings
from locus_testkit import ScriptedModel

__all__ = ["Traced", "about", "add", "fail", "tree"]


@tool(effect="pure")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="pure")
async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@frozen
class Traced:
    """Providers that keep everything in memory."""

    spans_in: InMemorySpanExporter = field(factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(factory=InMemoryMetricReader)
    tracer: TracerProvider = field(factory=TracerProvider)
    meter: MeterProvider = field(init=False)

    @meter.default
    def _meter(self) -> MeterProvider:
        self.tracer.add_span_processor(SimpleSpanProcessor(self.spans_in))
        return MeterProvider([self.reader])

    def settings(self, **options: Any) -> TelemetrySettings:
        return TelemetrySettings(tracer_provider=self.tracer, meter_provider=self.meter, **options)

    def hook(self, **options: Any) -> TelemetryHook:
        return TelemetryHook(self.settings(**options))

    def agent(self, model: ScriptedModel, *, content: bool | None = None, **options: Any) -> Agent[Any, Any]:
        tools, name = options.pop("tools", [add, fail]), options.pop("name", "calc")
        return Agent(model, tools=tools, name=name, telemetry=self.settings(content=content), **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in the order in which they began."""
        return sorted(self.spans_in.get_finished_spans(), key=lambda span: span.start_time or 0)

    def spans_named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.spans_named(name)
        return span

    def points(self, *metrics: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        found = [
            m for resource in (data.resource_metrics if data else ()) for s in resource.scope_metrics for m in s.metrics
        ]
        return [point for m in found if m.name in metrics for point in m.data.data_points]


def tree(spans: list[ReadableSpan]) -> Any:
    """The names as nested lists, children in the order in which they began."""

    def below(parent: int | None) -> list[Any]:
        own = [s for s in spans if (s.parent.span_id if s.parent else None) == parent]
        return [[s.name, *below(s.context.span_id)] for s in own]

    return below(None)


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
