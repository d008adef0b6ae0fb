"""`Sleeps`: the sleeps of a handler, and when it is left for them.

The laws of a sleep, whichever worker it is entered in:

1. It lasts until a time that is recorded when it is asked for first. Nothing begins it anew: no crash, no retry.
2. A long one holds no worker. The handler is left, the step is given back until the sleep is over, or a bound of the
   step, and the handler is entered again from its top, not before.
3. Whatever the handler has begun in `ctx.step` has ended before it is left, or is the step that it sleeps in: so no
   effect is cut, and none that may happen once is entered twice.
4. A handler that was left says nothing, and writes nothing: what it says counts when it is not left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

import anyio
import anyio.lowlevel
from attrs import define, field

from locus.core.journal import Policy, StepId

__all__ = ["SHORT_SLEEP", "Sleeps", "Suspended", "Undertaking", "find_sleep"]

#: Seconds up to which a sleep keeps its worker, unless its worker has another number.
SHORT_SLEEP = 5.0


class Suspended(BaseException):
    """A handler is left because its step sleeps. It is entered again from its top, when it is time.

    Args:
        until: when.
    """

    def __init__(self, until: datetime) -> None:
        self.until = until
        super().__init__(f"until {until.isoformat()}")


def find_sleep(error: BaseException) -> Suspended | None:
    """The sleep for which a handler was left, also through task groups of its own; None for another exception.

    Raises:
        ExceptionGroup: something has failed beside the sleep.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error if isinstance(error, Suspended) else None
    sleeps, others = error.split(Suspended)
    if sleeps is None or (others is not None and not isinstance(others, Exception)):
        return None
    if others is not None:
        raise others from error
    found = sleeps.exceptions[0]
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, Suspended)
    return found


async def _let_others_run() -> None:
    """Let the tasks that could run come to their own steps and sleeps; Trio runs those of one turn in any order."""
    for _ in range(2):
        await anyio.lowlevel.checkpoint()


@define(eq=False)
class Undertaking:
    """Something of a handler that is under way and must not be cut: a step, or a short sleep.

    Args:
        sleeps: those of its handler.
        step_id: the step.
        policy: what may happen to it after a crash.
    """

    sleeps: Sleeps
    step_id: StepId
    policy: Policy


#: What the task, or the thread, is inside of; of all handlers, the outermost first.
_AROUND: ContextVar[tuple[Undertaking, ...]] = ContextVar("locus.workflow.around", default=())


@define(eq=False)
class Sleeps:
    """The sleeps of one handler, as a worker runs it.

    Args:
        now: tells the time.
        short: seconds up to which a sleep keeps its worker.
    """

    now: Callable[[], datetime]
    short: float = SHORT_SLEEP
    #: What it was left for.
    left_for: Suspended | None = None
    _under_way: set[Undertaking] = field(init=False, factory=set)
    _sleepers: list[tuple[datetime, tuple[Undertaking, ...]]] = field(init=False, factory=list)
    _changed: anyio.Event = field(init=False, factory=anyio.Event)

    @property
    def around(self) -> tuple[Undertaking, ...]:
        """The steps whose bodies the caller is in, the outermost first."""
        return tuple(each for each in _AROUND.get() if each.sleeps is self)

    @contextmanager
    def undertake(self, step_id: StepId, policy: Policy) -> Iterator[None]:
        """A block in which the handler is not left, unless for a sleep inside of it."""
        mine = Undertaking(self, step_id, policy)
        before = _AROUND.set((*_AROUND.get(), mine))
        self._under_way.add(mine)
        try:
            yield
        finally:
            _AROUND.reset(before)
            self._under_way.remove(mine)
            self._change()

    def check(self) -> None:
        """Nothing more is done by a handler that is being left.

        Raises:
            Suspended: it is.
        """
        if self.left_for is not None:
            raise Suspended(self.left_for.until)

    async def sleep(self, step_id: StepId, until: datetime) -> None:
        """Sleep until then, here or elsewhere.

        Raises:
            Suspended: elsewhere.
        """
        around, left = self.around, self._time_until(until)
        while left > 0:
            if left > self.short and all(each.policy != "once" for each in around):
                await self._leave(until, left, around)
                return
            with self.undertake(step_id, "pure"):
                await anyio.sleep(left)
            # The wall clock may lag behind the event loop's; with one that does not move this would never end.
            before, left = left, self._time_until(until)
            if left >= before:
                return

    def _time_until(self, until: datetime) -> float:
        return (until - self.now()).total_seconds()

    async def _leave(self, until: datetime, left: float, around: tuple[Undertaking, ...]) -> None:
        """Leave the handler, once nothing is under way but what sleeps; return where the sleep is over before that."""
        mine = (until, around)
        self._sleepers.append(mine)
        try:
            await _let_others_run()
            while self._under_way.difference(*(asleep for _, asleep in self._sleepers)):
                with anyio.move_on_after(left):
                    await self._changed.wait()
                await _let_others_run()
                left = self._time_until(until)
                if left <= 0:
                    return
            self.check()
            self.left_for = Suspended(min(due for due, _ in self._sleepers))
        finally:
            self._sleepers.remove(mine)
            self._change()
        raise self.left_for

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
