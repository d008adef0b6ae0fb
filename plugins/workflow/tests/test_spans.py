"""A span for each iteration, made by the telemetry plugin's hook."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from locus.hooks.builtin import TelemetryHook
from locus.journal import MemoryStore
from locus_plugin_workflow import RetryPolicy, Worker, Workflow, start

pytestmark = pytest.mark.anyio


async def test_each_iteration_has_a_span_of_its_own_below_what_started_the_run() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")

    async def handler(ctx: Any) -> Any:
        with tracer.start_as_current_span("inside"):
            if ctx.iteration == 0:
                return ctx.continue_()
            if ctx.attempt == 0:
                raise OSError("not now")
            return ctx.complete()

    wf = Workflow("w")
    wf.agent_loop("s", handler).with_max_iterations(5).with_retry(RetryPolicy(2, initial=0))
    store, definition = MemoryStore(), wf.build()
    with tracer.start_as_current_span("request") as request:
        found = request.get_span_context()
        traceparent = f"00-{found.trace_id:032x}-{found.span_id:016x}-01"
        await start(store, definition, run_id="r", traceparent=traceparent)
    await Worker(store, definition, hooks=[TelemetryHook(tracer_provider=provider)]).run(until_idle=True)

    spans = exporter.get_finished_spans()
    iterations = [span for span in spans if span.name == "locus.workflow.iteration"]
    seen = [
        tuple((span.attributes or {}).get(f"locus.workflow.{name}") for name in ("iteration", "attempt", "verdict"))
        for span in iterations
    ]
    assert seen == [(0, 0, "continue"), (1, 0, None), (1, 1, "complete")]
    assert [(span.attributes or {}).get("error.type") for span in iterations] == [None, "OSError", None]
    assert {span.parent.span_id for span in iterations if span.parent} == {found.span_id}
    assert len({span.context.span_id for span in iterations}) == 3
    inside = [span.parent.span_id for span in spans if span.name == "inside" and span.parent]
    assert inside == [span.context.span_id for span in iterations]
