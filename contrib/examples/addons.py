"""A run of the embedded model with its work judged, its answer checked, secrets cut out and everything traced.

`python contrib/examples/addons.py` needs the plugins llamacpp, reflexion, grounding, guardrails and telemetry, and
opentelemetry-sdk for the spans.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from locus import Agent, tool
from locus.core.events import ReflectEvent, TerminateEvent, ThinkEvent, ToolCompleteEvent, ToolStartEvent
from locus_plugin_grounding import GroundingEvent
from locus_plugin_guardrails import GuardrailEvent
from locus_plugin_telemetry import TelemetryHook

ORDERS = {"4711": "order 4711: 2 desk lamps, 84.50 dollars, shipped on 2026-05-04, card 4111 1111 1111 1111"}


@tool(effect="pure")
def find_order(number: str) -> str:
    """Look an order up by its number."""
    return ORDERS.get(number, f"order {number} was not found")


async def main(model: str) -> None:
    """Run it, and show what happens."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    agent = Agent(
        model,
        name="orders",
        tools=[find_order],
        system_prompt="You answer questions about orders. Look the order up first. Answer in one short sentence.",
        reflexion={"interval": 1, "judge": "rules"},
        grounding=True,
        guardrails=True,
        hooks=[TelemetryHook(tracer_provider=provider)],
        max_iterations=6,
    )
    async for event in agent.run("When was order 4711 shipped, and what did it cost?"):
        match event:
            case ThinkEvent(reasoning=text) if text:
                print(f"{event.iteration} think      {text}")
            case ToolStartEvent(tool_name=name, arguments=arguments):
                print(f"{event.iteration} call       {name} {dict(arguments)}")
            case ToolCompleteEvent(result=result):
                print(f"{event.iteration} result     {result}")
            case GuardrailEvent():
                print(f"{event.iteration} guardrail  {event.rule} in a {event.where}: {event.action}")
            case ReflectEvent(judgment=judgment, confidence=confidence):
                print(f"{event.iteration} reflect    {confidence:.2f} {judgment}")
            case GroundingEvent(score=score, ungrounded_claims=missing):
                print(f"{event.iteration} grounding  {score:.2f}, without evidence: {list(missing) or 'nothing'}")
            case TerminateEvent(reason=reason):
                print(f"{event.iteration} end        {reason}: {event.final_message}")
    for span in spans.get_finished_spans():
        took = (span.end_time or 0) - (span.start_time or 0)
        print(f"span {span.name} {took / 1e9:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answer a question about an order, with every add-on at work.")
    parser.add_argument("model", nargs="?", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    asyncio.run(main(parser.parse_args().model))
