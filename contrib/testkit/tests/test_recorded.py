"""A run of a real model of 0.5 billion parameters, recorded with `pytest --locus-record=all` and replayed here.

To record it again takes the provider and its weights; to replay it takes neither.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from locus import Agent, ModelSettings, tool
from locus.core.events import ModelChunkEvent
from locus_testkit import Cassette, assert_valid_history

pytestmark = pytest.mark.anyio

MODEL = "llamacpp:qwen2.5-coder-0.5b"


@tool
def temperature(city: str) -> str:
    """Give the temperature of a city, in degrees Celsius."""
    return f"{len(city) * 4} degrees"


@frozen
class Report:
    city: str
    degrees: int


@pytest.mark.cassette("temperature")
async def test_a_real_run_with_a_tool_and_a_typed_answer(cassette: Cassette) -> None:
    agent: Agent[Any, Report] = Agent(
        cassette.model(MODEL),
        tools=[temperature],
        output_schema=Report,
        model_settings=ModelSettings(temperature=0.0, max_tokens=200, seed=1),
    )
    run = agent.run("How warm is it in Paris? Use the tool.")
    events = [event async for event in run]
    result = run.result
    assert result.parsed == Report("Paris", 20)
    assert [(e.tool_name, dict(e.arguments)) for e in result.state.tool_executions] == [
        ("temperature", {"city": "Paris"})
    ]
    assert_valid_history(result.state.messages)
    streamed = "".join(e.text for e in events if isinstance(e, ModelChunkEvent) and e.kind == "text")
    assert result.text in streamed
    assert result.usage.total_tokens > 100
