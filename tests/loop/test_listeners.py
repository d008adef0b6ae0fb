"""`Agent.with_listener`: somebody else hears the events of an agent, and changes nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, HookFailedEvent, ModelChunkEvent, ToolContext, tool
from locus.core.events import Event
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


def agents() -> Agent[Any, Any]:
    """An agent that asks another one."""
    child = Agent(ScriptedModel("Four."), name="child")

    @tool(effect="pure")
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask the child."""
        return str((await ctx.run_child(child, "2 + 2?")).text)

    return Agent(ScriptedModel(call("ask"), "It is four.", after="cycle"), tools=[ask], name="parent")


async def test_a_listener_hears_every_event_but_chunks_with_those_of_children() -> None:
    heard: list[Event] = []
    agent = agents()

    result = await agent.with_listener("meter", heard.append).run("Go.")

    runs = {event.run_id for event in heard}
    assert len(runs) == 2
    assert result.state.run_id in runs
    assert not any(isinstance(event, ModelChunkEvent) for event in heard)
    types = [event.type for event in heard if event.run_id == result.state.run_id]
    assert (types[0], types[-1]) == ("run_start", "terminate")
    assert {"tool_start", "tool_complete", "model_complete"} <= set(types)

    before = len(heard)
    await agent.run("Go.")
    assert len(heard) == before  # the agent itself is as it was


async def test_a_listener_that_raises_harms_no_run() -> None:
    def fail(event: Event) -> None:
        raise OSError("the meter is away")

    failed: list[Event] = []
    agent = agents().with_listener("log", failed.append).with_listener("meter", fail)

    assert (await agent.run("Go.")).text == "It is four."
    assert {each.plugin for each in failed if isinstance(each, HookFailedEvent)} == {"meter"}
