"""Where the loop's effects are made durable: the `StepHost` seam and `JournalHost`, its implementation on a store.

The loop sees only this. A store (memory, a file, a stream) stands behind `JournalHost`; an engine with a journal of
its own implements `StepHost` directly, and the same loop runs there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import anyio

from locus.core.directives import Suspended
from locus.core.errors import Fenced, OutcomeUnknown, StepFailed, StepMismatch
from locus.core.frozen import freeze
from locus.core.journal import (
    BLANK,
    END,
    START,
    Answered,
    Asked,
    Body,
    Intent,
    Outcome,
    Paused,
    Policy,
    Resumed,
    StateDelta,
    Transition,
    advance,
    apply,
)
from locus.memory.store import Appended, Claim, JournalStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from locus.core.state import AgentState

__all__ = ["JournalHost", "StepHost"]


#: The delta of a transition whose state is handed to the store whole.
_IN_THE_STATE = StateDelta()


class StepHost(Protocol):
    """The effects of a run, each at most once recorded."""

    def recorded(self, step_id: str, digest: str = "") -> Outcome | Intent | None:
        """What the journal says about a step of the node under way."""
        ...

    async def intend(self, step_id: str, policy: Policy, digest: str = "") -> None:
        """Write that an effect is about to happen."""
        ...

    async def settle(self, step_id: str, value: Any, digest: str = "", error: str | None = None) -> None:
        """Write what came of it."""
        ...

    async def step(self, step_id: str, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str = "") -> Any:
        """Run an effect unless its result is recorded."""
        ...

    async def commit(
        self,
        old: AgentState,
        new: AgentState,
        *,
        node: str,
        next_node: str,
        why: str = "",
        satisfied: tuple[str, ...] = (),
        error: str | None = None,
        active_seconds: float = 0.0,
        iteration: int = 0,
    ) -> AgentState:
        """Make a transition and return the committed state: ``new`` with its time, work and iteration stamped."""
        ...

    async def ask(self, question: Asked) -> None:
        """Write a question to a person."""
        ...

    def answers(self, step_id: str) -> tuple[Answered, ...]:
        """The answers that a step of the node under way has got, in the order of its questions."""
        ...

    def waits(self, step_id: str) -> bool:
        """Whether a question of a step of the node under way has no answer yet."""
        ...

    async def pause(self, reason: str) -> None:
        """End the segment without ending the run."""
        ...

    async def sleep_until(self, at: datetime) -> None:
        """Wait for a time; an engine may let the worker go meanwhile."""
        ...

    async def wait(self, name: str, question: str, options: tuple[str, ...] = ()) -> Any:
        """The answer that somebody outside gave under a name.

        Raises:
            Suspended: there is none yet; the run is resumed with one.
        """
        ...

    def now(self) -> datetime:
        """The time that goes into the next entry, UTC."""
        ...

    def new_id(self) -> str:
        """A fresh unique id that goes into the next entry."""
        ...


class JournalHost:
    """`StepHost` over a claimed thread of a journal store."""

    __slots__ = (
        "_answers",
        "_every",
        "_held",
        "_keeps",
        "_now",
        "_saved",
        "_steps",
        "asked",
        "claim",
        "head",
        "last",
        "run_id",
        "segment",
        "state",
        "store",
    )

    def __init__(self, store: JournalStore, claim: Claim, now: Callable[[], datetime] | None = None) -> None:
        self.store, self.claim, self.head = store, claim, claim.head
        self._now = now
        #: The state as last committed.
        self.state: AgentState = BLANK if claim.snapshot is None else claim.snapshot.state
        #: The last transition, None on a new thread.
        self.last: Transition | None = None
        #: Open questions of the node under way, by interrupt id.
        self.asked: dict[str, Asked] = {}
        self._steps: dict[str, Outcome | Intent] = {}
        self._answers: dict[str, Answered] = {}
        self.run_id, self.segment = "", 0
        if claim.snapshot is not None:
            self._note(claim.snapshot.last)
        self._saved = claim.snapshot.at if claim.snapshot is not None else 0
        self._held: tuple[str, str, Any] | None = None
        self._every = store.snapshot_every
        self._keeps = store.keeps_history
        for entry in claim.entries:
            self._take(entry.body)

    @classmethod
    async def open(
        cls, store: JournalStore, thread_id: str, worker: str, now: Callable[[], datetime] | None = None
    ) -> JournalHost:
        """Claim a thread and fold what stands in it.

        Raises:
            ThreadBusy: another run holds it.
        """
        claim = await store.claim(thread_id, worker)
        try:
            return cls(store, claim, now)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await store.release(claim)
            raise

    def _take(self, body: Body) -> None:
        kind = type(body)
        if kind is Transition:
            self.state = apply(self.state, body.delta)  # type: ignore[union-attr]
            self._note(body)  # type: ignore[arg-type]
        elif kind is Outcome or kind is Intent:
            # A new turn that died before its first transition may have left steps behind: they are not this run's.
            if body.run_id == self.run_id:
                self._steps[body.step_id] = body  # type: ignore[union-attr, assignment]
        elif kind is Asked:
            # The body was left in good order to ask: it may be entered again, and writes its intent anew.
            self._steps.pop(body.step_id, None)  # type: ignore[union-attr]
            self.asked[body.interrupt_id] = body  # type: ignore[union-attr, assignment]
        elif kind is Answered:
            self._answers[body.interrupt_id] = body  # type: ignore[union-attr, assignment]
        else:
            self.segment = max(self.segment, body.segment)  # type: ignore[union-attr]

    def _note(self, transition: Transition) -> None:
        self.last, self.run_id = transition, transition.run_id
        self.segment = transition.segment if transition.node == START else max(self.segment, transition.segment)
        if self._steps or self.asked or self._answers:
            self._steps, self.asked, self._answers = {}, {}, {}

    def begin(self, run_id: str) -> None:
        """Start a run of its own: what the one before had on record in an unfinished node is not this one's."""
        self.run_id, self.segment = run_id, 0
        self._steps, self.asked, self._answers = {}, {}, {}

    @property
    def open_node(self) -> str | None:
        """The node where an unfinished run goes on, or None."""
        return None if self.last is None or self.last.next_node == END else self.last.next_node

    @property
    def open_questions(self) -> dict[str, Asked]:
        """The questions without an answer, by interrupt id."""
        return {i: q for i, q in self.asked.items() if i not in self._answers}

    async def _append(self, *bodies: Body) -> None:
        if self._held is not None:
            step_id, digest, value = self._held
            self._held = None
            bodies = (Outcome(run_id=self.run_id, step_id=step_id, digest=digest, value=value), *bodies)
        got = await self.store.append(self.claim, bodies)
        if got is not Appended.OK:
            raise self._fenced(got)
        self.head += len(bodies)

    def _fenced(self, got: Appended) -> Fenced:
        # UNKNOWN is not guessed at: the run stops here, and the next claim tells what was stored.
        return Fenced(
            f"thread {self.claim.thread_id!r}: another worker took the run over, or the store did not say "
            f"whether the entry was stored ({got.value}); this worker stops, resume(thread_id) goes on"
        )

    def recorded(self, step_id: str, digest: str = "") -> Outcome | Intent | None:
        """What the journal says about a step of the node under way.

        Raises:
            StepMismatch: it was recorded for other arguments: this is not the code that was running.
        """
        if not self._steps:
            return None
        found = self._steps.get(step_id)
        if found is not None and found.digest != digest:
            raise StepMismatch(
                f"step {step_id!r} was recorded for {found.digest!r} and is asked for {digest!r}; the code or its "
                "configuration changed since: finish the run with the version that started it"
            )
        return found

    def recorded_any(self, step_id: str) -> Outcome | Intent | None:
        """What the journal says about a step, whatever its arguments were."""
        return self._steps.get(step_id)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What the journal says of the steps of the node under way that have ended."""
        return tuple(s for s in self._steps.values() if isinstance(s, Outcome))

    def intend(self, step_id: str, policy: Policy, digest: str = "") -> Coroutine[Any, Any, None]:
        """Write that an effect is about to happen."""
        return self._append(Intent(run_id=self.run_id, step_id=step_id, digest=digest, policy=policy))

    def settle(self, step_id: str, value: Any, digest: str = "", error: str | None = None) -> Coroutine[Any, Any, None]:
        """Write what came of it."""
        return self._append(Outcome(run_id=self.run_id, step_id=step_id, digest=digest, value=value, error=error))

    async def step(self, step_id: str, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str = "") -> Any:
        """Run an effect unless its result is recorded.

        Raises:
            StepFailed: it is recorded that it raised.
            OutcomeUnknown: policy ``"once"``, and a crash came between the effect and its record.
        """
        found = self.recorded(step_id, digest) if self._steps else None
        if type(found) is Outcome:
            if found.error is not None:
                raise StepFailed(found.error)
            return found.value
        if policy == "once" or policy == "keyed":
            if found is None:
                await self.intend(step_id, policy, digest)
            elif policy == "once":
                raise OutcomeUnknown(step_id)
        try:
            # Frozen here, so that a replay returns what the first time returned.
            value = freeze(await fn())
        except Exception as e:
            if policy != "model":
                await self.settle(step_id, None, digest, f"{type(e).__name__}: {e}")
            raise
        if policy == "model":
            # Written together with what comes next, mostly the transition: a crash before that asks the model
            # again, which the laws allow once a crash, and every run saves a write an iteration.
            if self._held is not None:
                await self._append()
            self._held = (step_id, digest, value)
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
        satisfied: tuple[str, ...] = (),
        error: str | None = None,
        active_seconds: float = 0.0,
        iteration: int = 0,
    ) -> AgentState:
        """Make a transition and return the committed state: ``new`` with its time, work and iteration stamped.

        Raises:
            Fenced: another worker took the thread over; nothing was written.
        """
        now = datetime.now(UTC) if self._now is None else self._now()
        if self._keeps:
            change, state = advance(old, new, updated_at=now, active_seconds=active_seconds, iteration=iteration)
        else:
            change = _IN_THE_STATE
            state = new.marked(updated_at=now, active_seconds=active_seconds, iteration=iteration)
        transition = Transition(
            run_id=self.run_id,
            node=node,
            next_node=next_node,
            delta=change,
            why=why,
            satisfied=satisfied,
            segment=self.segment,
            error=error,
        )
        if self._keeps:
            await self._append(transition)
            if self._every is not None and self.head - self._saved >= self._every:
                await self.store.snapshot(self.claim, self.head, state, transition)
                self._saved = self.head
        else:
            self._held = None  # the state holds what the model said
            self.head += 1
            if not await self.store.snapshot(self.claim, self.head, state, transition):
                raise self._fenced(Appended.FENCED)
        self._note(transition)
        self.state = state
        return state

    async def ask(self, question: Asked) -> None:
        """Write a question to a person."""
        if question.interrupt_id not in self.asked:
            await self._append(question)
            self.asked[question.interrupt_id] = question

    async def answer(self, answers: dict[str, Any]) -> None:
        """Write answers to open questions."""
        given = [Answered(run_id=self.run_id, interrupt_id=i, answer=a) for i, a in answers.items()]
        await self._append(*given)
        self._answers.update((a.interrupt_id, a) for a in given)

    def answers(self, step_id: str) -> tuple[Answered, ...]:
        """The answers that a step of the node under way has got, in the order of its questions."""
        if not self._answers:
            return ()
        asked = (q for q in self.asked.values() if q.step_id == step_id)
        return tuple(self._answers[q.interrupt_id] for q in asked if q.interrupt_id in self._answers)

    def waits(self, step_id: str) -> bool:
        """Whether a question of a step of the node under way has no answer yet."""
        return bool(self.asked) and any(q.step_id == step_id for q in self.open_questions.values())

    async def pause(self, reason: str) -> None:
        """End the segment without ending the run."""
        await self._append(Paused(run_id=self.run_id, segment=self.segment, reason=reason))

    async def resume(self) -> None:
        """Begin another segment."""
        self.segment += 1
        await self._append(Resumed(run_id=self.run_id, segment=self.segment))

    async def sleep_until(self, at: datetime) -> None:
        """Wait for a time, in this process."""
        await anyio.sleep(max(0.0, (at - self.now()).total_seconds()))

    async def wait(self, name: str, question: str, options: tuple[str, ...] = ()) -> Any:
        """The answer that somebody outside gave under a name, which is unique within the node.

        Raises:
            Suspended: there is none yet.
        """
        given = self.answers(name)
        if given:
            return given[0].answer
        await self.ask(Asked(run_id=self.run_id, interrupt_id=name, step_id=name, question=question, options=options))
        raise Suspended

    def now(self) -> datetime:
        """The time, UTC."""
        return datetime.now(UTC) if self._now is None else self._now()

    def new_id(self) -> str:
        """A fresh unique id."""
        return str(uuid4())

    async def release(self) -> None:
        """Give the thread back."""
        await self.store.release(self.claim)
