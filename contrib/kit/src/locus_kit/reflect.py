"""The policy that reflects when an agent goes in circles, for plugins that judge a run.

The simpler policies, by cadence and after a tool's error, come with the kernel in `locus.loop.router`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from attrs import field, frozen

from locus.core.state import AgentState, ToolExecution
from locus.core.termination import same_call
from locus_kit.validators import integer, optional

__all__ = ["OnRepetition"]


@final
@frozen
class OnRepetition:
    """Reflect when the turns go in circles: the same calls over and over, or a short cycle such as A-B-A-B.

    What is compared is what was asked for in one iteration: equal calls within one batch are no circle, and neither
    are calls with other arguments (the next page, the next file).

    Args:
        threshold: how many turns in a row with the same calls make a loop, 2 or more; a cycle of two or three turns
            makes one when it is seen one time less, but at least twice. None reads
            `AgentState.tool_loop_threshold`, where less than 2 means never.
    """

    threshold: int | None = field(default=None, validator=optional(integer(2)))

    def __call__(self, state: AgentState, /) -> str | None:
        """What repeats."""
        needed = state.tool_loop_threshold if self.threshold is None else self.threshold
        if needed < 2:
            return None
        cycles = ((1, needed), *((period, max(2, needed - 1)) for period in (2, 3)))
        turns = _last_turns(state.tool_executions, max(period * times for period, times in cycles))
        for period, times in cycles:
            if _cycles(turns, period, times):
                break
        else:
            return None
        if period > 1:
            return f"the last {period} calls repeat the {period} before them"
        if len(turns[0]) > 1:
            return f"the same {len(turns[0])} calls were made {times} times"
        return f"{turns[0][0].tool_name} was called {times} times with the same arguments"


def _last_turns(executions: Sequence[ToolExecution], most: int) -> list[list[ToolExecution]]:
    """What the last iterations called, the newest iteration first; not more than so many are looked at."""
    turns: list[list[ToolExecution]] = []
    for back in range(1, len(executions) + 1):
        execution = executions[-back]
        if turns and turns[-1][0].iteration == execution.iteration:
            turns[-1].append(execution)
        elif len(turns) == most:
            break
        else:
            turns.append([execution])
    return turns


def _cycles(turns: Sequence[Sequence[ToolExecution]], period: int, times: int) -> bool:
    """Whether the newest turns are a cycle of ``period`` turns, so many times. O(period * times)."""
    length = period * times
    if len(turns) < length:
        return False
    return all(_same_calls(a, b) for a, b in zip(turns[:length], turns[period:length], strict=False))


def _same_calls(a: Sequence[ToolExecution], b: Sequence[ToolExecution]) -> bool:
    return len(a) == len(b) and all(same_call(x, y) for x, y in zip(a, b, strict=True))
