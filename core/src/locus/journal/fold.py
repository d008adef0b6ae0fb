"""`JournalFold`: what the entries of a thread say, folded one after the other.

It reads and never writes: `locus.journal.host.JournalHost` extends it with what the loop appends. A base class and not
a part of the host, because the loop asks it several times an iteration, and each look would go through one more object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus.core.journal import (
    BLANK,
    END,
    START,
    Answered,
    Asked,
    Body,
    Intent,
    ModelFailed,
    Outcome,
    Paused,
    Resumed,
    Retried,
    Step,
    Submitted,
    Transition,
    apply,
)
from locus.journal.store import check_chain

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.journal.store import Claim


class JournalFold:
    """A thread as its journal has it: the state, the node under way, its steps, its questions and their answers.

    Args:
        claim: the thread, claimed or peeked at.

    Raises:
        CheckpointError: its entries cannot be read.
    """

    __slots__ = (
        "_answers",
        "_interrupted",
        "_steps",
        "claim",
        "due",
        "head",
        "last",
        "last_at",
        "questions",
        "retried_steps",
        "run_id",
        "segment",
        "state",
        "submitted",
    )

    def __init__(self, claim: Claim) -> None:
        self.claim, self.head = claim, claim.head
        #: The state as last committed.
        self.state: AgentState = BLANK
        #: The last transition, None on a new thread, and the number of its entry.
        self.last: Transition | None = None
        self.last_at = 0
        self.run_id, self.segment = "", 0
        #: A turn that was submitted and has not begun.
        self.submitted: Submitted | None = None
        #: When a paused run is to go on.
        self.due: datetime | None = None
        #: Open questions of the node under way, by interrupt id.
        self.questions: dict[str, Asked] = {}
        self._answers: dict[str, Answered] = {}
        self._steps: dict[StepId, Step] = {}
        #: The steps of the node under way that a hook has asked to be tried again.
        self.retried_steps: set[StepId] = set()
        #: The intents of bodies of the node under way that were left to ask a person.
        self._interrupted: dict[StepId, Intent] = {}
        if claim.snapshot is not None:
            self.state, self.last_at = claim.snapshot.state, claim.snapshot.at
            self.enter_transition(claim.snapshot.last)
        check_chain(claim.thread_id, claim.entries, self.last_at)
        for entry in claim.entries:
            self.enter(entry.body)
            self.last_at = entry.n if entry.body is self.last else self.last_at

    def enter(self, body: Body) -> None:
        """Fold one more entry."""
        kind = type(body)
        if kind is Transition:
            self.state = apply(self.state, body.delta)  # type: ignore[union-attr]
            self.enter_transition(body)  # type: ignore[arg-type]
        elif kind is Outcome or kind is Intent or kind is ModelFailed:
            # A new turn that died before its first transition may have left steps behind: they are not this run's.
            if body.run_id == self.run_id:
                self._steps[body.step_id] = body  # type: ignore[union-attr, assignment]
        elif kind is Retried and body.run_id == self.run_id:
            self.retried_steps.add(body.step_id)  # type: ignore[union-attr]
        elif kind is Asked:
            # The body was left in good order to ask: it may be entered again, and writes its intent anew.
            if type(left := self._steps.pop(body.step_id, None)) is Intent:  # type: ignore[union-attr]
                self._interrupted[body.step_id] = left  # type: ignore[union-attr]
            self.questions[body.interrupt_id] = body  # type: ignore[union-attr, assignment]
            self._answers.pop(body.interrupt_id, None)  # type: ignore[union-attr]  # it was about another call
        elif kind is Answered:
            self._answers[body.interrupt_id] = body  # type: ignore[union-attr, assignment]
        elif kind is Paused or kind is Resumed:
            self.segment = max(self.segment, body.segment)  # type: ignore[union-attr]
            self.due = body.not_before if isinstance(body, Paused) else None
        elif kind is Submitted:
            self.submitted = body  # type: ignore[assignment]

    def enter_transition(self, transition: Transition) -> None:
        """Know that a node is done, whose state is known."""
        self.last, self.run_id = transition, transition.run_id
        if transition.segment > self.segment or transition.node == START:
            self.segment, self.submitted = transition.segment, None
        if self._steps or self.questions or self._answers or self.retried_steps:
            self.clear_node()

    def clear_node(self) -> None:
        """Forget what is known of the node under way."""
        self._steps, self.questions, self._answers, self.retried_steps, self._interrupted = {}, {}, {}, set(), {}

    def begin(self, run_id: str) -> None:
        """Start a run of its own: what the one before had on record in an unfinished node is not this one's."""
        self.run_id, self.segment = run_id, 0
        self.clear_node()

    @property
    def open_node(self) -> str | None:
        """The node where an unfinished run goes on, or None."""
        return None if self.last is None or self.last.next_node == END else self.last.next_node

    @property
    def open_questions(self) -> dict[str, Asked]:
        """The questions without an answer, by interrupt id."""
        return {i: q for i, q in self.questions.items() if i not in self._answers}

    def find_unchecked(self, step_id: StepId) -> Step | None:
        """What the journal says about a step, whatever its arguments were."""
        return self._steps.get(step_id)

    def find_last_attempt(self, step_id: StepId) -> Step | None:
        """What the journal says about the last attempt at a step of which it says anything."""
        while (step_id in self.retried_steps) or step_id.at_attempt(step_id.attempt + 1) in self._steps:
            step_id = step_id.at_attempt(step_id.attempt + 1)
        return self._steps.get(step_id)

    def may_have_begun(self, step_id: StepId) -> bool:
        """Whether a step without an outcome may have had an effect.

        Its intent is on record; or its body asked a person, and had made steps of its own by then, or is one that may
        be repeated under its key and need not wrap what it does in steps.
        """
        if type(self.find_last_attempt(step_id)) is Intent:
            return True
        left = self._interrupted.get(step_id)
        return left is not None and (left.policy == "keyed" or any(i.parent == step_id for i in self._steps))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What the journal says about the steps of the node under way, the last of each."""
        return tuple(self._steps.values())

    def answers(self, step_id: StepId) -> tuple[tuple[Asked, Any], ...]:
        """The questions of a step of the node under way that have an answer, in order, each with its answer."""
        asked = (q for q in self.questions.values() if q.step_id == step_id)
        return tuple((q, self._answers[q.interrupt_id].answer) for q in asked if q.interrupt_id in self._answers)

    def is_waiting(self, step_id: StepId, digests: Container[str]) -> bool:
        """Whether a question of a step of the node under way, about one of these, has no answer yet."""
        return any(q.step_id == step_id and q.digest in digests for q in self.open_questions.values())
