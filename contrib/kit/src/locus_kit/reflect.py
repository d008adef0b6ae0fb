"""Policies that say when to reflect, for plugins that judge a run: by cadence, after some tool, going in circles.

Each is a `locus.loop.router.ReflectPolicy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import final

from attrs import field, frozen

from locus.core.state import AgentState, ToolExecution
from locus_kit.validators import integer, optional, strings

__all__ = ["AfterTool", "EveryIterations", "OnRepetition", "OnToolError"]

#: How many turns a cycle may have. A longer one is rather a procedure that the task repeats.
_LONGEST_CYCLE = 6


@final
@frozen
class EveryIterations:
    """Reflect after iteration ``interval``, ``2 * interval`` and so on, counted from 1."""

    interval: int = field(validator=integer(1))

    def __call__(self, state: AgentState, /) -> str | None:
        """The cadence, when it is due."""
        if (state.iteration + 1) % self.interval:
            return None
        return "every iteration" if self.interval == 1 else f"every {self.interval} iterations"


@final
@frozen
class OnToolError:
    """Reflect after a tool of the current iteration failed in its body; a refused call never got there."""

    def __call__(self, state: AgentState, /) -> str | None:
        """The tool that failed last."""
        for execution in reversed(state.tool_executions):
            if execution.iteration != state.iteration:
                return None
            if execution.started and not execution.succeeded:
                return f"{execution.tool_name} failed"
        return None


@final
@frozen
class AfterTool:
    """Reflect after an iteration in which one of these tools succeeded.

    Args:
        names: of the tools, or patterns of them.
    """

    names: tuple[str, ...] = field(validator=strings)

    def __call__(self, state: AgentState, /) -> str | None:
        """The tool that was called last."""
        for execution in reversed(state.tool_executions):
            if execution.iteration != state.iteration:
                return None
            if execution.succeeded and any(fnmatchcase(execution.tool_name, name) for name in self.names):
                return f"{execution.tool_name} was called"
        return None


@final
@frozen
class OnRepetition:
    """Reflect when the turns go in circles: the same calls over and over, or a short cycle such as A-B-A-B.

    Iterations are compared by their calls, whose order within a batch makes no difference. Equal calls within one
    batch are not a repetition, and neither are calls with other arguments (the next page, the next file).

    Args:
        threshold: how many turns in a row with the same calls make a loop, 2 or more; a cycle of two to six turns
            makes one when it is seen one time less, but at least twice. None reads
            `AgentState.tool_loop_threshold`, where less than 2 means never.
    """

    threshold: int | None = field(default=None, validator=optional(integer(2)))

    def __call__(self, state: AgentState, /) -> str | None:
        """What repeats."""
        needed = state.tool_loop_threshold if self.threshold is None else self.threshold
        if needed < 2:
            return None
        before = _turns_backwards(state.tool_executions)
        turns = list(islice(before, _LONGEST_CYCLE + 1))
        made = [_calls_of(turn) for turn in turns]
        if not made or made[0] not in made[1:]:
            return None  # as after nearly every turn
        cycles = ((1, needed), *((period, max(2, needed - 1)) for period in range(2, _LONGEST_CYCLE + 1)))
        turns += islice(before, max(period * times for period, times in cycles) - len(turns))
        made += [_calls_of(turn) for turn in turns[len(made) :]]
        for period, times in cycles:
            if _cycles(made, period, times):
                break
        else:
            return None
        if period > 1:
            return f"the last {period} calls repeat the {period} before them"
        if len(turns[0]) > 1:
            return f"the same {len(turns[0])} calls were made {times} times"
        return f"{turns[0][0].tool_name} was called {times} times with the same arguments"


def _turns_backwards(executions: Sequence[ToolExecution]) -> Iterator[list[ToolExecution]]:
    """What each iteration called, the newest iteration first."""
    turn: list[ToolExecution] = []
    for back in range(1, len(executions) + 1):
        execution = executions[-back]
        if turn and turn[0].iteration != execution.iteration:
            yield turn
            turn = []
        turn.append(execution)
    if turn:
        yield turn


def _identity(execution: ToolExecution) -> Hashable:
    return execution.key or (execution.tool_name, execution.arguments)


def _calls_of(turn: Sequence[ToolExecution]) -> Hashable:
    """The calls of a turn, in whatever order."""
    return _identity(turn[0]) if len(turn) == 1 else frozenset(Counter(map(_identity, turn)).items())


def _cycles(turns: Sequence[Hashable], period: int, times: int) -> bool:
    """Whether the newest turns are a cycle of ``period`` turns, so many times. O(period * times)."""
    length = period * times
    return len(turns) >= length and turns[period:length] == turns[: length - period]
