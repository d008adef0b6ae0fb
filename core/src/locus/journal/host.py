"""`JournalHost`: the effects of a run, made durable by a journal store: memory, a file, a stream.

What holds at every moment, whatever the store:

- An effect with policy ``"once"`` or ``"keyed"`` begins after its intent is stored. An intent on record without an
  outcome wins over what the code says now: its policy and its key count, and a new turn reads of it as unknown.
- A model call has no intent. Its answer waits for the next entry, so a crash repeats at most one model call: before
  the next one is asked, and before any other effect, what waits is stored.
- A transition and what waits before it are one append. It is stored before the call returns where a caller learns of
  it (`CheckpointEvent`, `TerminateEvent`); else it is posted while the model is asked, or joins the next intent.
- Nothing is written behind an entry that is missing. The first failure stops the host, for good: `state` and `last` go
  back to what is stored, and every later write raises that failure, whichever task makes it. The next claim starts
  from the store.
- The store's answer decides who owns the thread, no clock does. What may or may not be stored counts as lost.

Tried and rejected: a write for each intent, outcome and transition (two an iteration do). A test before each write
whether the run may still write (every iteration pays for it). Breaking off for a snapshot that cannot be written (what
keeps a cache from being written keeps the next entry, too). Waiting for the write under way before the end of a run is
begun (the writes are a chain, and the first that failed fails all behind it).
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from locus.core.errors import JournalError, ModelError, NotSerialisable, OutcomeUnknown, StepFailed
from locus.core.fingerprint import bare
from locus.core.frozen import freeze, maker
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
    PauseKind,
    Policy,
    Resumed,
    Retried,
    StateDelta,
    Step,
    Submitted,
    Transition,
    advance,
    apply,
)
from locus.core.step_id import StepId
from locus.journal.effects import Effects, InProcess
from locus.journal.store import Appended, Claim, JournalStore, check_chain
from locus.journal.writes import (
    UNCHANGED,
    PendingWrite,
    ask_store,
    describe_bodies,
    fenced_error,
    guard_writes,
    mismatch_error,
    refuse,
    release,
    release_unreadable,
    report_errors,
    write_error,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
    from datetime import datetime
    from typing import NoReturn, Self

    from locus.core.events import Ending
    from locus.core.messages import Usage
    from locus.core.state import AgentState
    from locus.journal.signals import Watch
    from locus.journal.store import Posted
    from locus.journal.writes import When

_NO_DELTA = StateDelta()
_intent, _outcome, _transition = maker(Intent), maker(Outcome), maker(Transition)


class JournalHost:
    """The journal of a claimed thread as the loop writes and reads it.

    Args:
        store: where the thread is kept.
        claim: the thread, taken.
        effects: where effects take place; None = in this process.
    """

    __slots__ = (
        "_answers",
        "_cached",
        "_deferred",
        "_durable",
        "_has_model_answer",
        "_interrupted",
        "_keeps_history",
        "_pending_writes",
        "_snapshot_every",
        "_steps",
        "_store_append",
        "_store_post",
        "_store_snapshot",
        "claim",
        "due",
        "effects",
        "head",
        "last",
        "last_at",
        "questions",
        "retried_steps",
        "run_id",
        "segment",
        "state",
        "stop_error",
        "store",
        "submitted",
    )

    def __init__(self, store: JournalStore, claim: Claim, effects: Effects | None = None) -> None:
        self.store, self.claim, self.head = store, claim, claim.head
        self.effects: Effects = InProcess() if effects is None else effects
        self._store_append: Callable[..., Awaitable[Appended]] = store.append
        self._store_snapshot: Callable[..., Awaitable[bool]] = store.snapshot
        self.stop_error: JournalError | None = None
        #: The state as last committed.
        self.state: AgentState = BLANK if claim.snapshot is None else claim.snapshot.state
        self.last: Transition | None = None  # None on a new thread; `last_at` is its number
        #: Open questions of the node under way, by interrupt id.
        self.questions: dict[str, Asked] = {}
        self.submitted: Submitted | None = None  # a turn that has not begun
        self.due: datetime | None = None  # when a paused run is to go on
        self._steps: dict[StepId, Step] = {}
        #: The steps of the node under way that a hook has asked to be tried again.
        self.retried_steps: set[StepId] = set()
        #: The intents of bodies of the node under way that were left to ask a person.
        self._interrupted: dict[StepId, Intent] = {}
        self._answers: dict[str, Answered] = {}
        self.run_id, self.segment, self._cached, self.last_at = "", 0, 0, 0
        if claim.snapshot is not None:
            self._cached = self.last_at = claim.snapshot.at
            self.enter_transition(claim.snapshot.last)
        #: What is written together with the next entry, and whether that holds what a model said.
        self._deferred: tuple[Body, ...] = ()
        self._has_model_answer = False
        #: State and last transition as they are written, while a transition waits or is being written.
        self._durable: tuple[AgentState, Transition | None] | None = None
        #: What is being written while the loop goes on, where the store can do that; each follows the one before.
        self._pending_writes: list[PendingWrite] = []
        self._keeps_history = store.keeps_history
        self._store_post: Callable[..., Posted] | None = getattr(store, "post", None) if self._keeps_history else None
        self._snapshot_every = store.snapshot_every if self._keeps_history else None
        check_chain(claim.thread_id, claim.entries, self._cached)
        for entry in claim.entries:
            self.enter(entry.body)
            self.last_at = entry.n if entry.body is self.last else self.last_at

    @classmethod
    async def open(cls, store: JournalStore, thread_id: str, worker: str, effects: Effects | None = None) -> Self:
        """Claim a thread and fold its entries.

        Raises:
            ThreadBusy: another run holds it.
            StoreError: the store failed; nothing was written.
            CheckpointError: its entries cannot be read.
        """
        with report_errors(store, thread_id, "take the thread", UNCHANGED):
            claim = await store.claim(thread_id, worker)
        try:
            return cls(store, claim, effects)
        except BaseException as e:
            await release_unreadable(store, claim, e)
            raise

    @classmethod
    async def peek(cls, store: JournalStore, thread_id: str) -> Self | None:
        """The journal of a thread, without taking it; None when it is empty.

        Raises:
            StoreError: the store failed.
            CheckpointError: its entries cannot be read.
        """
        with report_errors(store, thread_id, "read the thread", UNCHANGED):
            found = await store.peek(thread_id)
        return None if found is None else cls(store, found)

    def enter(self, body: Body) -> None:
        """Know what an entry of the journal says."""
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

    async def _append(self, *bodies: Body) -> None:
        held = self._deferred
        if held:
            self._deferred, self._has_model_answer = (), False
            bodies = held + bodies
        try:
            if self._pending_writes:
                await self._wait_for_write(self._begin_write(bodies, (self.state, self.last)))
                return
            got = await self._store_append(self.claim, bodies)
        except NotSerialisable as e:
            # Not a failure of the store: nothing was written, and the maker of the value gets the error.
            if held:
                await self._write_apart(held, bodies[len(held) :], e)
            raise
        except Exception as e:  # noqa: BLE001  a store is foreign code
            self._fail(e, f"save {describe_bodies(bodies)}")
        if got is not Appended.OK:
            self._lose_claim(got)
        self.head += len(bodies)
        self._durable = None

    def _begin_write(self, bodies: tuple[Body, ...], then: tuple[AgentState, Transition | None]) -> PendingWrite:
        """Begin to write behind what is being written."""
        assert self._store_post is not None
        after = self._pending_writes[-1].posted if self._pending_writes else None
        made = PendingWrite(self._store_post(self.claim, bodies, after=after), bodies, then)
        self._pending_writes.append(made)
        self.head += len(bodies)
        return made

    async def _wait_for_write(self, wanted: PendingWrite) -> None:
        """Wait until that is written, and all before it; what was first fails first, whichever task waits for it."""
        while wanted in self._pending_writes:
            first = self._pending_writes[0]
            try:
                got = await first.wait()
            except Exception as e:  # noqa: BLE001  a store is foreign code
                self._fail(e, f"save {describe_bodies(first.bodies)}")
            if got is not None and self.stop_error is None:
                if got is not Appended.OK:
                    self._lose_claim(got)
                del self._pending_writes[0]
                self._durable = first.then if self._pending_writes else None
        if self.stop_error is not None:
            raise self.stop_error

    async def _write_apart(self, held: tuple[Body, ...], bodies: tuple[Body, ...], error: NotSerialisable) -> None:
        """Write what had waited without what came next. Where it is to blame itself, the run cannot go on."""
        try:
            if bodies:
                await self._append(*held)
                return
        except NotSerialisable as e:
            error = e
        self._fail(error, f"save {describe_bodies(held)}")

    def stop(self, error: JournalError) -> None:
        """Write nothing more, and have later writes raise this: behind a missing entry, they would be no history."""
        if self.stop_error is None:
            self.stop_error = error
            self._roll_back()
            # Here and not in a test before each write: every iteration would pay for that.
            self._store_append = self._store_snapshot = partial(refuse, error)

    def follow_claims(self, above: Sequence[Watch]) -> None:
        """Write nothing once the claim of a run above is lost: who has that one goes on with this thread, too."""
        self._store_append, self._store_post = guard_writes(above, self._store_append, self._store_post)

    def _roll_back(self) -> None:
        """Roll back to the last durable state."""
        if self._durable is not None:
            (self.state, self.last), self._deferred, self._durable = self._durable, (), None
        self._pending_writes = []

    def _fail(self, error: Exception, doing: str = "") -> NoReturn:
        if isinstance(error, JournalError):
            self.stop(error)
            raise error
        self._roll_back()
        begun = self.last is not None and self.last.run_id == self.run_id
        failure = write_error(self.store, self.claim.thread_id, doing, error, self.open_node if begun else "")
        self.stop(failure)
        raise failure from error

    def _lose_claim(self, got: Appended) -> NoReturn:
        # UNKNOWN is not guessed at: the run stops here, and the next claim tells what was stored.
        self._fail(fenced_error(self.claim.thread_id, got))

    def find_step(self, step_id: StepId, digest: str = "") -> Step | None:
        """What the journal says about a step of the node under way.

        Raises:
            StepMismatch: it was recorded for other arguments: this is not the code that was running.
        """
        if not self._steps:
            return None
        found = self._steps.get(step_id)
        if found is not None and found.digest != digest and bare(found.digest) != bare(digest):
            self._fail(mismatch_error(step_id, found.digest, digest))
        return found

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

    def record_retry(self, step_id: StepId, reason: str) -> None:
        """Record, with what is written next, that a hook asked for another try."""
        self.retried_steps.add(step_id)
        self.defer(Retried(run_id=self.run_id, step_id=step_id, reason=reason))

    def defer(self, body: Body) -> None:
        """Write an entry together with the next one."""
        if self.stop_error is None:
            self._deferred += (body,)

    def intend(self, step_id: StepId, policy: Policy, digest: str = "", *, key: str = "") -> Coroutine[Any, Any, None]:
        """Write that an effect is about to happen."""
        return self._append(_intent(run_id=self.run_id, step_id=step_id, digest=digest, policy=policy, key=key))

    async def settle(
        self, step_id: StepId, value: Any, digest: str = "", error: str | None = None, *, when: When = "now"
    ) -> None:
        """Write what came of it."""
        outcome = _outcome(run_id=self.run_id, step_id=step_id, digest=digest, value=value, error=error)
        if when == "next" and self._keeps_history and self.stop_error is None:
            self._deferred += (outcome,)
        else:
            await self._append(outcome)

    async def flush(self) -> None:
        """Have everything written by now."""
        if self._deferred:
            await self._append()
        elif self._pending_writes:
            await self._wait_for_write(self._pending_writes[-1])

    async def step(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str = "") -> Any:
        """Run an effect unless its result is recorded.

        Raises:
            StepFailed: it is recorded that it raised.
            ModelError: it is recorded that this model call failed.
            OutcomeUnknown: policy ``"once"``, and a crash came between the effect and its record.
            NotSerialisable: its result has no JSON form, and the store needs one.
            Fenced, StepMismatch, StoreError: this worker must not go on, see `stop_error`.
        """
        found = self.find_step(step_id, digest) if self._steps else None
        if type(found) is Outcome:
            if found.error is not None:
                raise StepFailed(found.error)
            return found.value
        if type(found) is ModelFailed:
            raise ModelError(found.error, retryable=found.retryable)
        if type(found) is Intent:
            # What was recorded with it counts, not what the code says now.
            if found.policy == "once":
                raise OutcomeUnknown(str(step_id))
        elif policy == "once" or policy == "keyed":
            await self.intend(step_id, policy, digest)
        if policy == "model" and self._deferred:
            # A crash in the middle of this call must not repeat the one before it as well.
            await self._append()
        try:
            # Frozen here, so that a replay returns what the first time returned.
            value = freeze(await self.effects.run(step_id, fn, policy, digest))
        except Exception as e:
            if policy != "model" and type(e) is not OutcomeUnknown:
                await self.settle(step_id, None, digest, f"{type(e).__name__}: {e}")
            raise
        if policy == "model":
            # Written together with what comes next, mostly the transition: a crash before that asks the model
            # again, which the laws allow once a crash, and every run saves a write an iteration.
            while self._deferred:  # another call that ran beside this one; while it is written, a third may end
                await self._append()
            self._deferred = (_outcome(run_id=self.run_id, step_id=step_id, digest=digest, value=value),)
            self._has_model_answer = True
        else:
            await self.settle(step_id, value, digest)
        return value

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
        """Make a transition and return the committed state: ``new`` with its time, work and iteration stamped.

        Raises:
            Fenced: another worker took the thread over; nothing was written.
            StoreError: the store failed; the transition before is kept, and `resume` goes on from there.
        """
        now = self.effects.now()
        if self._keeps_history:
            change, state = advance(
                old, new, updated_at=now, active_seconds=active_seconds, iteration=iteration, is_last=next_node == END
            )
        else:
            change = _NO_DELTA  # the state is handed to the store whole
            state = new.commit(updated_at=now, active_seconds=active_seconds, iteration=iteration)
        transition = _transition(
            run_id=self.run_id,
            node=node,
            next_node=next_node,
            delta=change,
            why=why,
            satisfied=() if ending is None else ending.satisfied,
            segment=self.segment,
            error=None if ending is None else ending.error_text,
            detail="" if ending is None else ending.detail,
            iteration_finished=ending is not None and ending.iteration_finished,
            instead_of=instead_of,
            uncharged=uncharged,
            request_id=request_id,
        )
        if when == "meanwhile" and (self._store_post is None or (self._has_model_answer and next_node != END)):
            # A crash in the middle of a model call must not repeat the one before it as well.
            when = "now"
        if when != "now" and self._keeps_history and self.stop_error is None:
            if when == "meanwhile" and self._pending_writes and next_node != END:  # behind the end comes nothing
                await self.flush()
            self._durable = self._durable or (self.state, self.last)
            self._deferred += (transition,)
            if when == "meanwhile":
                bodies, self._deferred, self._has_model_answer = self._deferred, (), False
                try:
                    self._begin_write(bodies, (state, transition))
                except Exception as e:  # noqa: BLE001  a store is foreign code
                    self._fail(e, f"save {describe_bodies(bodies)}")
        elif self._keeps_history:
            try:
                await self._append(transition)
            except NotSerialisable as e:  # the run cannot go on without it
                self._fail(e, f"save {describe_bodies((transition,))}")
            except anyio.get_cancelled_exc_class():
                await self._find_end(transition, state)
                raise
        else:
            self._deferred, self._has_model_answer = (), False  # the state holds what the model said
            self.head += 1
            try:
                kept = await self._store_snapshot(self.claim, self.head, state, transition)
            except Exception as e:  # noqa: BLE001  a store is foreign code
                self._fail(e, f"save the state after {describe_bodies((transition,))}")
            except anyio.get_cancelled_exc_class():
                await self._find_end(transition, state)
                raise
            if not kept:
                self._lose_claim(Appended.FENCED)
        self.state, self.last_at = state, self.head + len(self._deferred)
        self.enter_transition(transition)
        if self._snapshot_every is not None and self.head - self._cached >= self._snapshot_every and not self._deferred:
            await self.flush()
            # A cache: without it a resume reads more. What keeps it from being written keeps the next entry, too.
            with contextlib.suppress(Exception):
                await self._store_snapshot(self.claim, self.head, state, transition)
            self._cached = self.head
        return state

    async def _find_end(self, transition: Transition, state: AgentState) -> None:
        """After a cancel that came while the end of a run was written: ask the store if it is there.

        Nothing may be written behind it, no pause either; where the store does not say, nothing is written at all.
        """
        if transition.next_node != END:
            return
        found = await ask_store(partial(type(self).peek, self.store, self.claim.thread_id))
        if found is None:
            self.stop(fenced_error(self.claim.thread_id, Appended.UNKNOWN))
        elif found.open_node is None and found.run_id == self.run_id:
            self.enter_transition(transition)
            self.state, self.head = state, found.head

    async def ask(self, question: Asked) -> None:
        """Write a question to a person, unless it was asked about this very call."""
        known = self.questions.get(question.interrupt_id)
        if known is None or known.digest != question.digest:
            await self._append(question)
            self.questions[question.interrupt_id] = question
            self._answers.pop(question.interrupt_id, None)

    async def answer(self, answers: dict[str, Any]) -> None:
        """Write answers to open questions."""
        given = [Answered(run_id=self.run_id, interrupt_id=i, answer=a) for i, a in answers.items()]
        await self._append(*given)
        self._answers.update((a.interrupt_id, a) for a in given)

    def answers(self, step_id: StepId) -> tuple[tuple[Asked, Any], ...]:
        """The questions of a step of the node under way that have an answer, in order, each with its answer."""
        asked = (q for q in self.questions.values() if q.step_id == step_id)
        return tuple((q, self._answers[q.interrupt_id].answer) for q in asked if q.interrupt_id in self._answers)

    def is_waiting(self, step_id: StepId, digests: Container[str]) -> bool:
        """Whether a question of a step of the node under way, about one of these, has no answer yet."""
        return any(q.step_id == step_id and q.digest in digests for q in self.open_questions.values())

    async def pause(self, kind: PauseKind, reason: str = "", seconds: float = 0.0, due: datetime | None = None) -> None:
        """End the segment without ending the run, so many seconds of work after the last transition."""
        self.due, run_id, n = due, self.run_id, self.segment
        paused = Paused(run_id=run_id, segment=n, kind=kind, reason=reason, not_before=due, active_seconds=seconds)
        await self._append(paused)

    async def annotate(self, step_id: StepId, value: Any) -> None:
        """Keep data for those who read the journal, written with what comes next, under a name that no step has."""
        if self._keeps_history:
            self._deferred += (Outcome(run_id=self.run_id, step_id=step_id, value=freeze(value)),)

    async def resume(self) -> None:
        """Begin another segment."""
        self.segment, self.due = self.segment + 1, None
        await self._append(Resumed(run_id=self.run_id, segment=self.segment))

    async def release(self) -> None:
        """Give the thread back.

        Raises:
            StoreError: the store failed; what was committed is kept.
        """
        await release(self.store, self.claim, self.due, is_empty=not self.head)
