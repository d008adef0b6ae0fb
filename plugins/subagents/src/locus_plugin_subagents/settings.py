"""The settings of the plugin: the table ``[plugins.subagents]``."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen
from attrs.validators import instance_of

from locus_kit.validators import integer, to_tuple
from locus_plugin_subagents.crew import MAX_DEPTH, Crew
from locus_plugin_subagents.definition import SubAgentDef, general_purpose

__all__ = ["SubagentsSettings"]


@frozen(kw_only=True)
class SubagentsSettings:
    """The subagents of an agent.

    Args:
        agents: the subagents.
        general_purpose: let there be one for any piece of work as well, see `locus_plugin_subagents.general_purpose`.
        tools: those of the one for any piece of work. It has no others.
        max_depth: how many levels of subagents there may be below the agent.

    Raises:
        ValueError: no subagent is given, or two have one name.
    """

    agents: tuple[SubAgentDef, ...] = field(default=(), converter=to_tuple)
    general_purpose: bool = field(default=False, validator=instance_of(bool))
    tools: tuple[Any, ...] = field(default=(), converter=to_tuple)
    max_depth: int = field(default=MAX_DEPTH, validator=integer(1, 16))

    def __attrs_post_init__(self) -> None:
        if not self.agents and not self.general_purpose:
            raise ValueError("agents must hold at least one SubAgentDef, or general_purpose must be true")
        self.make_crew()

    def make_crew(self) -> Crew:
        """The subagents, not built yet."""
        more = (general_purpose(self.tools),) if self.general_purpose else ()
        return Crew((*self.agents, *more), max_depth=self.max_depth)
