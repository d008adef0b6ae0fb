"""`GraphEnd`: a graph has ended when no task is due."""

from __future__ import annotations

from typing import ClassVar, final

from attrs import frozen

from locus.core.state import AgentState
from locus.core.termination import Reading, TerminationCondition, register_condition
from locus_plugin_graph.values import RECORD

__all__ = ["GraphEnd"]


@final
@register_condition
@frozen(repr=False)
class GraphEnd(TerminationCondition):
    """Stop when no node follows: every path has come to END."""

    reads_iteration: ClassVar[bool] = False

    def check(self, state: AgentState) -> bool:
        """Whether a super-step was made, and none is due."""
        record = state.metadata.get(RECORD)
        return record is not None and not record["next"] and record["run"] == state.run_id

    def reading(self, state: AgentState) -> Reading:
        """How many tasks are due."""
        due = len(state.metadata[RECORD]["next"]) if RECORD in state.metadata else 0
        return Reading(due, 0, due, f"{due} task{'' if due == 1 else 's'} due")
