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


async def test_a_listener_hears_chunks_where_it_asks_for_them_and_the_run_is_the_same() -> None:
    heard: list[Event] = []
    agent = Agent(ScriptedModel("It is four.", chunks=True, after="cycle"), name="parent")

    result = await agent.with_listener("screen", heard.append, hears_chunks=True).run("Go.")

    pieces = [event.text for event in heard if isinstance(event, ModelChunkEvent)]
    assert len(pieces) > 1
    assert "".join(pieces) == result.text == (await agent.run("Go.")).text
