"""The leaf that says the work is going nowhere: the same call, over and over."""

from __future__ import annotations

from typing import ClassVar, final

from attrs import field

from locus.core._condition import TerminationCondition, register_condition
from locus.core._explain import Reading
from locus.core.executions import ToolExecution
from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = ["NoProgress", "same_call"]


def same_call(a: ToolExecution, b: ToolExecution) -> bool:
    """Whether two executions were asked for with the same tool and arguments, cached or not."""
    # Executions built by hand, and calls that were refused before they had a key, are compared in full.
    if a.key or b.key:
        return a.key == b.key
    return a.tool_name == b.tool_name and a.arguments == b.arguments


def _window(value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 2):
        raise ValueError(f"NoProgress(window) is {value!r}; it is an integer, 2 or more")
    return value


@final
@register_condition
@frozen(repr=False)
class NoProgress(TerminationCondition):
    """Stop when the last calls were all the same tool with the same arguments; cache hits count.

    Args:
        window: how many identical calls in a row, 2 or more; None reads `AgentState.tool_loop_threshold`,
            where less than 2 means never.
    """

    reads_iteration: ClassVar[bool] = False

    window: int | None = field(default=None, converter=_window)

    def _needed(self, state: AgentState) -> int:
        return state.tool_loop_threshold if self.window is None else self.window

    def _repeated(self, state: AgentState, most: int) -> int:
        executions = state.tool_executions[-most:]
        count = 0
        while count < len(executions) and same_call(executions[-1], executions[-1 - count]):
            count += 1
        return count

    def check(self, state: AgentState) -> bool:
        """Whether that many identical calls stand at the end."""
        needed = self._needed(state)
        return 2 <= needed <= len(state.tool_executions) and self._repeated(state, needed) == needed

    def reading(self, state: AgentState) -> Reading:
        """Identical calls at the end, counted up to the window."""
        needed = self._needed(state)
        if needed < 2:
            return Reading(None, needed, text=f"off (tool_loop_threshold is {needed})")
        count = self._repeated(state, needed)
        return Reading(count, needed, needed - count, f"{count} of {needed} identical calls in a row")
