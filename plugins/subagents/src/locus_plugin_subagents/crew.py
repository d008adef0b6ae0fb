"""`Crew`: the subagents of one agent, each of which is built once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from locus import Agent
from locus.models import Model
from locus_kit.tool_names import find_child_tools
from locus_plugin_subagents.definition import SubAgentDef

__all__ = ["MAX_DEPTH", "Crew"]

#: How many levels of subagents there may be below an agent.
MAX_DEPTH = 3


class Crew:
    """The subagents by name.

    Args:
        definitions: at least one.
        max_depth: how many levels of them there may be below an agent.

    Raises:
        ValueError: the list is empty, or two have one name.
    """

    def __init__(self, definitions: Iterable[SubAgentDef], *, max_depth: int = MAX_DEPTH) -> None:
        self._definitions: dict[str, SubAgentDef] = {}
        self._max_depth = max_depth
        for each in definitions:
            if not isinstance(each, SubAgentDef):
                raise ValueError(f"expected a SubAgentDef, got {each!r:.80}")
            if self._definitions.setdefault(each.name, each) is not each:
                raise ValueError(f"two subagents are named {each.name!r}; rename one of them")
        if not self._definitions:
            raise ValueError("task_tool requires at least one SubAgentDef")
        # By name, with the model that it was built for: an agent has one, but for a what-if with another.
        self._agents: dict[str, tuple[str | Model, Agent[Any, Any]]] = {}

    @property
    def catalogue(self) -> str:
        """A line for each."""
        return "\n".join(each.catalogue_line for each in self._definitions.values())

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._definitions)

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools of all of them, and of subagents of theirs."""
        tools = [tool for each in self._definitions.values() for tool in each.tools]
        return find_child_tools(tools) | {tool.name for tool in tools}

    def get(self, name: str) -> SubAgentDef | None:
        """The definition of that name, or None."""
        return self._definitions.get(name)

    def build(self, parent_model: str | Model) -> None:
        """Build all of them.

        Args:
            parent_model: of those that have no model of their own.

        Raises:
            ConfigError: one cannot be built, such as for a model of an unknown provider.
        """
        for each in self._definitions.values():
            self.agent(each, each.model if each.model is not None else parent_model)

    def agent(self, definition: SubAgentDef, model: str | Model) -> Agent[Any, Any]:
        """The agent of a definition, with that model."""
        known = self._agents.get(definition.name)
        if known is not None and known[0] is model:
            return known[1]
        made: Agent[Any, Any] = Agent(
            model,
            name=definition.name,
            tools=definition.tools,
            system_prompt=definition.system_prompt or None,
            max_iterations=definition.max_iterations,
            max_depth=self._max_depth - 1,
        )
        self._agents[definition.name] = (model, made)
        return made
