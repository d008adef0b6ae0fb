"""`GraphHook`: a graph's Think."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.state import AgentState
from locus.plugin import Event, Hook, hookimpl
from locus_plugin_graph.events import EVENTS
from locus_plugin_graph.superstep import super_step

if TYPE_CHECKING:
    from locus.loop import SegmentContext
    from locus_plugin_graph.plan import Plan

__all__ = ["GraphHook"]


class GraphHook(Hook):
    """Makes a super-step of each Think.

    Args:
        plan: the compiled graph.
    """

    name = "graph"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own events."""
        return list(EVENTS)

    @hookimpl
    async def locus_think(self, state: AgentState, run: SegmentContext) -> AgentState:
        """Run all tasks that are due."""
        return await super_step(self._plan, state, run)
