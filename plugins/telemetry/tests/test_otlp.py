"""End to end: a run is exported as real protobuf over HTTP to a receiver in another process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from locus import Agent, ToolCall, ToolContext
from locus.journal import MemoryStore
from locus_plugin_telemetry import TelemetrySettings
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio


class Receiving:
    """The process, and what it has received when it is stopped."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(Path(__file__).with_name("receiver.py"))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.out = self.process.stdout
        self.port = json.loads(self.out.readline())["port"]

    def stop(self) -> list[dict[str, Any]]:
        self.process.terminate()
        self.process.wait()
        with self.out:
            return [json.loads(line) for line in self.out]


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    found = Receiving()
    yield found
    if found.process.poll() is None:
        found.stop()


def providers(port: int) -> tuple[TracerProvider, MeterProvider]:
    at = f"http://127.0.0.1:{port}/v1"
    tracer = TracerProvider()
    tracer.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{at}/traces", timeout=2)))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{at}/metrics", timeout=2), 3_600_000)
    return tracer, MeterProvider([reader])


def ask(ctx: ToolContext[Any]) -> str:
    """Ask."""
    return str(ctx.interrupt("Sure?"))


async def test_a_receiver_in_another_process_gets_the_trace_its_link_and_the_measurements(
    receiving: Receiving,
) -> None:
    tracer, meter = providers(receiving.port)
    settings = TelemetrySettings(tracer_provider=tracer, meter_provider=meter, content=True)
    # Half of a surrogate pair, as a stream that was cut leaves one, has no form in protobuf.
    model = ScriptedModel(ToolCall("id \ud83d", "ask"), "It is \ud83d \U0001f600.", name="openai:gpt-9")
    agent: Agent[Any, Any] = Agent(
        model, tools=[ask], name="calc \ud83d", checkpointer=MemoryStore(), telemetry=settings
    )
    await agent.run("Is it?", thread_id="t")
    await agent.resume("t", "yes")
    tracer.shutdown()
    meter.shutdown()
    received = receiving.stop()

    spans = {line["id"]: line for line in received if "span" in line}
    runs = [line for line in spans.values() if line["span"] == "invoke_agent calc \\ud83d"]
    first, second = sorted(runs, key=lambda line: line["attributes"]["locus.segment"])
    assert second["links"] == [first["id"]]
    assert (first["parent"], first["status"]) == ("", 1)
    assert {line["scope"] for line in spans.values()} == {"locus_plugin_telemetry"}
    assert {line["schema"] for line in spans.values()} == {"https://opentelemetry.io/schemas/1.44.0"}
    lines = sorted((line["span"], spans[line["parent"]]["span"]) for line in spans.values() if line["parent"])
    assert lines == [
        *[("chat gpt-9", "iteration")] * 2,
        *[("execute_tool ask", "iteration")] * 2,
        *[("iteration", "invoke_agent calc \\ud83d")] * 3,
    ]
    assert "It is \\ud83d \U0001f600." in second["attributes"]["gen_ai.output.messages"]
    tools = [line["attributes"]["gen_ai.tool.call.id"] for line in spans.values() if line["span"] == "execute_tool ask"]
    assert tools == ["id \\ud83d"] * 2
    assert "Is it?" in first["attributes"]["gen_ai.input.messages"]
    metrics = {line["metric"]: (line["unit"], line["count"]) for line in received if "metric" in line}
    assert metrics["gen_ai.client.token.usage"] == ("{token}", 4)
    # Two answers, two segments; of the two entries of the body the first left with a question.
    assert metrics["gen_ai.client.operation.duration"] == ("s", 5)


async def test_a_receiver_that_is_not_there_harms_no_run() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        tracer, meter = providers(taken.getsockname()[1])
        settings = TelemetrySettings(tracer_provider=tracer, meter_provider=meter)
        result = await Agent(ScriptedModel("Hi."), telemetry=settings).run("?")
        assert result.text == "Hi."
        assert result.reports["plugins"].plugins[0].failures == ()
        tracer.shutdown()
        meter.shutdown()
