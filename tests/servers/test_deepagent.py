"""Submissions of a deep agent in strict mode on a real server. No test here asserts a model's judgement."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from attrs import frozen
from tests.servers.real import RealServer

from locus import Agent, ModelSettings
from locus.plugins.secret import Secret
from locus_deepagent import create_deepagent
from locus_plugin_openai.model import make
from locus_plugin_openai.settings import OpenAISettings

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@frozen
class Report:
    """What is submitted: nothing in the question has these words, so only the schema can have led to them."""

    colour_code: Literal["c-17", "c-23"]
    pieces: tuple[int, ...]


async def test_what_a_deep_agent_submits_in_strict_mode_has_the_form_of_its_schema(real_server: RealServer) -> None:
    settings = OpenAISettings(
        base_url=f"{real_server.url}/v1", api="chat", api_key=Secret(real_server.key), strict=True
    )
    agent: Agent[Any, Report] = create_deepagent(
        model=make(real_server.model, settings),
        tools=[],
        system_prompt="You submit a report.",
        output_schema=Report,
        reflexion=False,
        grounding=False,
        max_iterations=2,
        model_settings=ModelSettings(temperature=0.0, seed=1, max_tokens=128, tool_choice="required"),
    )

    result = await agent.run("Report on two apples and three pears.")

    (submitted,) = result.state.tool_executions
    assert submitted.tool_name == "submit_research"
    assert submitted.error is None
    assert result.stop_reason == "ToolCalled"
    assert isinstance(result.parsed, Report)
    assert result.parsed.colour_code in ("c-17", "c-23")
