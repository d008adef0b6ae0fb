"""`PlanningHook`: the plugin's Think."""

from __future__ import annotations

from typing import Any

from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.plugin import Event, Hook, Reject, RunContext, StashKey, hookimpl
from locus_plugin_planning.events import EVENTS
from locus_plugin_planning.lock import decide, is_imported
from locus_plugin_planning.record import NAME, Record
from locus_plugin_planning.settings import PlanningSettings
from locus_plugin_planning.thinking import Thinking, build_report

__all__ = ["PlanningHook"]

_READ: StashKey[tuple[Any, Record | None]] = StashKey("planning: what was read of the record, and the record")
_TOLD: StashKey[bool] = StashKey("planning: the report of an earlier segment was repeated")


class PlanningHook(Hook):
    """Plans before it acts.

    Args:
        settings: who plans and how far; None = the defaults.
    """

    name = NAME

    def __init__(self, settings: PlanningSettings | None = None) -> None:
        self.settings = PlanningSettings() if settings is None else settings

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own events."""
        return list(EVENTS)

    @hookimpl
    async def locus_think(self, state: AgentState, run: RunContext) -> AgentState | None:
        """Follow the plan, or make one at the beginning of a run; without one the agent's model thinks."""
        if not state.iteration:
            return await Thinking(self.settings, state, run, None).think() if len(run.registry) else None
        record = _record(state, run)
        if record is None:
            return None  # a run that began without a plan continues without one
        if record.running:
            return await Thinking(self.settings, state, run, record).think()
        if _TOLD not in run.stash:
            run.stash[_TOLD] = True
            run.report(NAME, build_report(record))
        return None

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Reject | None:
        """Reject what a locked plan does not have."""
        if not self.settings.locked:
            return None
        record = None if is_imported(run.state) else _record(run.state, run)
        thinking = None if record is None else Thinking(self.settings, run.state, run, record)
        return decide(call, run, None if thinking is None else thinking.find_next(call.name))


def _record(state: AgentState, run: RunContext) -> Record | None:
    data = state.metadata.get(NAME)
    if data is None:
        return None
    last, record = run.stash.get(_READ, (None, None))
    if data is not last:  # it is written when a plan is made and when it ends, and read as often
        record = Record.of(state)
        run.stash[_READ] = data, record
    return record
