r"""The router: a pure function from a node and the state after it to the node that runs next.

    THINK ----tool calls----> EXECUTE --a policy says so--> REFLECT
      ^ \--an answer--> TERMINATE  \--otherwise--> THINK       |
      +----------------------- always --------------------------+
    any node: the condition is satisfied -> TERMINATE

Termination wins over the table. An answer ends the run because an agent's condition has `NoToolCalls` for
its last branch; where it was left out, the table goes to Think again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, final

from attrs import field
from attrs.validators import instance_of

from locus.core.errors import ConditionError
from locus.core.frozen import frozen
from locus.core.protocols import AnyOf, ReflectPolicy
from locus.core.termination import MaxIterations, Satisfied, TerminationCondition

if TYPE_CHECKING:
    from locus.core.state import AgentState

__all__ = ["AnyOf", "Node", "ReflectPolicy", "Route", "Router", "legal"]


class Node(StrEnum):
    """The four nodes of the loop."""

    THINK = "think"
    EXECUTE = "execute"
    REFLECT = "reflect"
    TERMINATE = "terminate"


#: The nodes under short names: before Python 3.12 a member that is read from its class costs a function call.
THINK, EXECUTE, REFLECT, TERMINATE = Node


@frozen
class Route:
    """Where to go.

    Args:
        next: the node that runs next; `Node.TERMINATE` ends the run.
        why: the reason, for people.
        satisfied: what ends the run, where the condition does.
        iteration_finished: it ends where Think would have run again, so one iteration more is finished.
    """

    next: Node
    why: str
    satisfied: Satisfied | None = None
    iteration_finished: bool = False


_EDGES = {
    # To Think again: the answer was sent back, or an answer does not end this run.
    THINK: frozenset({EXECUTE, THINK, TERMINATE}),
    EXECUTE: frozenset({REFLECT, THINK, TERMINATE}),
    REFLECT: frozenset({THINK, TERMINATE}),
    TERMINATE: frozenset({TERMINATE}),
}


_ASKED = Route(EXECUTE, "the model asks for tools")
_SENT_BACK = Route(THINK, "the answer was sent back for revision")
_GOES_ON = Route(THINK, "an answer does not end this run")
_ANSWERED = Route(THINK, "the tools have answered")
_REFLECTED = Route(THINK, "the reflection is done")


def legal(node: Node, state: AgentState | None = None) -> frozenset[Node]:
    """The nodes that may follow a node; with the state after it, those that leave the conversation valid.

    After Think the state decides between Execute and Think: calls that have no result yet cannot go back to
    the model, and without calls there is nothing to execute.
    """
    edges = _EDGES[node]
    if state is None or node is not THINK:
        return edges
    return edges - {THINK if state.unanswered else EXECUTE}


@final
@frozen
class Router:
    """``router(node, state) -> Route``: same arguments, same answer; no clock, no I/O, nothing changed.

    Args:
        condition: when to stop.
        reflect: when to reflect between Execute and Think, or None for never.
    """

    condition: TerminationCondition = field(validator=instance_of(TerminationCondition))  # type: ignore[type-abstract]
    reflect: ReflectPolicy | None = None
    # From this iteration on the condition may answer otherwise than in the one before.
    _turns_at: float = field(init=False, repr=False, eq=False)

    @_turns_at.default
    def _when(self) -> float:
        if not isinstance(self.condition, TerminationCondition):
            return 0  # the validator, which runs after this, says so
        leaves = [leaf for leaf in self.condition.leaves() if leaf.reads_iteration]
        if any(not isinstance(leaf, MaxIterations) for leaf in leaves):
            return 0
        return min((leaf.n for leaf in leaves if isinstance(leaf, MaxIterations)), default=float("inf"))

    def __call__(self, node: Node, state: AgentState) -> Route:
        """The node that runs after ``node`` has left ``state``.

        Raises:
            ConditionError: a predicate of the condition raised, or the reflect policy did.
        """
        if node is TERMINATE:
            return Route(TERMINATE, "the run is over")
        satisfied = self.condition.evaluate(state)
        if satisfied is not None:
            return _stop(satisfied)
        if node is THINK:
            if state.unanswered:
                return _ASKED
            if state.pending_revision:
                return self._think(state, _SENT_BACK)
            return self._think(state, _GOES_ON)
        if node is EXECUTE:
            why = self._reflect(state)
            if why is not None:
                return Route(REFLECT, why)
            return self._think(state, _ANSWERED)
        return self._think(state, _REFLECTED)

    def divert(self, node: Node, state: AgentState, route: Route, to: Node) -> Route:
        """Another legal edge in place of the proposed one, still bound by the condition.

        A stop cannot be diverted, an edge that `legal` does not know is not taken, and Think is only entered
        where the condition lets it: then the proposed route is taken, or the run ends.

        Args:
            node: the node that ran.
            state: the state after it.
            route: the proposed route.
            to: where to go instead.
        """
        if route.next is TERMINATE or to is route.next or to not in legal(node, state):
            return route
        why = f"instead of {route.next}"
        return self._think(state, Route(to, why)) if to is THINK else Route(to, why)

    def _reflect(self, state: AgentState) -> str | None:
        if self.reflect is None:
            return None
        try:
            why = self.reflect(state)
            if why is not None and not isinstance(why, str):
                raise TypeError(f"it returned {why!r}; a policy returns the reason as a string, or None")
        except Exception as e:
            raise ConditionError(repr(self.reflect), e) from e
        return why

    def _think(self, state: AgentState, route: Route) -> Route:
        # `MaxIterations` counts finished iterations: this one would be, if Think ran again. What predicates have said
        # of the state holds then: each is asked once a check.
        if state.iteration + 1 < self._turns_at:
            return route
        satisfied = self.condition.evaluate(state.with_next_iteration())
        return route if satisfied is None else _stop(satisfied, iteration_finished=True)


def _stop(satisfied: Satisfied, *, iteration_finished: bool = False) -> Route:
    why = f"{satisfied.reason}: {satisfied.detail}" if satisfied.detail else satisfied.reason
    return Route(TERMINATE, why, satisfied, iteration_finished)
