"""The seam where the loop's effects are made durable. The loop sees nothing else.

A store stands behind `JournalHost`; an engine with a journal of its own implements `StepHost` directly, and the same
loop runs there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from locus.core.errors import JournalError
    from locus.core.journal import Answered, Asked, Intent, Outcome, PauseKind, Policy
    from locus.core.state import AgentState
    from locus.core.step_id import StepId

__all__ = ["WHEN", "StepHost", "When"]

#: When an entry must be written. ``"now"``: before the call returns. ``"meanwhile"``: it is begun, and the loop goes
#: on; it is there before the next entry, and before the next effect that is none of the model. ``"next"``: together
#: with the next entry, which comes before any effect. Anything but ``"now"`` is leave, not duty: a host may always
#: write at once.
When = Literal["now", "meanwhile", "next"]

#: By the node that follows a transition that nobody is told of.
WHEN: Mapping[str, When] = {"think": "meanwhile", "execute": "next", "terminate": "next", "end": "meanwhile"}


class StepHost(Protocol):
    """The effects of a run, each at most once recorded."""

    @property
    def stopped(self) -> JournalError | None:
        """What says that this worker must not go on, once something does; from then on nothing is written."""
        ...

    def recorded(self, step_id: StepId, digest: str = "") -> Outcome | Intent | None:
        """What the journal says about a step of the node under way."""
        ...

    async def intend(self, step_id: StepId, policy: Policy, digest: str = "") -> None:
        """Write that an effect is about to happen."""
        ...

    async def settle(
        self, step_id: StepId, value: Any, digest: str = "", error: str | None = None, *, when: When = "now"
    ) -> None:
        """Write what came of it.

        Args:
            step_id: the step.
            value: what came of it.
            digest: of its arguments.
            error: what it raised.
            when: when it must be written.
        """
        ...

    async def step(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str = "") -> Any:
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
        when: When = "now",
    ) -> AgentState:
        """Make a transition and return the committed state: ``new`` with its time, work and iteration stamped."""
        ...

    async def flush(self) -> None:
        """Have everything written by now."""
        ...

    async def ask(self, question: Asked) -> None:
        """Write a question to a person."""
        ...

    def answers(self, step_id: StepId) -> tuple[Answered, ...]:
        """The answers that a step of the node under way has got, in the order of its questions."""
        ...

    def waits(self, step_id: StepId) -> bool:
        """Whether a question of a step of the node under way has no answer yet."""
        ...

    async def pause(self, kind: PauseKind, reason: str = "") -> None:
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

    async def note(self, step_id: StepId, value: Any) -> None:
        """Keep something for those who read the journal, written together with what comes next."""
        ...

    def now(self) -> datetime:
        """The time that goes into the next entry, UTC."""
        ...

    def new_id(self) -> str:
        """A fresh unique id that goes into the next entry."""
        ...
