"""The condition that an agent really runs with: what its user asked for, and what every agent needs."""

from __future__ import annotations

from collections.abc import Collection

from locus.core._composites import OrCondition
from locus.core._condition import TerminationCondition
from locus.core._goals import NoToolCalls, ToolCalled
from locus.core._limits import MaxIterations

__all__ = ["DEFAULT_ITERATIONS", "effective"]

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
    terminal tool (resolution A6), the default bound where nothing else guarantees a halt, and last
    ``NoToolCalls`` (A3), so that it never hides another reason. A branch that is there is not repeated.

    Args:
        condition: the user's, or None.
        max_iterations: short for ``MaxIterations(max_iterations)``.
        terminal_tools: tools whose successful call ends the run.
        implicit_no_tool_calls: False for an agent that goes on after an answer without tool calls.

    Raises:
        ValueError: ``max_iterations`` or a tool's name is none.
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
