"""`ReplayHost`: stands where the journal's host stands, answers from the record and compares in place of writing.

What is not in the record as such, `NodeTrace` reads from it: when a hook asked for another try, when the run was
cancelled, that a model failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus.core.errors import JournalError, ModelError, OutcomeUnknown, ReplayDiffers, StepFailed
from locus.core.fingerprint import PARTS, bare, parts_of
from locus.core.journal import REVIEW, Body, Outcome, delta
from locus.core.messages import Usage
from locus.journal import Claim, InProcess, JournalHost
from locus.loop.router import Node
from locus.tools.outcome import CallOutcome
from locus_plugin_timetravel.difference import Difference, differing_field, same
from locus_plugin_timetravel.text import call_text
from locus_plugin_timetravel.traces import Spending, attempt_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from locus.core.events import Ending
    from locus.core.journal import Step, StepId
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.journal import JournalStore
    from locus.journal.writes import When
    from locus_plugin_timetravel.replays.run import RecordedClock, ReplayRun
    from locus_plugin_timetravel.traces import NodeTrace

__all__ = ["EndOfRecord", "ReplayHost"]

_NOTHING = Usage()


class EndOfRecord(JournalError):
    """The journal leaves a node in the middle, and this is where."""


class ReplayHost(JournalHost):
    """The journal's host of a replay: it writes nothing, and raises `ReplayDiffers` at the first difference.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        clock: shows the time of the record.
    """

    __slots__ = (
        "_again",
        "_asked_for",
        "_attempt",
        "_called",
        "_carried",
        "_due",
        "_left",
        "_rounds",
        "_suspect",
        "_unexplained",
        "clock",
        "run",
        "trace",
    )

    def __init__(self, store: JournalStore, thread_id: str, clock: RecordedClock) -> None:
        super().__init__(store, Claim(thread_id=thread_id, token="", head=0), InProcess(clock.now))
        self.clock = clock
        # What was spent by then and is charged to the next node.
        self._carried: Spending = ()
        self.trace: NodeTrace
        self.run: ReplayRun

    # -- one node ---------------------------------------------------------------------------------

    def enter(self, trace: NodeTrace, run: ReplayRun) -> None:
        """Be ready for a node: what it had on record, the time it began, what others had spent by then."""
        self.trace, self.run, self.stop_error = trace, run, None
        self._clear_node()
        # A node that was run twice by what wraps it has written its steps twice.
        self._again: dict[StepId, list[Outcome]] = {}
        for body in trace.bodies:
            self._enter(body)
            if isinstance(body, Outcome) and body.run_id == self.run_id:
                self._again.setdefault(body.step_id, []).append(body)
        self._steps.update((i, outcomes[0]) for i, outcomes in self._again.items() if len(outcomes) > 1)
        # What is charged here, what to the next node, and what attempts have spent that came to nothing. A segment that
        # was resumed does not know what was spent before its node.
        self._due, self._left, self._unexplained = trace.charges(self._carried)
        self._asked_for: list[StepId] = []
        # The attempt at the model that was asked for last, and how often calls were asked to run again.
        self._attempt, self._rounds, self._called = -1, 0, False
        # A model call that the record does not have: it failed then, or it is new.
        self._suspect: Difference | None = None
        self.clock.show(trace.before)
        run.take_up(trace)
        if not (self._ahead if trace.node == Node.THINK else self._due):
            self.clock.show(trace.after)
        if run.halted:
            self.spend()

    def pass_by(self, trace: NodeTrace) -> None:
        """Take a transition as it stands: no node made it."""
        for body in trace.bodies:
            self._enter(body)
        assert trace.transition is not None
        self._enter_transition(trace.transition)
        self.state = trace.after
        self._carried = trace.spending

    def spend(self, until: StepId | None = None) -> None:
        """Charge what the record has as spent, up to a step and including it; None = all of it."""
        ids = [step_id for step_id, _ in self._due]
        if until is not None and until not in ids:
            return
        end = len(ids) if until is None else ids.index(until) + 1
        now, self._due = self._due[:end], self._due[end:]
        for _, usage in now:
            if usage != _NOTHING:
                self.run.charge(usage)

    @property
    def _ahead(self) -> bool:
        """Whether the model was still to be asked, with an answer or in vain."""
        trace = self.trace
        return any(k > self._attempt for k in trace.attempts) or (trace.failure is not None and not self._called)

    def differs(self, step: StepId | str, recorded: Any, actual: Any) -> ReplayDiffers:
        """Stop here, by raising this; the first difference that was suspected is the one to tell."""
        trace = self.trace
        found = Difference(n=trace.n, node=str(trace.node), step=str(step), recorded=recorded, actual=actual)
        error = ReplayDiffers(self.claim.thread_id, self._suspect or found)
        self.stop(error)
        return error

    def _ended(self) -> EndOfRecord:
        error = EndOfRecord(f"thread {self.claim.thread_id!r} was left here")
        self.stop(error)
        return error

    # -- steps ------------------------------------------------------------------------------------

    def find_step(self, step_id: StepId, digest: str = "") -> Step | None:
        """What the journal says about a step; it must have been asked for the same then."""
        found = self._steps.get(step_id)
        self._asked_for.append(step_id)
        if found is not None:
            self._compare(step_id, found.digest, digest)
        elif self.trace.node == Node.EXECUTE and self.trace.cancelled is not None:
            self.run.cancel(self.trace.cancelled)  # a call that was not run any more
        return found

    def _compare(self, step_id: StepId, recorded: str, actual: str) -> None:
        if recorded == actual:
            return
        if bare(recorded) != bare(actual):
            raise self.differs(step_id, bare(recorded), bare(actual))
        then, now = parts_of(recorded), parts_of(actual)
        if then is None or now is None:
            return
        for letter, what in PARTS.items():
            if letter == "p" and letter not in then:
                continue  # the conversation began under another prompt than the agent's
            if then.get(letter) != now.get(letter):
                raise self.differs(step_id, f"{what} {then.get(letter, 'none')}", f"{what} {now.get(letter, 'none')}")

    async def step(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Any, digest: str = "") -> Any:
        """The recorded result."""
        found = self.find_step(step_id, digest)
        attempt = attempt_of(step_id, self.trace.before.iteration)
        if attempt is not None:
            self._attempt = attempt
        if isinstance(found, Outcome):
            self._used(step_id, think=attempt is not None)
            if found.error is not None:
                raise StepFailed(found.error)
            return found.value
        if self.trace.transition is None:
            raise self._ended()
        if policy == "model":
            raise self._unanswered(step_id, digest, think=attempt is not None)
        if found is not None and policy == "once":
            raise OutcomeUnknown(str(step_id))
        raise self.differs(step_id, None, "asked for")

    def _used(self, step_id: StepId, *, think: bool) -> None:
        if len(self._again.get(step_id, ())) > 1:
            self._again[step_id].pop(0)
            self._steps[step_id] = self._again[step_id][0]
        self.spend(step_id)
        if think and not self._ahead:
            self.clock.show(self.trace.after)

    def _unanswered(self, step_id: StepId, digest: str, *, think: bool) -> ModelError:
        # A model call that fails leaves no step behind; whether it did shows in what the node made of it.
        trace = self.trace
        if not think or trace.failure is None:
            asked = Difference(n=trace.n, node=str(trace.node), step=str(step_id), recorded=None, actual=bare(digest))
            self._suspect = self._suspect or asked
        if think:
            self.run.charge(self._unexplained)
            self._unexplained = _NOTHING
            self._called = not any(k > self._attempt for k in trace.attempts)
            if not self._ahead:
                self.spend()
                # Where the failure is the reason, no limit of time had passed when it came.
                self.clock.show(trace.before if trace.gave_up else trace.after)
        return ModelError(trace.failure if think and trace.failure is not None else "the record has no answer")

    async def settle(
        self, step_id: StepId, value: Any, digest: str = "", error: str | None = None, *, when: When = "now"
    ) -> None:
        """Compare what came of a step at once."""
        await super().settle(step_id, value, digest, error)

    def defer(self, body: Body) -> None:
        """Write nothing: the record has what was decided."""

    async def _append(self, *bodies: Body) -> None:
        # The code comes to something that the record does not have, and would write it.
        if self.trace.transition is None:
            raise self._ended()
        body = bodies[0]
        value = getattr(body, "value", None)
        told = value.content if isinstance(value, CallOutcome) else type(body).__name__
        raise self.differs(getattr(body, "step_id", type(body).__name__), None, told)

    # -- what hooks and people decided ------------------------------------------------------------

    def unheard_of(self, call: ToolCall) -> JournalError:
        """A call is about to be run that the record does not have."""
        if self.trace.transition is None:
            return self._ended()
        return self.differs(self._asked_for[-1], None, call_text(call.name, call.arguments))

    def retried(self) -> bool:
        """Whether a hook asked for another try here."""
        trace = self.trace
        if trace.node == Node.EXECUTE:
            self._rounds += 1
            return trace.rerun(self._rounds)
        return trace.node == Node.THINK and self._attempt >= 0 and trace.retried(self._attempt)

    def before_call(self, run: ReplayRun) -> None:
        """Right before the model is asked: cancelled here, if it was."""
        trace = self.trace
        if trace.node != Node.THINK or self._ahead:
            return
        self.spend()
        if trace.cancelled is not None:
            run.cancel(trace.cancelled)

    def closed(self, run: ReplayRun) -> None:
        """The node is done: cancelled by now, if it was, and every verdict on record was asked for."""
        trace = self.trace
        self.spend()
        if trace.cancelled is not None:
            run.cancel(trace.cancelled)
        for step_id, found in self._steps.items():
            if step_id.node == REVIEW and step_id not in self._asked_for:
                raise self.differs(step_id, getattr(found, "value", None), None)

    def diverted(self, node: str, state: AgentState, proposed: str) -> str | None:
        """The route that a hook decided on."""
        return self.trace.diverted(proposed)

    # -- the transition ---------------------------------------------------------------------------

    async def commit(
        self,
        old: AgentState,
        new: AgentState,
        *,
        node: str,
        next_node: str,
        why: str = "",
        ending: Ending | None = None,
        instead_of: str = "",
        uncharged: Usage | None = None,
        request_id: str = "",
        active_seconds: float = 0.0,
        iteration: int = 0,
        when: When = "now",
    ) -> AgentState:
        """Compare the transition with the recorded one, and go on from that."""
        if self.stop_error is not None:
            raise self.stop_error
        made, after = self.trace.transition, self.trace.after
        satisfied, error = ((), None) if ending is None else (ending.satisfied, ending.error_text)
        if made is None:
            raise self._ended()
        if next_node != made.next_node:
            raise self.differs("the next node", _route(made.next_node, made.why), _route(next_node, why))
        if next_node in (Node.TERMINATE, "end") and (why, satisfied) != (made.why, made.satisfied):
            raise self.differs("the reason", (made.why, *made.satisfied), (why, *satisfied))
        if self.trace.failure is None and not same(made.error, error):
            raise self.differs("the error", made.error, error)
        change = delta(old, new)
        found = differing_field(after, new.with_iteration(iteration), made.delta, change)
        if found is not None:
            raise self.differs(*found)
        self._enter_transition(made)
        self.state, self._carried = after, self._left
        return after


def _route(next_node: str, why: str) -> str:
    return f"{next_node} ({why})" if why else next_node
