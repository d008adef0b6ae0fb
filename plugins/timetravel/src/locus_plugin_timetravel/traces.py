"""`NodeTrace`: what a journal tells of one node's work, and what follows from that about what it does not tell.

A journal holds effects and transitions. It does not hold when a hook asked for another try, when somebody cancelled,
or that a model failed: those show in what the transition says of the state, and here they are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

from attrs import frozen

from locus.core.journal import (
    BLANK,
    END,
    EXECUTE,
    SEGMENT,
    START,
    THINK,
    Body,
    Entry,
    Outcome,
    Resumed,
    StateDelta,
    StepId,
    Transition,
    apply,
)
from locus.core.messages import Message, Role, Usage
from locus.core.state import AgentState
from locus.loop.router import Node
from locus.models import Called
from locus.models.call import Spent
from locus.tools.outcome import CallOutcome

__all__ = ["NodeTrace", "Spending", "TraceReader", "attempt_of", "node_traces"]

#: Steps by their ids, with what they have spent, in order.
Spending = tuple[tuple[StepId, Usage], ...]

_FAILED = "ModelError: "
_CANCELLED = "Cancelled"

#: What a transition of a node in which nothing happened may change all the same.
_PASSING = frozenset(
    {"updated_at", "active_seconds", "prompt_tokens_used", "completion_tokens_used", "cached_tokens_used", "cost"}
)


@frozen(kw_only=True)
class NodeTrace:
    """One node's work as the journal has it.

    Args:
        n: the number of its transition; of the next one where there is none yet.
        before: the state that the node got, as it was committed.
        last: the transition before, or None on a new thread.
        bodies: what was written since that one.
        transition: what the node came to; None for a node that the journal leaves in the middle.
        after: the state after the transition; ``before`` where there is none.
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
        run_id = self.transition.run_id if self.transition is not None else self.last.run_id if self.last else ""
        return {b.step_id: b for b in self.bodies if isinstance(b, Outcome) and b.run_id == run_id}

    def noted(self, name: str) -> Outcome | None:
        """The newest note under a name, whatever number it has."""
        return next((o for i, o in reversed(self._outcomes.items()) if i.node == SEGMENT and i.name == name), None)

    # -- Think ------------------------------------------------------------------------------------

    @cached_property
    def attempts(self) -> tuple[int, ...]:
        """The attempts at the model that were answered, from 0."""
        return tuple(k for i in self._outcomes if (k := attempt_of(i, self.before.iteration)) is not None)

    @cached_property
    def failure(self) -> str | None:
        """What the model failed with when Think gave up, or None when it did not."""
        errors = self._grown("errors") if self.node == Node.THINK else ()
        return errors[-1].removeprefix(_FAILED) if errors and errors[-1].startswith(_FAILED) else None

    @cached_property
    def gave_up(self) -> bool:
        """Whether the run ended because the model failed, and for no better reason."""
        return self.failure is not None and self.transition is not None and self.transition.why == "ModelError"

    def retried(self, attempt: int) -> bool:
        """Whether a hook asked for another try after an attempt at the model."""
        if any(k > attempt for k in self.attempts):
            return True
        if self.transition is None:
            return False
        if attempt in self.attempts:
            return self.failure is not None or not self.answered
        # It failed, and nothing says so: it was tried again, and that was stopped.
        return self.failure is None

    @cached_property
    def answered(self) -> bool:
        """Whether an answer of the model stood."""
        return any(m.role is Role.ASSISTANT for m in self._grown("messages"))

    @cached_property
    def spending(self) -> Spending:
        """The steps that spent something, in order: plugins' calls and child runs, and between them Think's own.

        Think's answers bring their own charge, so that nothing stands beside their names.
        """
        found: list[tuple[StepId, Usage]] = []
        for step_id, outcome in self._outcomes.items():
            if self._own(step_id):
                found.append((step_id, Usage()))
            elif isinstance(outcome.value, Called | Spent):
                found.append((step_id, outcome.value.usage))
        return tuple(found)

    def charges(self, carried: Spending) -> tuple[list[tuple[StepId, Usage]], Spending, Usage]:
        """What was spent by others than Think's answers: what is charged here, what later, and what nobody tells of.

        What the state has as spent says where the one ends and the other begins: what a hook spends after the last
        look at it enters the state with the next node.

        Args:
            carried: what was spent before, and not charged.
        """
        answers = [o.value.usage for i, o in self._outcomes.items() if isinstance(o.value, Called) and self._own(i)]
        room = self.after.usage - self.before.usage - sum(answers, Usage())
        due = [*carried, *self.spending]
        totals = accumulate((usage for _, usage in due), initial=Usage())
        end, here = 0, Usage()
        for end, total in enumerate(totals):
            if total.total_tokens > room.total_tokens:
                end -= 1
                break
            here = total
        return due[:end], tuple(due[end:]), room - here

    def _own(self, step_id: StepId) -> bool:
        return attempt_of(step_id, self.before.iteration) is not None

    # -- Execute ----------------------------------------------------------------------------------

    def rerun(self, times: int) -> bool:
        """Whether a hook had failed calls run again for the ``times``-th time."""
        again = any(i.root.node == EXECUTE and i.root.attempt == times for i in self._outcomes)
        return again or (self.cancelled is not None and self._given_up(times - 1))

    def _given_up(self, attempt: int) -> bool:
        """Whether a call's outcome does not stand: it was to run again, and the run was cancelled before it did."""
        messages: tuple[Message, ...] = self._grown("messages")
        for ordinal, message in enumerate(messages):
            outcome = self._outcomes.get(StepId(self.before.iteration, EXECUTE, ordinal, attempt))
            results = message.tool_results
            if outcome is not None and isinstance(outcome.value, CallOutcome) and results:
                told, stood = str(results[0].content), outcome.value.content
                if told != stood and told.startswith("Error: not run: "):
                    return True
        return False

    # -- where it went ----------------------------------------------------------------------------

    def diverted(self, proposed: str) -> str | None:
        """The node that a hook named in place of the router's, or None."""
        made = self.transition
        if made is None or made.next_node == proposed:
            return None
        if made.next_node != Node.TERMINATE:
            return made.next_node if made.why == f"instead of {proposed}" else None
        if made.why == "Diverted":
            return Node.TERMINATE
        # Only Think is entered where the condition lets it, and is a stop otherwise.
        return Node.THINK if made.satisfied and proposed != Node.THINK else None

    # -- the end ----------------------------------------------------------------------------------

    @cached_property
    def cancelled(self) -> str | None:
        """The reason for which the run was cancelled here (maybe empty), or None."""
        made = self.transition
        if made is None or made.next_node != Node.TERMINATE or made.satisfied != (_CANCELLED,):
            return None
        return made.why.removeprefix(_CANCELLED).removeprefix(": ")

    @cached_property
    def idle(self) -> bool:
        """Whether the node did nothing at all."""
        change = self.transition.delta if self.transition is not None else StateDelta()
        made = change.grown or change.entries or change.extended or change.dropped
        return not self.attempts and not made and change.changed.keys() <= _PASSING

    def _grown(self, name: str) -> tuple[Any, ...]:
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

    def read(self, entry: Entry) -> tuple[NodeTrace, ...]:
        """The nodes that this entry finishes, or of which it says that they were left in their middle."""
        body, last = entry.body, self._last
        if type(body) is not Transition:
            self._bodies.append(body)
            return ()
        before, bodies = self._state, tuple(self._bodies)
        after = _committed(apply(before, body.delta))
        made = NodeTrace(n=self._n, before=before, last=last, bodies=bodies, transition=body, after=after)
        # A new turn may begin in place of going on: what the open node had done is there all the same.
        left = self.left() if body.node == START else ()
        self._state, self._last, self._n, self._bodies = after, body, self._n + 1, []
        return (*left, made)

    def left(self) -> tuple[NodeTrace, ...]:
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
    yield from reader.left()


def _committed(state: AgentState) -> AgentState:
    """The same state, marked as committed: what is built from it is compared by what was added."""
    return state.marked(updated_at=state.updated_at, active_seconds=state.active_seconds, iteration=state.iteration)
