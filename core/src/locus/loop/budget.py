"""The condition that an agent really runs with."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from locus.core.errors import ConfigError
from locus.core.termination import CostLimit, TerminationCondition, TokenLimit, effective
from locus.models.prices import has_price

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.hooks.table import Impl
    from locus.loop.parts import AgentParts
    from locus.models.protocol import Model
    from locus.options import AgentOptions

Parts = TypeVar("Parts", bound="AgentParts[Any]")


class NoHaltWarning(UserWarning):
    """The condition guarantees no halt, so the default bound was added."""


def agent_condition(
    options: AgentOptions, *, model: Model, prices: tuple[Impl, ...] = (), configured: Mapping[str, Any]
) -> TerminationCondition:
    """The user's condition with the built-in branches.

    Raises:
        ConfigError: it is not a condition, or a cost limit has no price to count with.
    """
    termination, max_iterations = options.termination, options.max_iterations
    if termination is not None:
        condition_given(termination)
    if max_iterations is None and termination is None:
        max_iterations = configured.get("max_iterations")
    wanted = termination
    try:
        if options.token_budget is not None:
            limit = TokenLimit(options.token_budget)
            wanted = limit if wanted is None else wanted | limit
        condition, added = effective(
            wanted,
            max_iterations=max_iterations,
            terminal_tools=frozenset(options.terminal_tools or ()),
            implicit_no_tool_calls=options.stop_on_text,
        )
    except ValueError as e:
        raise ConfigError(str(e)) from e
    if added and termination is not None:
        warnings.warn(
            f"{termination!r} alone may never hold, so MaxIterations(20) was added; say max_iterations=... to choose",
            NoHaltWarning,
            stacklevel=5,
        )
    refuse_unpriced(condition, model, prices)
    return condition


def condition_given(termination: object) -> TerminationCondition:
    """What was given as ``termination=``.

    Raises:
        ConfigError: it is not a condition.
    """
    if not isinstance(termination, TerminationCondition):
        raise ConfigError(
            "termination must be a condition of locus.core.termination, such as MaxIterations(10) | "
            f"TokenLimit(50_000), got {termination!r}"
        )
    return termination


def refuse_unpriced(condition: TerminationCondition, model: Model, prices: tuple[Impl, ...]) -> None:
    """Refuse a cost limit that would never count anything.

    Raises:
        ConfigError: the model has no price and the limit no ``unknown_price``.
    """
    for leaf in condition.leaves():
        if (
            isinstance(leaf, CostLimit)
            and leaf.unknown_price is None
            and not has_price(model, [impl.call for impl in prices])
        ):
            raise ConfigError(
                f"{leaf!r} cannot work with {model.name}: its price is not known; give "
                "unknown_price=<dollars per million tokens>, a model that has a price, or a plugin that knows it"
            )


def with_limits(runtime: Parts, *limits: TerminationCondition) -> Parts:
    """The same runtime with further reasons to stop, which come before its own."""
    condition = runtime.router.condition
    for limit in reversed(limits):
        condition = limit | condition
    refuse_unpriced(condition, runtime.model, runtime.hooks.prices)
    router = evolve(runtime.router, condition=condition)
    return evolve(runtime, router=router, limits=(*runtime.limits, *limits))
