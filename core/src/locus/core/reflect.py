"""When to reflect: pure questions about the state after Execute, answered with a reason or None.

Plugins contribute them and the agent joins them with `AnyOf`; without one, Reflect is never entered. They are values,
so that the router, which imports nothing else, may hold one.
"""

from __future__ import annotations

from typing import Protocol, final

from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = ["AnyOf", "ReflectPolicy"]


class ReflectPolicy(Protocol):
    """A pure function of the state after Execute: why to reflect now, or None."""

    def __call__(self, state: AgentState, /) -> str | None:
        """The reason, in a few words, or None."""
        ...


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
