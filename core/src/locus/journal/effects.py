"""`Effects`: where the effects of a run take place, in this process or in an engine; and `Clock`, its source of time.

The journal's host decides whether an effect is to happen, and writes before it and after it; `Effects` only makes it
happen. The order never changes: a recorded outcome wins, an intent without one is never begun again against its
policy, the intent is written, the effect runs, its outcome is written.

An engine that records results by itself runs a workflow again from its beginning after a crash, and hands out what it
has recorded. There the journal may be rebuilt in memory each time: ``run`` answers for every effect that had ended,
and ``now`` and ``new_id`` return what they returned before, in the same order.

`CallerCancel` ends effects that need not finish. A caller who cancels a run (`Run.cancel`, `Agent.cancel`) does not
cancel its task: the run goes on to its end, and calls of models and what is awaited in a `CutScope` are left at once.
`CallerCancel.watch` ends a model call that takes too long.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from locus.core.journal import Policy
    from locus.core.step_id import StepId


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The time, UTC."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    #: The time, UTC.
    now = staticmethod(partial(datetime.now, UTC))

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

    def now(self) -> datetime:
        """The time, UTC: of the run's beginning and of each transition."""

    def new_id(self) -> str:
        """A fresh unique id, for a run, or for a thread without a name."""


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


class CallerCancel:
    """The caller's cancel of a run, and what it cuts off: blocks of code that are left at once, while the run goes on.

    On asyncio a block is the task that is in it. The task is asked to end once, and the request is taken back when it
    has left the block; another one's request at the same moment keeps its own count in the task, so it is not lost. A
    cancel scope around each model call would cost a twentieth of an iteration. On trio a block is a cancel scope.
    """

    __slots__ = ("_blocks", "_children", "_open", "_requested", "_token", "_watch", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        # These are changed and copied in one step each, so that any thread may look.
        self._blocks: list[Any] = []
        self._children: list[CallerCancel] = []
        self._requested: list[Any] = []
        self._open: Callable[[], Any] | None = None
        # Trio's, where that runs; and on asyncio the calls of the event loop.
        self._token: Any = None
        self._watch: _Watch | None = None

    def set(self) -> None:
        """Cut off what is under way and may be. Safe to call from any thread, and from a signal handler."""
        self.is_set = True  # before the blocks are read: what enters one meanwhile looks at it afterwards
        for block in tuple(self._blocks):
            self._request(block)
        for child in tuple(self._children):
            child.set()

    def include(self, child: CallerCancel) -> None:
        """Cut off what a child run does, too."""
        self._children.append(child)
        if self.is_set:
            child.set()

    def exclude(self, child: CallerCancel) -> None:
        """The child run is over."""
        self._children.remove(child)

    def enter(self) -> Any:
        """Enter a block in this task; gives what `leave` takes."""
        block = (self._open or self._find())()
        self._blocks.append(block)
        if self.is_set:
            self._request(block)
        return block

    def leave(self, block: Any, error: BaseException | None) -> bool:
        """Leave a block.

        Args:
            block: what was entered.
            error: what it is left with, or None.

        Returns:
            Whether the error is the cut, which ends here.
        """
        self._blocks.remove(block)
        if self._token is not None:
            if error is None:
                block.__exit__(None, None, None)
                return False
            return bool(block.__exit__(type(error), error, error.__traceback__))
        if not self.is_set or block not in self._requested:
            return False
        self._requested.remove(block)
        block.uncancel()
        if block in self._blocks:
            self._request(block)  # for the block around this one
        return isinstance(error, sys.modules["asyncio"].CancelledError)

    def watch(self, block: Any, seconds: float) -> WatchedCall | None:
        """Cancel the task of a block when this time has passed, until `WatchedCall.leave`.

        Args:
            block: what was entered.
            seconds: from now.

        Returns:
            The call; None where that cannot be, as on trio.
        """
        watch = self._watch
        if watch is None or block is None:
            return None
        call = WatchedCall()
        call.calls, call.task, call.due = watch.calls, block, _monotonic() + seconds
        call.before, call.cancels = block.cancelling(), 0
        watch.calls.add(call)
        if call.due < watch.at:  # mostly the next look is before its time is up, and then nothing is to be done
            watch.look_at(call.due, block.get_loop())
        return call

    def _find(self) -> Callable[[], Any]:
        trio = sys.modules.get("trio")
        if trio is not None and trio.lowlevel.in_trio_task():
            self._token = trio.lowlevel.current_trio_token()
            self._open = lambda: trio.CancelScope().__enter__()
        else:
            asyncio = sys.modules["asyncio"]
            self._open, self._watch = asyncio.current_task, _find_watch(asyncio.get_running_loop())
        return self._open

    def _request(self, block: Any) -> None:
        if block is None:
            return  # no task runs it that could be asked
        soon = block.get_loop().call_soon_threadsafe if self._token is None else self._token.run_sync_soon
        with contextlib.suppress(RuntimeError):  # the event loop is closed, and took the task with it
            soon(self._cut, block)

    def _cut(self, block: Any) -> None:
        if block in self._blocks and block not in self._requested:
            self._requested.append(block)
            block.cancel()


class CutScope:
    """A block that is left when the caller cancels the run; the code behind it goes on. One use each, in one task.

    Args:
        cancel: the run's.
    """

    __slots__ = ("_block", "_cancel", "is_cut")

    def __init__(self, cancel: CallerCancel) -> None:
        self._cancel = cancel
        #: Whether the block was left because of the cancel.
        self.is_cut = False

    def __enter__(self) -> CutScope:
        self._block = self._cancel.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.is_cut = self._cancel.leave(self._block, error)
        return self.is_cut


# -- calls that take too long --------------------------------------------------------------------------
# Each model call has a limit of time, and entering a cancel scope takes a tenth of the time that the loop needs for an
# iteration. So on asyncio one timer of the event loop looks after all calls, and cancels the task of one that takes too
# long, as `asyncio.timeout` does.

#: Seconds after which a call is cancelled again that has swallowed its cancellation.
_AGAIN = 1.0

_monotonic = time.monotonic


class WatchedCall:
    """A call that is cancelled when its time is up; `CallerCancel.watch` makes it, without an ``__init__``."""

    __slots__ = ("before", "calls", "cancels", "due", "task")
    calls: set[WatchedCall]
    task: Any
    due: float
    before: int
    cancels: int

    def cancel(self, again: float) -> None:
        """The time is up."""
        self.due = again
        self.cancels += 1
        self.task.cancel()

    def leave(self) -> bool:
        """The call has ended: whether it was cancelled because its time was up, and for no other reason."""
        self.calls.discard(self)
        if not self.cancels:
            return False
        left = [self.task.uncancel() for _ in range(self.cancels)]
        return bool(left[-1] <= self.before)


class _Watch:
    """The calls of one event loop. It keeps no reference to the loop: that would keep both alive."""

    __slots__ = ("at", "calls")

    def __init__(self) -> None:
        self.calls = set[WatchedCall]()
        #: When the next look is due.
        self.at = math.inf

    def look_at(self, at: float, loop: Any) -> None:
        """Look at the calls at that time."""
        self.at = at
        loop.call_later(at - _monotonic(), self._look, at, loop)

    def _look(self, at: float, loop: Any) -> None:
        now = _monotonic()
        for call in self.calls:
            if call.due <= now:
                call.cancel(now + _AGAIN)
        if at == self.at:  # else an earlier look has taken the place of this one
            self.at = math.inf
            following = min((call.due for call in self.calls), default=math.inf)
            if following < math.inf:
                self.look_at(following, loop)


_WATCHES: WeakKeyDictionary[Any, _Watch] = WeakKeyDictionary()


def _find_watch(loop: Any) -> _Watch:
    return _WATCHES.get(loop) or _WATCHES.setdefault(loop, _Watch())
