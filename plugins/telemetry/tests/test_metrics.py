"""The histograms of the conventions."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ModelError
from locus_plugin_telemetry import conventions as c
from locus_testkit import ScriptedModel, call

from .kit import Traced, add, fail

pytestmark = pytest.mark.anyio

TOKENS, DURATION = c.TOKEN_USAGE[0], c.OPERATION_DURATION[0]


async def test_tokens_are_measured_by_kind_model_and_provider() -> None:
    traced = Traced()
    await traced.agent(ScriptedModel(call("add", a=1, b=2), "It is 3.", name="openai:gpt-9")).run("?")
    points = traced.points(TOKENS)
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-9",
        "gen_ai.response.model": "gpt-9",
    }
    assert {p.attributes["gen_ai.token.type"]: (p.count, p.sum) for p in points} == {
        "input": (2, 20),
        "output": (2, 10),
    }
    for point in points:
        assert {k: v for k, v in point.attributes.items() if k != "gen_ai.token.type"} == common
        assert point.explicit_bounds == c.TOKEN_USAGE[3]


async def test_durations_are_measured_by_operation_and_error() -> None:
    traced = Traced()
    model = ScriptedModel([call("add", a=1, b=2), call("fail", why="x"), call("made up")], ModelError("busy"))
    await traced.agent(model).run("?")
    points = traced.points(DURATION)
    found = {
        (p.attributes["gen_ai.operation.name"], p.attributes.get("gen_ai.tool.name"), p.attributes.get("error.type"))
        for p in points
    }
    assert found == {
        ("chat", None, None),
        ("chat", None, "ModelError"),
        ("execute_tool", "add", None),
        ("execute_tool", "fail", "ValueError"),
        ("invoke_agent", None, "ModelError"),
    }
    assert all(p.count == 1 and 0 < p.sum < 60 and p.explicit_bounds == c.OPERATION_DURATION[3] for p in points)


async def test_a_measurement_leads_to_its_span() -> None:
    traced = Traced()
    await traced.agent(ScriptedModel("Hi.")).run("?")
    data = traced.points(DURATION, TOKENS)
    points = [p for p in data if p.attributes["gen_ai.operation.name"] == "chat"]
    assert len(points) == 3
    for point in points:
        (exemplar,) = point.exemplars
        assert exemplar.span_id == traced.one("chat model").context.span_id


async def test_metrics_can_be_left_out() -> None:
    traced = Traced()
    agent: Agent[Any, Any] = Agent(ScriptedModel("Hi."), tools=[add, fail], telemetry=traced.settings(metrics=False))
    await agent.run("?")
    assert traced.points(TOKENS) == []
    assert traced.points(DURATION) == []
    assert len(traced.spans) == 3
