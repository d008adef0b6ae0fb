"""`SubagentsHook`: gives an agent the tool `task`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from locus import Agent
from locus.plugin import Hook, current_run, hookimpl
from locus.tools import Tool
from locus_plugin_subagents.definition import SubAgentDef
from locus_plugin_subagents.settings import SubagentsSettings
from locus_plugin_subagents.task import make_task

if TYPE_CHECKING:
    from locus.loop import SegmentContext

__all__ = ["SubagentsHook"]


class SubagentsHook(Hook):
    """Lets the model give pieces of its work to subagents.

    Args:
        settings: the subagents.
    """

    name = "subagents"

    def __init__(self, settings: SubagentsSettings) -> None:
        self.settings = settings
        self._crew = settings.make_crew()

    @hookimpl
    def locus_register_tools(self) -> list[Tool[..., Any]]:
        """The tool."""
        return [make_task(self._crew, self._find_agent)]

    def _find_agent(self, definition: SubAgentDef) -> Agent[Any, Any]:
        # The agent that this hook belongs to is not known before a run of it: models are asked for there, by name too,
        # because it knows the settings of their providers.
        run = cast("SegmentContext | None", current_run())
        if run is None:
            raise RuntimeError(
                "the tool 'task' of the plugin 'subagents' works in runs of the agent that has the plugin"
            )
        return self._crew.agent(definition, run.model_for(definition.model))
