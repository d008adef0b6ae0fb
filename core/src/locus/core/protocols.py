"""Protocols: the reflect policies of plugins, and whether a value has what a protocol asks for.

A policy says when to reflect: a pure question about the state after Execute, answered with a reason or None. Plugins
contribute them and the agent joins them with `AnyOf`; without one, Reflect is never entered. They are values, so that
the router, which imports nothing else, may hold one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol, final

from locus.core.frozen import frozen

if TYPE_CHECKING:
    from locus.core.state import AgentState


class ReflectPolicy(Protocol):
    """A pure function of the state after Execute: why to reflect now, or None."""

    def __call__(self, state: AgentState, /) -> str | None:
        """The reason, in a few words, or None."""


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


def has_all_of(value: object, protocol: type) -> bool:
    """Whether a value has every public attribute that a protocol class names; what they are is not looked at.

    `isinstance` with a protocol finds what ``__getattr__`` gives in Python 3.11 and no longer in 3.12: a store that
    hands its calls on to another one would be one in the first and none in the second.
    """
    return all(hasattr(value, name) for name in _names(protocol))


@cache
def _names(protocol: type) -> tuple[str, ...]:
    return tuple(name for name in vars(protocol) if not name.startswith("_"))
