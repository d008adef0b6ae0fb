"""`ReplayHost`: the journal host of a replay. It finds what is on record like any host, compares, and writes nothing.

A node is replayed as a resume would go on with it that finds all of its steps on record: answers, failures, what hooks
had tried again and what people answered are read by the kernel's own host. Two things are left. An effect that is not
on record must not happen: `RecordedEffects` says so. And what a resume need not know comes at the right time:
the clock, what plugins had spent, and a cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

from locus.core.errors import JournalError, ReplayDiffers
from locus.core.events import Ending
from locus.core.fingerprint import PARTS, bare, parts_of
from locus.core.journal import BLANK, REVIEW, Body, Outcome, delta
from locus.journal import Claim, JournalHost
from locus.loop.router import Node
from locus_plugin_timetravel.difference import Difference, differing_field, same
from locus_plugin_timetravel.traces import Spending, attempt_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from locus.core.journal import Policy, Step, StepId, Transition
    from locus.core.state import AgentState
    from locus.journal import JournalStore
    from locus_plugin_timetravel.replays.run import ReplayRun
    from locus_plugin_timetravel.traces import NodeTrace

__all__ = ["EndOfRecord", "RecordedClock", "ReplayHost"]


class EndOfRecord(JournalError):
    """The journal leaves a node in the middle, and this is where."""


class RecordedClock:
    """Shows the time of a committed state."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state: AgentState = BLANK

    def show(self, state: AgentState) -> None:
        """Stop at the time at which a state was committed."""
        self._state = state

    def now(self) -> datetime:
        """The time of the commit."""
        return self._state.updated_at

    def monotonic(self) -> float:
        """The seconds that the run had been at work by then."""
        return self._state.active_seconds


class RecordedEffects:
    """The effects of a replay: none takes place. A host asks for one that has no result on record.

    Args:
        clock: shows the time of the record.
        refuse: raises the difference.
    """

    __slots__ = ("_refuse", "now")

    def __init__(self, clock: RecordedClock, refuse: Callable[[StepId, str], NoReturn]) -> None:
        self.now, self._refuse = clock.now, refuse

    async def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Any:
        """Refuse: the journal has no such effect."""
        self._refuse(step_id, digest)

    @staticmethod
    def new_id() -> str:
        """A random UUID: what a replay makes is kept nowhere."""
        return str(uuid4())


class ReplayHost(JournalHost):
    """The journal's host of a replay; it raises `ReplayDiffers` at the first difference.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        clock: shows the time of the record.
    """

    __slots__ = ("_asked_for", "_attempt", "_due", "_repeated", "_rest", "clock", "run", "trace")

    def __init__(self, store: JournalStore, thread_id: str, clock: RecordedClock) -> None:
        effects = RecordedEffects(clock, self._refuse)
        super().__init__(store, Claim(thread_id=thread_id, token="", head=0), effects)
        self.clock = clock
        self.trace: NodeTrace
        self.run: ReplayRun

    # -- one node ---------------------------------------------------------------------------------

    def enter_node(self, trace: NodeTrace, run: ReplayRun) -> None:
        """Be ready for a node: what it had on record, the time it began, what others had spent by then."""
        self.trace, self.run, self.stop_error = trace, run, None
        self.clear_node()
        for body in trace.bodies:
            self.enter(body)
        # A node that was run twice by what wraps it has written its steps twice.
        self._repeated: dict[StepId, list[Outcome]] = {}
        for body in trace.bodies:
            if isinstance(body, Outcome) and body.run_id == self.run_id:
                self._repeated.setdefault(body.step_id, []).append(body)
        for first, *_ in self._repeated.values():
            self.enter(first)
        self._asked_for: list[StepId] = []
        #: The attempt at the model that was asked for last.
        self._attempt = -1
        #: What plugins spent, as far as it is not charged yet, in order; and what of it the node leaves uncharged.
        self._due: Spending = trace.spending
        self._rest = trace.charged
        self.clock.show(trace.before)
        run.enter_trace(trace)
        if trace.last is not None and trace.last.uncharged is not None:
            run.charge(trace.last.uncharged)
        if not (self._is_ahead if trace.node == Node.THINK else self._due):
            self.clock.show(trace.after)
        if run.halted:
            self.spend()

    def pass_by(self, trace: NodeTrace) -> None:
        """Take a transition as it is: no node made it."""
        assert trace.transition is not None
        self.enter_transition(trace.transition)
        self.state = trace.after

    def spend(self, until: StepId | None = None) -> None:
        """Charge what plugins spent, up to a step and including it; None = all that the node charges."""
        if until is None:
            self.run.charge(self._rest)
            self._due, self._rest = (), self._rest - self._rest
            return
        ids = [step_id for step_id, _ in self._due]
        end = ids.index(until) + 1 if until in ids else 0
        for _, usage in self._due[:end]:
            self.run.charge(usage)
            self._rest -= usage
        self._due = self._due[end:]

    @property
    def _is_ahead(self) -> bool:
        """Whether the model was still to be asked, with an answer or in vain."""
        return any(k > self._attempt for k in self.trace.attempts)

    def differs(self, step: StepId | str, recorded: Any, actual: Any) -> JournalError:
        """What to raise where code and record part: the difference, or `EndOfRecord` behind the end of the record."""
        if self.stop_error is not None:
            return self.stop_error
        trace, thread_id = self.trace, self.claim.thread_id
        error: JournalError
        if trace.transition is None and recorded is None:
            error = EndOfRecord(f"the journal of thread {thread_id!r} ends here")
        else:
            found = Difference(n=trace.n, node=str(trace.node), step=str(step), recorded=recorded, actual=actual)
            error = ReplayDiffers(thread_id, found)
        self.stop(error)
        return error

    def missing_call(self, call: str) -> JournalError:
        """What to raise for a call that is about to be run and is not on record."""
        return self.differs(self._asked_for[-1], None, call)

    def _refuse(self, step_id: StepId, digest: str) -> NoReturn:
        raise self.differs(step_id, None, bare(digest) or "asked for")

    # -- steps ------------------------------------------------------------------------------------

    def find_step(self, step_id: StepId, digest: str = "") -> Step | None:
        """What the journal says about a step; it must have been asked for the same then."""
        found = self.find_unchecked(step_id)
        self._asked_for.append(step_id)
        if found is not None:
            self._compare(step_id, found.digest, digest)
        elif self.trace.node == Node.EXECUTE and self.trace.cancelled is not None:
            self.run.cancel(self.trace.cancelled)  # a call that was not run any more
        elif self.trace.node == Node.EXECUTE and self.trace.used_up is not None:
            self.run.stop = self.trace.used_up  # as well
        else:
            self._use_up_time()
        return found

    async def step(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str = "") -> Any:
        """The recorded result, at the time and with the spending of the record."""
        try:
            return await super().step(step_id, fn, policy, digest)
        finally:
            self._leave_step(step_id)

    def _leave_step(self, step_id: StepId) -> None:
        again = self._repeated.get(step_id, [])
        if len(again) > 1:
            again.pop(0)
            self.enter(again[0])
        self.spend(step_id)
        attempt = attempt_of(step_id, self.trace.before.iteration)
        if attempt is not None:
            self._attempt = attempt
            if not self._is_ahead:
                # A run that ended because its model failed had reached no limit of time when it failed.
                self.clock.show(self.trace.before if self.trace.gave_up else self.trace.after)

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

    async def settle(
        self, step_id: StepId, value: Any, digest: str = "", error: str | None = None, *, when: Any = "now"
    ) -> None:
        """Compare what came of a step at once."""
        await super().settle(step_id, value, digest, error)

    def defer(self, body: Body) -> None:
        """Write nothing: the record has what was decided."""

    async def _append(self, *bodies: Body) -> None:
        # The code comes to something that the record does not have, and would write it.
        body = bodies[0]
        came_to = getattr(getattr(body, "value", None), "content", type(body).__name__)
        raise self.differs(getattr(body, "step_id", type(body).__name__), None, came_to)

    @property
    def used_up(self) -> Ending | None:
        """The limit of the tree for which the record ends here, once the model is not asked any more."""
        return None if self.trace.node == Node.THINK and self._is_ahead else self.trace.used_up

    # -- a cancel, and the end of a node ----------------------------------------------------------

    def before_call(self) -> None:
        """Right before the model is asked: cancelled here, if it was."""
        if self.trace.node == Node.THINK and not self._is_ahead:
            self.spend()
            if self.trace.cancelled is not None:
                self.run.cancel(self.trace.cancelled)

    def _use_up_time(self) -> None:
        """Let the time of the run be used up, if it was by the end of the tools: no body was entered any more."""
        if self.trace.out_of_time:
            self.clock.show(self.trace.after)
            self.run.is_out_of_time()

    def leave(self) -> None:
        """The node is done: ended from outside by now, if it was, and every verdict on record was asked for."""
        self.spend()
        self._use_up_time()
        if self.trace.cancelled is not None:
            self.run.cancel(self.trace.cancelled)
        self.run.stop = self.run.stop or self.trace.used_up
        for found in self.steps:
            if found.step_id.node == REVIEW and found.step_id not in self._asked_for:
                raise self.differs(found.step_id, getattr(found, "value", None), None)

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
        iteration: int = 0,
        **_: Any,
    ) -> AgentState:
        """Compare the transition with the recorded one, and go on from that."""
        if self.stop_error is not None:
            raise self.stop_error
        made, after = self.trace.transition, self.trace.after
        if made is None:
            raise self.differs("the next node", None, next_node)
        if made.instead_of:
            # The router's choice is compared; what a hook put in its place is on record.
            expected = (made.instead_of, made.next_node) if self.trace.cancelled is not None else (made.instead_of,)
            iteration = new.iteration + (made.next_node == Node.THINK)
        else:
            expected = (made.next_node,)
        if next_node not in expected:
            raise self.differs("the next node", _route(made.next_node, made.why), _route(next_node, why))
        if not made.instead_of:
            self._compare_ending(made, next_node, why, ending)
        found = differing_field(after, new.with_iteration(iteration), made.delta, delta(old, new))
        if found is not None:
            raise self.differs(*found)
        self.enter_transition(made)
        self.state = after
        return after

    def _compare_ending(self, made: Transition, next_node: str, why: str, ending: Ending | None) -> None:
        satisfied = () if ending is None else ending.satisfied
        if next_node in (Node.TERMINATE, "end") and (why, satisfied) != (made.why, made.satisfied):
            raise self.differs("the reason", (made.why, *made.satisfied), (why, *satisfied))
        error = None if ending is None else ending.error_text
        # A model's error is recorded by its text; here it is of another class.
        if self.trace.failure is None and not same(made.error, error):
            raise self.differs("the error", made.error, error)


def _route(next_node: str, why: str) -> str:
    return f"{next_node} ({why})" if why else next_node
