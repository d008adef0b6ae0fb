"""What a run may spend: the condition an agent really runs with, and the share a child gets of its parent's."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.errors import ConfigError
from locus.core.frozen import frozen
from locus.core.termination import (
    CostLimit,
    MaxIterations,
    TerminationCondition,
    TokenLimit,
    effective,
)
from locus.models.prices import has_price

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.hooks.table import Impl
    from locus.loop.context import SegmentContext
    from locus.loop.runtime import AgentRuntime
    from locus.models.protocol import Model
    from locus.options import AgentOptions

__all__ = ["Budget", "NoHaltWarning", "agent_condition", "condition_given", "with_limits", "within_parent"]


class NoHaltWarning(UserWarning):
    """The condition guarantees no halt, so the default bound was added."""


@frozen(kw_only=True)
class Budget:
    """What a child run may spend; the smaller of it and what its parent has left counts.

    Args:
        tokens: prompt and completion tokens.
        dollars: needs a model with a known price.
        iterations: model calls of the child's loop.
    """

    tokens: int | None = None
    dollars: float | None = None
    iterations: int | None = None


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
            terminal_tools=frozenset(options.terminal_tools),
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


def with_limits(runtime: AgentRuntime, *limits: TerminationCondition) -> AgentRuntime:
    """The same runtime with further reasons to stop, which come before its own."""
    condition = runtime.router.condition
    for limit in reversed(limits):
        condition = limit | condition
    refuse_unpriced(condition, runtime.model, runtime.hooks.prices)
    router = evolve(runtime.router, condition=condition)
    return evolve(runtime, router=router, limits=(*runtime.limits, *limits))


def within_parent(runtime: AgentRuntime, budget: Budget, parent: SegmentContext) -> AgentRuntime:
    """A child's runtime within its budget and within what its parent has left."""
    bounds, state = parent.bounds, parent.with_charges(parent.state, take=False)
    tokens = _least(budget.tokens, bounds.tokens.limit - state.total_tokens_used if bounds.tokens else None)
    dollars = _least(budget.dollars, bounds.dollars.limit - state.cost if bounds.dollars else None)
    left = None if bounds.iterations is None else bounds.iterations - state.iteration
    iterations = _least(budget.iterations, left)
    limits: list[TerminationCondition] = []
    if tokens is not None:
        limits.append(TokenLimit(max(0, int(tokens))))
    if dollars is not None:
        limits.append(CostLimit(max(0.0, dollars)))
    if iterations is not None:
        limits.append(MaxIterations(max(1, int(iterations))))
    return with_limits(runtime, *limits) if limits else runtime


def _least(given: float | None, left: float | None) -> float | None:
    known = [v for v in (given, left) if v is not None]
    return min(known) if known else None
