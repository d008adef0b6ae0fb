"""The worked example of the agent loop with its add-ons: two iterations, two calls, one Reflect, no third Think."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from locus import Agent, tool
from locus.core.events import (
    CheckpointEvent,
    ModelCompleteEvent,
    ReflectEvent,
    TerminateEvent,
    ToolCacheHitEvent,
    ToolCompleteEvent,
    ToolStartEvent,
)
from locus.core.termination import ConfidenceMet, MaxIterations, ToolCalled
from locus.hooks.builtin import StructuredLoggingHook
from locus.journal import MemoryStore
from locus_plugin_grounding import GroundingEvent
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

PROMPT = "Book a flight from JFK to NRT on 2026-05-04 for customer C-42."
VERDICT = {"judgment": "Flight AA-181 is booked.", "verdict": "on_track", "confidence": 0.93, "guidance": ""}
SEARCH = {"origin": "JFK", "destination": "NRT", "date": "2026-05-04"}
BOOK = {"flight_id": "AA-181", "customer_id": "C-42"}


@tool
def search_flights(origin: str, destination: str, date: str) -> list[dict[str, str]]:
    """Find flights."""
    return [{"flight_id": "AA-181", "departs": "11:20"}]


@tool(idempotent=True)
def book_flight(flight_id: str, customer_id: str) -> dict[str, str]:
    """Book a flight."""
    return {"confirmation": "BK-58291", "flight_id": flight_id}


def agent(**more: Any) -> Agent[None, str]:
    model = ScriptedModel(call("search_flights", **SEARCH), call("book_flight", **BOOK), json.dumps(VERDICT))
    return Agent(
        model,
        tools=[search_flights, book_flight],
        system_prompt="You are a travel agent.",
        reflexion=True,
        grounding=True,
        checkpointer=MemoryStore(),
        hooks=[StructuredLoggingHook(level="INFO")],
        termination=(ToolCalled("book_flight") & ConfidenceMet(0.9)) | MaxIterations(8),
        **more,
    )


def row(event: Any) -> tuple[Any, ...]:
    """What the table of the example shows of an event."""
    match event:
        case ToolStartEvent(tool_name=name, arguments=arguments):
            return event.iteration, "Execute", f"{name} starts", dict(arguments)
        case ToolCompleteEvent(tool_name=name, error=error):
            return event.iteration, "Execute", f"{name} ends", error
        case ReflectEvent(judgment=judgment, confidence=confidence):
            return event.iteration, "Reflect", judgment, confidence
        case TerminateEvent(reason=reason):
            return event.iteration, "Terminate", reason, event.final_confidence
    return event.iteration, "Think", event.purpose, None


TABLE = [
    (1, "Think", "think", None),
    (1, "Execute", "search_flights starts", SEARCH),
    (1, "Execute", "search_flights ends", None),
    (2, "Think", "think", None),
    (2, "Execute", "book_flight starts", BOOK),
    (2, "Execute", "book_flight ends", None),
    (2, "Think", "reflexion", None),
    (2, "Reflect", "Flight AA-181 is booked.", 0.93),
    (2, "Terminate", "ToolCalled AND ConfidenceMet", 0.93),
]
EVENTS = [
    *((1, kind) for kind in ("run_start", "checkpoint", "iteration", "model_complete", "think", "checkpoint")),
    *((1, kind) for kind in ("tool_start", "tool_complete")),
    *((2, kind) for kind in ("checkpoint", "iteration", "model_complete", "think", "checkpoint")),
    *((2, kind) for kind in ("tool_start", "tool_complete", "checkpoint", "model_complete", "reflect")),
    *((2, kind) for kind in ("checkpoint", "checkpoint", "terminate")),
]
#: No Reflect in the first iteration, no Think after the Reflect of the second.
NODES = [
    ("start", "a new turn"),
    ("think", "the model asks for tools"),
    ("execute", "the tools have answered"),
    ("think", "the model asks for tools"),
    ("execute", "every 2 iterations"),
    ("reflect", "ToolCalled AND ConfidenceMet"),
    ("terminate", "ToolCalled AND ConfidenceMet"),
]
SHOWN = (ModelCompleteEvent, ToolStartEvent, ToolCompleteEvent, ToolCacheHitEvent, ReflectEvent, TerminateEvent)


async def test_the_flight_is_booked_as_the_table_says() -> None:
    events = [event async for event in agent().run(PROMPT, thread_id="th-q3-2026")]
    assert [row(event) for event in events if isinstance(event, SHOWN)] == TABLE
    assert [(event.iteration, event.type) for event in events] == EVENTS
    nodes = [(event.node, event.why) for event in events if isinstance(event, CheckpointEvent)]
    assert nodes == NODES
    assert not [event for event in events if isinstance(event, GroundingEvent)], "nothing was claimed beside the calls"
    end = events[-1]
    assert isinstance(end, TerminateEvent)
    assert (end.reason, end.iterations_used, end.total_tool_calls) == ("ToolCalled AND ConfidenceMet", 2, 2)


async def test_and_its_log_has_a_line_for_each_of_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        result = await agent().run(PROMPT, thread_id="th-q3-2026")
    assert result.stop_reason == "ToolCalled AND ConfidenceMet"
    assert result.state.confidence == 0.93
    lines = [record.getMessage() for record in caplog.records]
    assert sum("search_flights" in line for line in lines) >= 1
    assert sum("ToolCalled AND ConfidenceMet" in line for line in lines) == 1
    assert not any("AA-181" in line for line in lines), "payloads are shown on request only"
