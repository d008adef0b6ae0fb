"""When to reflect: pure questions about the state after Execute, answered with a reason or None.

Plugins contribute them and the agent joins them with `AnyOf`; without one, Reflect is never entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, final

from attrs import field, frozen

from locus.core._progress import same_call
from locus.core.executions import ToolExecution
from locus.core.state import AgentState

__all__ = ["AnyOf", "EveryIterations", "OnRepetition", "OnToolError", "ReflectPolicy"]


class ReflectPolicy(Protocol):
    """A pure function of the state after Execute: why to reflect now, or None."""

    def __call__(self, state: AgentState, /) -> str | None:
        """The reason, in a few words, or None."""
        ...


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; it is an integer, {least} or more")
    return value


def _interval(value: int) -> int:
    return _whole("EveryIterations(interval)", value, 1)


def _times(value: int | None) -> int | None:
    return None if value is None else _whole("OnRepetition(threshold)", value, 2)


@final
@frozen
class EveryIterations:
    """Reflect after iteration ``interval``, ``2 * interval`` and so on, counted from 1."""

    interval: int = field(converter=_interval)

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
class OnRepetition:
    """Reflect when the calls go in circles: one call over and over, or a short cycle such as A-B-A-B.

    Args:
        threshold: how many identical calls in a row make a loop, 2 or more; a cycle of two or three calls
            makes one when it is seen one time less, but at least twice. None reads
            `AgentState.tool_loop_threshold`, where less than 2 means never.
    """

    threshold: int | None = field(default=None, converter=_times)

    def __call__(self, state: AgentState, /) -> str | None:
        """What repeats."""
        needed = state.tool_loop_threshold if self.threshold is None else self.threshold
        if needed < 2:
            return None
        executions = state.tool_executions
        if _cycles(executions, 1, needed):
            return f"{executions[-1].tool_name} was called {needed} times with the same arguments"
        for period in (2, 3):
            if _cycles(executions, period, max(2, needed - 1)):
                return f"the last {period} calls repeat the {period} before them"
        return None


def _cycles(executions: Sequence[ToolExecution], period: int, times: int) -> bool:
    """Whether the end of the sequence is a cycle of ``period`` calls, so many times. O(period * times)."""
    length = period * times
    if len(executions) < length:
        return False
    end = executions[-length:]
    return all(same_call(a, b) for a, b in zip(end, end[period:], strict=False))


@final
@frozen(init=False)
class AnyOf:
    """Reflect for the first reason that any of the policies gives."""

    policies: tuple[ReflectPolicy, ...]

    def __init__(self, *policies: ReflectPolicy) -> None:
        self.__attrs_init__(policies)

    def __call__(self, state: AgentState, /) -> str | None:
        """The first reason."""
        return next((why for policy in self.policies if (why := policy(state)) is not None), None)
