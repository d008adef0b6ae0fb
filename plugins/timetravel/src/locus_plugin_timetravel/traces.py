"""`NodeTrace`: what a journal says about one node's work.

That a hook asked for another try, that the run was cancelled and that a model failed are entries of their own; where a
hook diverted the run, and what was left uncharged, a transition says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from attrs import frozen

from locus.core.events import Ending
from locus.core.journal import (
    BLANK,
    END,
    EXECUTE,
    SEGMENT,
    START,
    THINK,
    TOTALS,
    Body,
    Cancelled,
    Entry,
    ModelFailed,
    Outcome,
    Resumed,
    Retried,
    StateDelta,
    StepId,
    Transition,
    apply,
)
from locus.core.messages import Role, Usage
from locus.core.state import AgentState
from locus.models import ChildUsage, ModelCallResult

__all__ = ["NodeTrace", "Spending", "TraceReader", "as_committed", "attempt_of", "node_traces"]

#: Steps by their ids, with what they have spent, in order.
Spending = tuple[tuple[StepId, Usage], ...]


#: The conditions that end a run in the middle of its tools, by what a transition calls them.
_TIME_LIMITS = frozenset({"TimeLimit", "Deadline"})

#: What a transition of a node in which nothing happened may change nevertheless.
_PASSING = frozenset({"updated_at", "active_seconds", *TOTALS})


@frozen(kw_only=True)
class NodeTrace:
    """One node's work as the journal has it.

    Args:
        n: the number of its transition; of the next one where it has none yet.
        before: the state that the node got, as it was committed.
        last: the transition before, or None on a new thread.
        bodies: what was written since that one.
        transition: what the node came to; None for a node that the journal leaves in the middle.
        after: the state after the transition; ``before`` without one.
    """

    n: int
    before: AgentState
    last: Transition | None
    bodies: tuple[Body, ...]
    transition: Transition | None
    after: AgentState

    @cached_property
    def node(self) -> str:
        """The node at work."""
        if self.transition is not None:
            return self.transition.node
        return self.last.next_node if self.last is not None else START

    @cached_property
    def resumed(self) -> bool:
        """Whether a segment of the run began in its middle."""
        return any(type(b) is Resumed for b in self.bodies)

    @cached_property
    def _outcomes(self) -> dict[StepId, Outcome]:
        return {b.step_id: b for b in self.bodies if isinstance(b, Outcome) and b.run_id == self.run_id}

    @cached_property
    def _retries(self) -> tuple[StepId, ...]:
        return tuple(b.step_id for b in self.bodies if isinstance(b, Retried) and b.run_id == self.run_id)

    @cached_property
    def run_id(self) -> str:
        """The run that the node belongs to."""
        made = self.transition or self.last
        return made.run_id if made is not None else ""

    def find_note(self, name: str) -> Outcome | None:
        """The newest note under a name, whatever number it has."""
        return next((o for i, o in reversed(self._outcomes.items()) if i.node == SEGMENT and i.name == name), None)

    # -- Think ------------------------------------------------------------------------------------

    @cached_property
    def _own_steps(self) -> tuple[Outcome | ModelFailed, ...]:
        steps = (b for b in self.bodies if isinstance(b, Outcome | ModelFailed) and b.run_id == self.run_id)
        return tuple(b for b in steps if attempt_of(b.step_id, self.before.iteration) is not None)

    @cached_property
    def attempts(self) -> tuple[int, ...]:
        """The attempts at the model that were answered or failed, from 0."""
        return tuple(b.step_id.attempt for b in self._own_steps)

    @cached_property
    def failure(self) -> str | None:
        """What the model failed with when Think gave up, or None when it did not."""
        last = self._own_steps[-1] if self._own_steps else None
        return last.error if isinstance(last, ModelFailed) and last.step_id not in self._retries else None

    @cached_property
    def gave_up(self) -> bool:
        """Whether the run ended because the model failed, and for no better reason."""
        return self.failure is not None and self.transition is not None and self.transition.why == "ModelError"

    @cached_property
    def out_of_time(self) -> bool:
        """Whether the time of the run was used up in the middle of its tools: no body was entered any more."""
        made = self.transition
        at_the_end = made is not None and made.node == EXECUTE and made.next_node == "terminate"
        return at_the_end and made is not None and not _TIME_LIMITS.isdisjoint(made.satisfied)

    @cached_property
    def answered(self) -> bool:
        """Whether an answer of the model stood."""
        return any(m.role is Role.ASSISTANT for m in self._items_added("messages"))

    @cached_property
    def spending(self) -> Spending:
        """The steps that spent something, in order: plugins' calls, child runs, and attempts at the model.

        The answers of the model bring their own charge: they have their place among the others, and no usage here.
        """
        found: list[tuple[StepId, Usage]] = []
        for body in self.bodies:
            if not isinstance(body, Outcome | ModelFailed) or body.run_id != self.run_id:
                continue
            if isinstance(body, ModelFailed):
                found.append((body.step_id, body.usage or Usage()))
            elif attempt_of(body.step_id, self.before.iteration) is not None:
                found.append((body.step_id, Usage()))
            elif isinstance(body.value, ModelCallResult | ChildUsage):
                found.append((body.step_id, body.value.usage))
        return tuple(found)

    @cached_property
    def charged(self) -> Usage:
        """What of that is in the state after the transition; the rest was left for the next node."""
        total = sum((usage for _, usage in self.spending), Usage())
        left = self.transition.uncharged if self.transition is not None else None
        return total if left is None else total - left

    # -- the end ----------------------------------------------------------------------------------

    @cached_property
    def cancelled(self) -> str | None:
        """The reason for which the run was cancelled here (maybe empty), or None."""
        return next((b.reason for b in self.bodies if isinstance(b, Cancelled) and b.run_id == self.run_id), None)

    @cached_property
    def used_up(self) -> Ending | None:
        """The limit that other runs of the tree had used up, and that ended the run here, or None."""
        made = self.transition
        ending = None if made is None else Ending(made.why, made.satisfied, made.detail)
        return ending if ending is not None and ending.is_from_others else None

    @cached_property
    def idle(self) -> bool:
        """Whether the node did nothing at all."""
        change = self.transition.delta if self.transition is not None else StateDelta()
        made = change.grown or change.entries or change.extended or change.dropped
        return not self.attempts and not made and change.changed.keys() <= _PASSING

    def _items_added(self, name: str) -> tuple[Any, ...]:
        grown = self.transition.delta.grown.get(name) if self.transition is not None else None
        return grown[1] if grown is not None else ()


def attempt_of(step_id: StepId, iteration: int) -> int | None:
    """Which attempt at Think's model a step is, from 0, or None when it is another step."""
    return step_id.attempt if step_id.node == THINK and step_id.iteration == iteration else None


class TraceReader:
    """Makes the traces of a thread from its entries, which are given one after another."""

    def __init__(self) -> None:
        self._state, self._last, self._n = BLANK, None, 1
        self._bodies: list[Body] = []

    _last: Transition | None

    @property
    def state(self) -> AgentState:
        """The state after the entries so far."""
        return self._state

    def read(self, entry: Entry) -> tuple[NodeTrace, ...]:
        """The nodes that this entry finishes, or of which it says that they were left in their middle."""
        body, last = entry.body, self._last
        if type(body) is not Transition:
            self._bodies.append(body)
            return ()
        before, bodies = self._state, tuple(self._bodies)
        after = as_committed(apply(before, body.delta))
        made = NodeTrace(n=self._n, before=before, last=last, bodies=bodies, transition=body, after=after)
        # A new turn may begin in place of going on: what the open node had done is kept nevertheless.
        left = self.find_open() if body.node == START else ()
        self._state, self._last, self._n, self._bodies = after, body, self._n + 1, []
        return (*left, made)

    def find_open(self) -> tuple[NodeTrace, ...]:
        """The node that the entries so far leave in its middle, if they do."""
        if self._last is None or self._last.next_node == END:
            return ()
        state, bodies = self._state, tuple(self._bodies)
        return (NodeTrace(n=self._n, before=state, last=self._last, bodies=bodies, transition=None, after=state),)


def node_traces(entries: Iterable[Entry]) -> Iterator[NodeTrace]:
    """The work of each node in order: every transition, and every node that was left in its middle."""
    reader = TraceReader()
    for entry in entries:
        yield from reader.read(entry)
    yield from reader.find_open()


def as_committed(state: AgentState) -> AgentState:
    """The same state, marked as committed: what is built from it is compared by what was added."""
    return state.commit(updated_at=state.updated_at, active_seconds=state.active_seconds, iteration=state.iteration)
