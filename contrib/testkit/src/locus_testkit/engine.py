"""`ToyEngine`: a durable executor with a record of its own, as small as one can be, for an agent's ``effects=``.

It keeps no journal of the agent: after a crash the whole run is started again, and every effect that had ended is
answered from the record. An engine of your own, and an agent that is to run on one, can be tried on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from locus.core.errors import OutcomeUnknown, StepFailed
from locus.core.journal import Policy, StepId
from locus.plugin import Interrupt
from locus_testkit.crashes import SimulatedCrash

__all__ = ["ToyEngine"]


class ToyEngine:
    """An `Effects` that survives its process: call `restart`, and run the same agent on the same prompt again.

    Args:
        dies_at: at which of the moments of its effects the process dies, counted from 1; None = never. An effect has
            three: before it begins, after it happened and before that is recorded, and after that.
    """

    def __init__(self, dies_at: int | None = None) -> None:
        self.dies_at = dies_at
        #: How many moments there were, in all processes; and what ran, by step id.
        self.moments, self.ran = 0, Counter[str]()
        #: The step whose effect was the last before the process died, and at which of the three moments.
        self.died_in: tuple[str, str] | None = None
        self._ended: dict[StepId, tuple[str, Any, str | None]] = {}
        self._begun: set[StepId] = set()
        self._made: dict[str, list[Any]] = {"time": [], "id": []}
        self._read: Counter[str] = Counter()
        self._dead = False

    def restart(self) -> None:
        """Let another process begin, with what is recorded."""
        self._read.clear()
        self._dead = False

    def _moment(self, step_id: StepId, which: str) -> None:
        if not self._dead:
            self.moments += 1
            self._dead = self.moments == self.dies_at
            self.died_in = (str(step_id), which) if self._dead else self.died_in
        if self._dead:
            raise SimulatedCrash

    async def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Any:
        """The recorded result, or that of the effect.

        Raises:
            ValueError: it was recorded for other arguments.
            StepFailed: it is recorded that it raised.
            OutcomeUnknown: it may happen once only, and a process died in it.
        """
        if step_id in self._ended:
            recorded, value, error = self._ended[step_id]
            if recorded != digest:
                raise ValueError(f"step {step_id} was recorded for {recorded!r}, got {digest!r}")
            if error is not None:
                raise StepFailed(error)
            return value
        if step_id in self._begun and policy == "once":
            raise OutcomeUnknown(str(step_id))
        self._moment(step_id, "before")
        self._begun.add(step_id)
        self.ran[str(step_id)] += 1
        value, error, failed = None, None, None
        try:
            value = await fn()
        except Interrupt:
            self._begun.discard(step_id)  # a person is asked: it is entered again
            raise
        except Exception as e:  # noqa: BLE001  whatever it is, it is recorded
            error, failed = f"{type(e).__name__}: {e}", e
        self._moment(step_id, "inside")
        self._ended[step_id] = digest, value, error
        self._moment(step_id, "after")
        if failed is not None:
            raise failed
        return value

    def _next(self, kind: str, make: Callable[[], Any]) -> Any:
        made, at = self._made[kind], self._read[kind]
        self._read[kind] += 1
        if at == len(made):
            made.append(make())
        return made[at]

    def now(self) -> datetime:
        """The time, UTC: the same again in each process."""
        time: datetime = self._next("time", lambda: datetime.now(UTC))
        return time

    def new_id(self) -> str:
        """An id: the same again in each process."""
        made: str = self._next("id", lambda: str(uuid4()))
        return made
