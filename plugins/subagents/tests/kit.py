"""Agents with subagents, made in both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from locus import Agent, AgentResult
from locus.core.events import Event
from locus.core.messages import ToolCall
from locus.models import ModelRequest
from locus_plugin_subagents import SubAgentDef, SubagentsSettings, task_tool
from locus_testkit import call

__all__ = ["WAYS", "Make", "define", "kinds", "last_result", "results", "task", "with_plugin"]

Make = Callable[..., Agent[Any, Any]]


def define(model: Any = None, name: str = "reader", **options: Any) -> SubAgentDef:
    return SubAgentDef(name=name, description="reads", system_prompt="You read.", model=model, **options)


def task(description: str = "Read it.", name: str = "reader") -> ToolCall:
    return call("task", subagent_type=name, description=description)


def results(result: AgentResult[Any]) -> list[str | None]:
    """What the parent's model gets of each call."""
    return [each.result if each.error is None else each.error for each in result.state.tool_executions]


def last_result(request: ModelRequest) -> str:
    """What the model has just got of its last call."""
    block: Any = request.messages[-1].content[0]
    return str(block.content)


def kinds(events: list[Event], wanted: str) -> list[Any]:
    return [event for event in events if event.type == wanted]


def with_plugin(model: Any, children: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(model, subagents=SubagentsSettings(agents=children), **options)


def with_tool(model: Any, children: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(model, tools=[task_tool(children, parent_model=model)], **options)


#: The plugin, and the tool by itself.
WAYS = (with_plugin, with_tool)
