"""`Run`: one run, to be awaited, iterated or entered; once.

Awaited, it runs inline in the caller's task: no task, no channel. Iterated, it is driven by a task of its own and
handed over event by event: the run waits at each event until the consumer asks for the next (a burst of chunks may run
a little ahead), so a slow consumer slows the run, and a consumer that leaves at ``ToolStartEvent`` leaves before the
body is entered.

- A run ends with its consumer. Leaving the loop, dropping the `Run` or cancelling the consumer cancels it; therefore
  the task never refers to the `Run`, and what ``async for`` holds is an object of its own that goes with the loop.
- The last event is handed over without waiting to be asked again: the consumer may begin the next run on the thread at
  once, and that one waits (`wait_for_ending`) until this one has released the thread.
- What the run raises is raised to the consumer, once, as it is: a system task of trio may not raise, and a task group
  would wrap it.
- No cancel scope is open across a ``yield``.

It is a class and not an async generator: a generator that is not closed would run its cleanup in a task of its own,
at some later time, and could not warn that it was never awaited.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeAlias
from weakref import WeakSet, ref

import anyio

from locus.core.errors import RunAlreadyUsed, RunNotFinished
from locus.core.events import Event, ModelChunkEvent, TerminateEvent
from locus.result import AgentResult, Out

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from anyio.abc import TaskGroup

#: Runs it, with what its events are handed to.
_Main: TypeAlias = "Callable[[Channel | None], Coroutine[Any, Any, AgentResult[Out]]]"

#: How many chunks a run may be ahead of its consumer. A hand-over costs two task switches, many times what a
#: chunk costs, so chunks travel in bunches; a chunk is never late, because the consumer wakes with the first.
CHUNKS_AHEAD = 32


class Channel:
    """Hands events from the run to its consumer."""

    __slots__ = ("_asked", "_closed", "_is_ending", "_kinds", "_ready", "_task", "items")

    def __init__(self, task: _RunTask[Any], kinds: tuple[type[Event], ...]) -> None:
        self._task, self._kinds, self._is_ending, self._closed = ref(task), kinds, False, False
        #: What the consumer has not taken yet.
        self.items: deque[Event] = deque()
        self._ready: anyio.Event | None = None
        self._asked: anyio.Event | None = None

    def hears(self, beside: Mapping[type[Event], object]) -> Callable[[type[Event]], object]:
        """Whether the consumer, or a listener beside it, hears events of a class."""
        return lambda kind: not self._kinds or kind in self._kinds or beside[kind]

    async def __call__(self, event: Event) -> None:
        """Hand one event over; returns when the consumer wants the next."""
        if self._closed or (self._kinds and type(event) not in self._kinds):
            return
        self.items.append(event)
        if self._ready is not None:
            # Once: the chunks that follow before the consumer runs need not wake it again.
            self._ready.set()
            self._ready = None
        if type(event) is ModelChunkEvent and len(self.items) < CHUNKS_AHEAD:
            return
        if type(event) is TerminateEvent and event.parent_run_id is None:
            # The consumer may begin the next run on the thread now: that one waits until this one has given it back,
            # so this one must not wait for the consumer.
            self._is_ending, task = True, self._task()
            if task is not None:
                _LEAVING.add(task)
        if self._is_ending:
            return
        if self._asked is None:
            self._asked = anyio.Event()
        await self._asked.wait()

    async def receive(self) -> Event | None:
        """The next event; None at the end."""
        while not self.items:
            if self._asked is not None:
                self._asked.set()
                self._asked = None
            if self._closed:
                return None
            ready = self._ready = anyio.Event()
            await ready.wait()
            self._ready = None
        return self.items.popleft()

    def close(self) -> None:
        """No more events."""
        self._closed = True
        if self._ready is not None:
            self._ready.set()


class _RunTask(Generic[Out]):
    """The task that drives an iterated run. It never refers to the `Run`, so a dropped Run can cancel it."""

    __slots__ = (
        "__weakref__",
        "_call_soon",
        "_main",
        "channel",
        "error",
        "finished",
        "home",
        "result",
        "scope",
        "thread_id",
    )

    def __init__(self, main: _Main[Out], thread_id: str, kinds: tuple[type[Event], ...]) -> None:
        self._main, self.thread_id = main, thread_id
        self.channel = Channel(self, kinds)
        self.scope, self.finished = anyio.CancelScope(), anyio.Event()
        self.result: AgentResult[Out] | None = None
        self.error: BaseException | None = None
        self._call_soon: Callable[..., object] | None = None
        self.home: object = None

    async def __call__(self) -> None:
        """Drive the run; whatever it raises goes to the consumer."""
        try:
            with self.scope:
                self.result = await self._main(self.channel)
        except BaseException as e:
            if isinstance(e, anyio.get_cancelled_exc_class()) or type(e) is GeneratorExit:
                raise
            self.error = e  # only the consumer gets it: a system task may not raise
        finally:
            self.channel.close()
            self.finished.set()
            _LEAVING.discard(self)

    def reraise(self) -> None:
        """Raise what the run raised, once."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def spawn(self) -> None:
        """Start as a task that only this object owns."""
        on_trio, home = _home()
        self.home = home
        if on_trio:
            self._call_soon = home.run_sync_soon
            sys.modules["trio"].lowlevel.spawn_system_task(self, context=copy_context())
            return
        self._call_soon = home.call_soon_threadsafe
        task = home.create_task(self(), name="locus run")
        # The event loop keeps weak references only: a run that waits for its consumer would be collected.
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)

    def cancel(self) -> None:
        """Cancel from anywhere, also from a finaliser in another thread."""
        if self._call_soon is None or self.finished.is_set():
            return
        try:
            self._call_soon(self.scope.cancel)
        except RuntimeError:
            return  # the event loop is closed and took the task with it
        _LEAVING.add(self)


def _home() -> tuple[bool, Any]:
    """Whether this is trio, and the event loop: trio's token, or asyncio's loop."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return True, trio.lowlevel.current_trio_token()
    return False, sys.modules["asyncio"].get_running_loop()


_TASKS: set[Any] = set()

#: Runs whose consumer has left, or has got the last event, until they have given their thread back.
_LEAVING: WeakSet[_RunTask[Any]] = WeakSet()

#: Seconds that the next run on a thread waits for one that its consumer has left.
PATIENCE = 10.0


async def wait_for_ending(thread_id: str) -> None:
    """Wait until the runs of this event loop that end, or were left, have given the thread back, within bounds."""
    if not _LEAVING:
        return
    home = _home()[1]
    with anyio.move_on_after(PATIENCE):
        for task in [d for d in _LEAVING if d.thread_id == thread_id and d.home is home]:
            await task.finished.wait()


class _Events(AsyncIterator[Event]):
    """What ``async for`` holds of a run. It goes when the loop is left, even where the run itself is kept."""

    __slots__ = ("_leave", "_run")

    def __init__(self, run: Run[Any], leave: Callable[[], None]) -> None:
        self._run, self._leave = run, leave

    def __anext__(self) -> Coroutine[Any, Any, Event]:
        return self._run.__anext__()

    def __del__(self) -> None:
        self._leave()


def _origin() -> tuple[str, str, int]:
    """Which method of an agent makes a run, and the file and line that call it."""
    frame, method = sys._getframe(2), ""  # noqa: SLF001 - `inspect` is heavy, and gives the same frame
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("locus."):
        frame, method = frame.f_back, frame.f_code.co_name
    return method, frame.f_code.co_filename, frame.f_lineno


class Run(Coroutine[Any, Any, AgentResult[Out]], Generic[Out]):
    """One run of an agent; made by ``agent.run`` and ``agent.resume``.

    - ``result = await run`` or ``asyncio.create_task(run)``: the result;
    - ``async for event in run``: every event, live; then ``run.result``;
    - ``async with run: async for event in run``: the same in a task group of the caller's.

    Cancelling the awaiting task, leaving the iteration or dropping the object cancels the run; its thread can
    be resumed. Each object serves once: `RunAlreadyUsed`.
    """

    __slots__ = (
        "__weakref__",
        "_coroutine",
        "_entered",
        "_kinds",
        "_made",
        "_main",
        "_result",
        "_task",
        "_thread_id",
        "_used",
        "cancel",
    )

    def __init__(self, main: _Main[Out], cancel: Callable[..., None], thread_id: str = "") -> None:
        self._main, self._thread_id = main, thread_id
        self._kinds: tuple[type[Event], ...] = ()
        self._used = ""
        self._made = _origin()
        self._coroutine: Coroutine[Any, Any, AgentResult[Out]] | None = None
        self._task: _RunTask[Out] | None = None
        self._entered: TaskGroup | None = None
        self._result: AgentResult[Out] | None = None
        #: ``cancel(reason="")``: end the run at its next safe point, from any thread.
        self.cancel = cancel

    def _use(self, how: str) -> None:
        if self._used:
            ended = self._result is not None or (self._task is not None and self._task.result is not None)
            have = "; run.result is what came of it" if ended else ""
            raise RunAlreadyUsed(f"this run was {self._used} already{have}; call agent.run(...) again for another")
        self._used = how

    def map(self, convert: Callable[[AgentResult[Out]], AgentResult[Any]]) -> Run[Any]:
        """The same run with another result; this object is used then.

        Args:
            convert: what the result is made into.
        """
        self._use("mapped")

        async def main(sink: Channel | None) -> AgentResult[Any]:
            return convert(await self._main(sink))

        made: Run[Any] = Run(main, self.cancel, self._thread_id)
        made._made, made._kinds = self._made, self._kinds
        return made

    def only(self, *kinds: type[Event]) -> Self:
        """The same run, which hands its consumer events of these classes only; unheard ones are not made."""
        self._kinds = kinds
        return self

    @property
    def result(self) -> AgentResult[Out]:
        """The result, once the run has ended.

        Raises:
            RunNotFinished: it has not.
        """
        if self._task is not None and self._task.result is not None:
            return self._task.result
        if self._result is None:
            raise RunNotFinished("the run has not ended; await it, or iterate it to its end")
        return self._result

    # -- awaited ----------------------------------------------------------------------------------

    async def _inline(self) -> AgentResult[Out]:
        self._result = await self._main(None)
        return self._result

    def __await__(self) -> Generator[Any, Any, AgentResult[Out]]:
        self._use("awaited")
        return self._inline().__await__()

    def send(self, value: Any) -> Any:
        """Drive the coroutine; for event loops."""
        if self._coroutine is None:
            self._use("awaited")
            self._coroutine = self._inline()
        return self._coroutine.send(value)

    def throw(
        self,
        typ: Any,
        val: Any = None,
        tb: TracebackType | None = None,
    ) -> Any:
        """Raise into the coroutine; for event loops."""
        error = typ if isinstance(typ, BaseException) else val if isinstance(val, BaseException) else typ()
        if tb is not None:
            error = error.with_traceback(tb)
        if self._coroutine is None:
            self._use("awaited")
            self._coroutine = self._inline()
        return self._coroutine.throw(error)

    def close(self) -> None:
        """Close the coroutine; for event loops."""
        self._used = self._used or "closed"
        if self._coroutine is not None:
            self._coroutine.close()

    # -- iterated ---------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._entered is not None:
            return self  # leaving the block ends it, leaving a loop in the block does not
        self._use("iterated")
        return _Events(self, self._leave)

    async def __anext__(self) -> Event:
        task = self._task
        if task is None:
            if self._used != "iterated":  # by anext() alone
                self._use("iterated")
            task = self._task = _RunTask(self._main, self._thread_id, self._kinds)
            task.spawn()
        waiting = task.channel.items
        if waiting:  # most chunks: they come in bunches
            return waiting.popleft()
        try:
            event = await task.channel.receive()
            if event is not None:
                return event
            await task.finished.wait()
        except BaseException:
            # The consumer was cancelled: the run ends with it, and takes note of that before it is left alone.
            task.scope.cancel()
            with anyio.move_on_after(10, shield=True):
                await task.finished.wait()
            raise
        task.reraise()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop iterating: cancel the run and wait until it has taken note."""
        if self._task is not None and not self._task.finished.is_set():
            self._task.scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._task.finished.wait()

    # -- entered ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Run[Out]:
        self._use("entered")
        group = anyio.create_task_group()
        self._entered = await group.__aenter__()
        self._task = _RunTask(self._main, self._thread_id, self._kinds)
        group.start_soon(self._task)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
        assert self._entered is not None
        # The block does not see the group: an error of the block leaves it as it is, in no exception group.
        await self._entered.__aexit__(None, None, None)
        self._entered = None
        if kind is None and self._task is not None:
            self._task.reraise()

    def _leave(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def __del__(self) -> None:
        if getattr(self, "_used", "?") == "" and not sys.is_finalizing():
            method, filename, line = self._made
            warnings.warn_explicit(
                f"Agent.{method}() was never awaited, so nothing was run; write `await agent.{method}(...)`, or "
                f"`agent.{method}_sync(...)` where no event loop runs",
                RuntimeWarning,
                filename,
                line,
            )
        task = getattr(self, "_task", None)
        if task is not None and getattr(self, "_entered", None) is None:
            task.cancel()
