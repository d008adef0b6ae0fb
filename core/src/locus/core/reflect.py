"""When to reflect: pure questions about the state after Execute, answered with a reason or None.

Plugins contribute them and the agent joins them with `AnyOf`; without one, Reflect is never entered.
"""

from __future__ import annotations

from typing import Protocol, final

from attrs import field

from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = ["AnyOf", "EveryIterations", "OnToolError", "ReflectPolicy"]


class ReflectPolicy(Protocol):
    """A pure function of the state after Execute: why to reflect now, or None."""

    def __call__(self, state: AgentState, /) -> str | None:
        """The reason, in a few words, or None."""
        ...


def _interval(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"EveryIterations(interval) must be an int of 1 or more, got {value!r}")
    return value


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
@frozen(init=False)
class AnyOf:
    """Reflect for the first reason that any of the policies gives."""

    policies: tuple[ReflectPolicy, ...]

    def __init__(self, *policies: ReflectPolicy) -> None:
        self.__attrs_init__(policies)

    def __call__(self, state: AgentState, /) -> str | None:
        """The first reason."""
        return next((why for policy in self.policies if (why := policy(state)) is not None), None)
