"""`Effects`: where the effects of a run take place, in this process or in an engine; and `Clock`, its source of time.

The journal's host decides whether an effect is to happen, and writes before it and after it; `Effects` only makes it
happen. The order never changes: a recorded outcome wins, an intent without one is never begun again against its
policy, the intent is written, the effect runs, its outcome is written.

An engine that records results by itself runs a workflow again from its beginning after a crash, and hands out what it
has recorded. There the journal may be rebuilt in memory each time: ``run`` answers for every effect that had ended,
and ``now`` and ``new_id`` return what they returned before, in the same order.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from locus.core.journal import Policy
    from locus.core.step_id import StepId

__all__ = ["Clock", "Effects", "InProcess", "SystemClock"]


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The time, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """The time, UTC."""
        return datetime.now(UTC)

    #: Seconds that only go forward.
    monotonic = staticmethod(time.monotonic)


class Effects(Protocol):
    """Where effects take place, and where the times and ids come from that a run records.

    Effects nest: a tool's body is one, and each ``ctx.step`` in it is another. A child run lies inside of an effect
    of its parent and has the effects of its own agent.
    """

    def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Awaitable[Any]:
        """Make an effect happen, and return its result.

        Args:
            step_id: unique in the run; the same on every way back to this effect.
            fn: the effect: a model call, a tool's body with what wraps it, a step of a body. It may only be called
                within this call, once. Its result is a model's answer, the outcome of a call, or data.
            policy: how often it may happen: ``"model"``, ``"pure"``, ``"keyed"`` or ``"once"``.
            digest: a short hash of what is asked: a recorded result holds for the same digest.

        Raises:
            BaseException: what ``fn`` raises. A question to a person leaves a body this way, too, and the body is
                entered again under the same step id when there is an answer: that is not a result.
            StepFailed: it is recorded that it raised.
            OutcomeUnknown: policy ``"once"``; it was begun before, and what came of it is unknown.
            JournalError: this worker must not go on.
        """
        ...

    def now(self) -> datetime:
        """The time, UTC: of the run's beginning and of each transition."""
        ...

    def new_id(self) -> str:
        """A fresh unique id, for a run, or for a thread without a name."""
        ...


class InProcess:
    """Effects in this process, at once.

    Args:
        now: shows the time, UTC; None = the machine's clock.
    """

    __slots__ = ("now",)

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        #: The time, UTC.
        self.now = SystemClock().now if now is None else now

    def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Awaitable[Any]:
        """The effect itself; the other arguments are for engines."""
        return fn()

    @staticmethod
    def new_id() -> str:
        """A random UUID."""
        return str(uuid4())
