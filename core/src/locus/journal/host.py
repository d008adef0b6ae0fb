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
    Transition,
    advance,
)
from locus.core.step_id import StepId
from locus.journal.effects import Effects, InProcess
from locus.journal.fold import JournalFold
from locus.journal.store import Appended, Claim, JournalStore
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
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from datetime import datetime
    from typing import NoReturn, Self

    from locus.core.events import Ending
    from locus.core.messages import Usage
    from locus.core.state import AgentState
    from locus.journal.signals import Watch
    from locus.journal.store import Posted
    from locus.journal.writes import When
_NO_DELTA, _OK = StateDelta(), Appended.OK
_intent, _outcome, _transition = maker(Intent), maker(Outcome), maker(Transition)


class JournalHost(JournalFold):
    """The journal of a claimed thread as the loop writes and reads it.

    Args:
        store: where the thread is kept.
        claim: the thread, taken.
        effects: where effects take place; None = in this process.
    """

    __slots__ = (
        "_cached",
        "_deferred",
        "_durable",
        "_has_model_answer",
        "_keeps_history",
        "_pending_writes",
        "_snapshot_every",
        "_store_append",
        "_store_post",
        "_store_snapshot",
        "effects",
        "stop_error",
        "store",
    )

    def __init__(self, store: JournalStore, claim: Claim, effects: Effects | None = None) -> None:
        super().__init__(claim)
        self.store = store
        self.effects: Effects = InProcess() if effects is None else effects
        self._store_append: Callable[..., Awaitable[Appended]] = store.append
        self._store_snapshot: Callable[..., Awaitable[bool]] = store.snapshot
        self._keeps_history = store.keeps_history
        #: How a write is begun whose end the loop need not wait for, where the store can do that.
        self._store_post: Callable[..., Posted] | None = getattr(store, "post", None) if self._keeps_history else None
        #: How many entries apart snapshots are, and the number of the entry that the newest one holds.
        self._snapshot_every = store.snapshot_every if self._keeps_history else None
        self._cached = 0 if claim.snapshot is None else claim.snapshot.at
        #: What is written together with the next entry, and whether that holds what a model said.
        self._deferred: tuple[Body, ...] = ()
        self._has_model_answer = False
        #: What is being written while the loop goes on; each follows the one before.
        self._pending_writes: list[PendingWrite] = []
        #: State and last transition as they are written, while a transition waits or is being written.
        self._durable: tuple[AgentState, Transition | None] | None = None
        #: Why nothing more is written; None while the host may write.
        self.stop_error: JournalError | None = None

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
        if got is not _OK:
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
        # What `enter_transition` does, for a transition of this run and this segment.
        self.state, self.last, self.last_at = state, transition, self.head + len(self._deferred)
        if node == START:
            self.submitted = None
        if self._steps or self.questions or self._answers or self.retried_steps:
            self.clear_node()
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

    async def pause(self, kind: PauseKind, reason: str = "", seconds: float = 0.0, due: datetime | None = None) -> None:
        """End the segment without ending the run, so many seconds of work after the last transition."""
        self.due = due
        await self._append(
            Paused(
                run_id=self.run_id,
                segment=self.segment,
                kind=kind,
                reason=reason,
                not_before=due,
                active_seconds=seconds,
            )
        )

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
