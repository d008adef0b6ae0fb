"""`locus_check_tools`: plugins hear which tools an agent has, and may refuse what their settings say of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from locus import Agent, Hook, tool
from locus.core.errors import ConfigError, HookSpecError
from locus.core.events import HookFailedEvent
from locus.plugin import RunContext, hookimpl
from locus.tools import ToolRegistry
from locus_testkit import ScriptedModel


@tool(effect="pure")
def read(path: str) -> str:
    """Read a file."""
    return path


class Needs(Hook):
    """Insists on a tool."""

    def __init__(self, name: str) -> None:
        self.wanted = name
        self.heard: list[tuple[str, ...]] = []

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        self.heard.append(tools.names)
        tools.require([self.wanted], "tool of Needs")


class Brings(Hook):
    """Has a tool for each run."""

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[list[Any]]:
        yield [tool(read.fn, name="fetch", effect="pure")]


def build(*hooks: object) -> Agent[Any, Any]:
    return Agent(ScriptedModel("done", "done"), tools=[read], hooks=list(hooks))


def test_all_tools_are_heard_when_the_agent_is_built() -> None:
    needs = Needs("read")
    build(needs)
    assert needs.heard == [("read",)]


def test_what_is_raised_is_the_error_of_building() -> None:
    with pytest.raises(ConfigError, match="unknown tool of Needs 'raed'; did you mean 'read'"):
        build(Needs("raed"))


def test_a_check_must_be_sync() -> None:
    class Late(Hook):
        @hookimpl
        async def locus_check_tools(self, tools: ToolRegistry) -> None: ...

    with pytest.raises(HookSpecError, match="is async; it is called while an agent is built"):
        build(Late())


@pytest.mark.anyio
async def test_where_a_plugin_brings_tools_it_is_heard_at_the_beginning_of_a_run() -> None:
    needs = Needs("fetch")
    agent = build(needs, Brings())
    assert needs.heard == []

    result = await agent.run("x")

    assert needs.heard == [("read", "fetch")]
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.anyio
async def test_a_tool_that_is_missing_then_is_reported_and_the_run_goes_on() -> None:
    agent = build(Needs("fecth"), Brings())

    events = [event async for event in agent.run("x")]

    failed = [event for event in events if isinstance(event, HookFailedEvent)]
    assert [(event.plugin, event.hook) for event in failed] == [("Needs", "locus_check_tools")]
    assert "did you mean 'fetch'?" in failed[0].error
    result = await agent.run("x")
    assert result.text == "done"
    assert "did you mean 'fetch'?" in str(result.reports["plugins"])
