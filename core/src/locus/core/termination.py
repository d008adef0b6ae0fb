"""The termination algebra: when a run stops, as values that compose with ``&``, ``|`` and ``~``.

    (ToolCalled("submit") & ConfidenceMet(0.9)) | MaxIterations(10) | TokenLimit(15_000)

A condition is a pure function of the state. `TerminationCondition.explain` says how far each leaf is from
being satisfied, `TerminationCondition.bounds` which ceiling the whole tree guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from locus.core._answers import Bound, Bounds, Explanation, Reading, Satisfied
from locus.core._condition import (
    AndCondition,
    NotCondition,
    OrCondition,
    TerminationCondition,
    condition_from_json,
    condition_types,
    register_condition,
)
from locus.core._leaves import (
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoProgress,
    NoToolCalls,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    ToolCallLimit,
    same_call,
)
from locus.core.frozen import frozen

__all__ = [
    "DEFAULT_ITERATIONS",
    "AndCondition",
    "Bound",
    "Bounds",
    "ConfidenceMet",
    "CostLimit",
    "CustomCondition",
    "Deadline",
    "Explanation",
    "MaxIterations",
    "NoProgress",
    "NoToolCalls",
    "NotCondition",
    "OrCondition",
    "Reading",
    "Satisfied",
    "TerminationCondition",
    "TextMention",
    "TimeLimit",
    "TokenLimit",
    "ToolCallLimit",
    "ToolCalled",
    "condition_from_json",
    "condition_types",
    "effective",
    "register_condition",
    "same_call",
]

#: The bound of an agent whose condition guarantees no halt.
DEFAULT_ITERATIONS = 20


def effective(
    condition: TerminationCondition | None = None,
    *,
    max_iterations: int | None = None,
    terminal_tools: Collection[str] = (),
    implicit_no_tool_calls: bool = True,
) -> tuple[TerminationCondition, bool]:
    """The user's condition with the built-in branches or-ed in, and whether the default bound is one of them.

    The order is the order of reporting: the user's condition, ``max_iterations``, a ``ToolCalled`` for each
    terminal tool, the default bound where nothing else guarantees a halt, and last ``NoToolCalls``, so that it
    never hides another reason. A branch that is there is not repeated.

    Args:
        condition: the user's, or None.
        max_iterations: short for ``MaxIterations(max_iterations)``.
        terminal_tools: tools whose successful call ends the run.
        implicit_no_tool_calls: False for an agent that goes on after an answer without tool calls.

    Raises:
        ValueError: ``max_iterations`` or a tool's name is invalid.
    """
    branches: list[TerminationCondition] = []
    if condition is not None:
        branches += condition.conditions if isinstance(condition, OrCondition) else (condition,)

    def add(branch: TerminationCondition) -> None:
        if branch not in branches:
            branches.append(branch)

    if max_iterations is not None:
        add(MaxIterations(max_iterations))
    for tool in sorted(terminal_tools):
        add(ToolCalled(tool))
    added_default = not any(b.bounds().guarantees_halt for b in branches)
    if added_default:
        add(MaxIterations(DEFAULT_ITERATIONS))
    if implicit_no_tool_calls:
        add(NoToolCalls())
    return (branches[0] if len(branches) == 1 else OrCondition(*branches)), added_default


@frozen(kw_only=True)
class RunBudget:
    """What a condition allows a run to spend, read off the tree once.

    Args:
        bounds: what it guarantees.
        timed: its answer can change by time alone.
        stops_at: the wall-clock time at which it stops the run for certain, or None.
        unknown_price: dollars per million tokens to charge for a model without a price, or None.
    """

    bounds: Bounds
    timed: bool
    stops_at: datetime | None
    unknown_price: float | None

    def seconds_left(self, active_seconds: float, now: Callable[[], datetime]) -> float | None:
        """Seconds until a limit of time stops the run for certain, 0 or less once one has; None without a limit.

        Args:
            active_seconds: how long the run has been at work.
            now: tells the wall-clock time.
        """
        bound, at = self.bounds.seconds, self.stops_at
        left = [] if bound is None else [bound.limit - active_seconds]
        return min(left if at is None else [*left, (at - now()).total_seconds()], default=None)

    @classmethod
    def of(cls, condition: TerminationCondition) -> RunBudget:
        """The budget that a condition sets."""
        leaves = tuple(condition.leaves())
        branches = condition.conditions if isinstance(condition, OrCondition) else (condition,)
        prices = [c.unknown_price for c in leaves if isinstance(c, CostLimit) and c.unknown_price is not None]
        return cls(
            bounds=condition.bounds(),
            timed=any(isinstance(leaf, TimeLimit | Deadline) for leaf in leaves),
            stops_at=min((b.at for b in branches if isinstance(b, Deadline)), default=None),
            unknown_price=max(prices, default=None),
        )
