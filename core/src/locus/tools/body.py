"""A tool's body: what it sees of the run, how long it may take, and what it means that an exception left it."""

from __future__ import annotations

import time
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import anyio
from attrs import define, field

from locus.core.directives import Interrupt
from locus.core.errors import OutcomeUnknown
from locus.core.events import ToolProgressEvent
from locus.core.step_id import CHILD, STEP
from locus.journal.effects import CutScope
from locus.tools.call import BodyEntry, PendingCall
from locus.tools.cancellation import is_failure
from locus.tools.context import ToolContext
from locus.tools.definition import ArgumentError, Bound, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from locus.core.directives import Option
    from locus.core.messages import ToolCall, Usage
    from locus.core.step_id import StepId
    from locus.tools.call_run import CallRun
    from locus.tools.outcome import CallOutcome


async def enter_body(
    tool: Tool[..., Any],
    bound: Bound,
    context: ToolContext[Any] | None,
    *,
    seconds: float | None = None,
    entry: BodyEntry | None = None,
) -> Any:
    """Run the body once; a synchronous one in a worker thread.

    Args:
        tool: the tool.
        bound: its arguments.
        context: for the tool's context parameter, where it has one.
        seconds: how long the body may take; None = any time.
        entry: told when the body is entered and left.

    Raises:
        TimeoutError: the body took longer. The message says what became of it: a synchronous body cannot be stopped,
            and an asynchronous one may have finished in spite of its cancellation.
        BaseException: what the body raised.
    """
    entry = BodyEntry() if entry is None else entry
    with anyio.move_on_after(seconds) as scope:
        if tool.is_async:
            entry.is_entered = True
            value = await bound.call(context)
        else:
            value = await call_in_thread(partial(bound.call, context), entry)
    if not scope.cancel_called:
        return value
    within = f"within {seconds:.3g} s"
    if not scope.cancelled_caught:
        raise TimeoutError(f"the tool did finish, but not {within}; its result was not used")
    if not entry.is_entered:
        raise TimeoutError(f"the tool was not started {within}: all worker threads were busy")
    if tool.is_async or entry.is_left:
        raise TimeoutError(f"the tool did not finish {within} and was stopped")
    raise TimeoutError(
        f"the tool did not finish {within} and was given up; it may still finish, so its outcome is unknown: find out "
        "before calling it again"
    )


async def call_in_thread(function: Callable[[], Any], entry: BodyEntry | None = None) -> Any:
    """What a synchronous function returns, called in a worker thread; a coroutine that it returns is awaited.

    Such a coroutine comes from an async function under a plain decorator. Where the caller is cancelled, the thread
    goes on by itself, and a coroutine that comes out of it then is closed, since it is never awaited. A function that
    no thread has begun by then is not called.
    """
    entry = BodyEntry() if entry is None else entry
    returned: list[Any] = []
    is_abandoned = False

    def call() -> None:
        entry.is_entered = True  # before the look at the mark: one of the two sides sees what the other has done
        if is_abandoned:
            return
        try:
            returned.append(function())
        finally:
            entry.is_left = True
        if is_abandoned:
            _close(returned)

    try:
        await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        is_abandoned = True
        _close(returned)  # as well as in the thread: one of the two sees the other's mark
        raise
    return await returned[0] if hasattr(type(returned[0]), "__await__") else returned[0]


def _close(returned: list[Any]) -> None:
    for value in returned:
        if isinstance(value, CoroutineType):
            value.close()


def time_limit(own: float | None, deadline: float | None) -> float | None:
    """Seconds that the body may take: its own limit, and what is left until the deadline of the run; None = any."""
    if deadline is None:
        return own
    left = max(0.0, deadline - anyio.current_time())
    return left if own is None else min(left, own)


def find_failure(error: BaseException) -> BaseException | None:
    """What failed in a body that an error left; None where nothing did.

    Of what a body's own task groups raise while they are cancelled it is the rest: the cancellation comes again by
    itself.
    """
    if isinstance(error, BaseExceptionGroup):
        _, others = error.split(anyio.get_cancelled_exc_class())
        return others if others is not None and is_failure(others) else None
    return error if is_failure(error) else None


def find_question(error: BaseException) -> Interrupt | None:
    """The question, also where it left the body through a task group of its own."""
    while isinstance(error, BaseExceptionGroup):
        questions, others = error.split(Interrupt)
        if questions is None or not (others is None or is_failure(others)):
            return None
        error = questions.exceptions[0]
    return error if isinstance(error, Interrupt) else None


async def run_body(c: PendingCall, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
    """Enter the body: whatever it returns or raises becomes an outcome."""
    tool, bound = c.tool, c.bound
    assert tool is not None
    assert bound is not None
    if call is not c.call:  # a wrapper changed the arguments
        rebound = bound.rebind(call.arguments)
        if isinstance(rebound, ArgumentError):
            return c.refusal(f"ArgumentError: {rebound}")
        bound, c.ran_with = rebound, rebound.data
    context: _BodyContext | None = None
    if tool.parameters.injected is not None:
        context = _BodyContext(c, run, step_id, call.id, c.idempotency_key(run))
    limit = tool.timeout if tool.timeout is not None else run.call_limits.tool_seconds
    if run.deadline is not None:
        limit = time_limit(limit, run.deadline)
        if run.is_out_of_time() or limit == 0:
            return c.refusal(f"not run: {run.stop_reason if run.halted else 'TimeLimit'}")
    began = time.perf_counter()
    try:
        if limit is None and tool.is_async:
            c.is_entered = True
            value = await bound.call(context)
        else:
            value = await enter_body(tool, bound, context, seconds=limit, entry=c)
    except BaseException as e:  # whatever a body raises is its call's error
        duration_ms = (time.perf_counter() - began) * 1000
        asking = find_question(e)
        if asking is None:
            failed = find_failure(e)
            if failed is None:
                raise
            return fail_call(c, failed, run, duration_ms)
        c.question = str(c.answered)
        given = None if asking is c.raised_by_context else c.find_answer(run)
        if given is None:
            raise asking from None
        # The body raised the question itself and cannot receive an answer: the answer is its result.
        return c.result_of(given[1], duration_ms)
    return c.result_of(value, (time.perf_counter() - began) * 1000)


def fail_call(c: PendingCall, error: BaseException, run: CallRun, duration_ms: float) -> CallOutcome:
    """The error as the call's, unless this worker must not go on: then nothing came of the call yet."""
    if run.host.stop_error is not None:
        raise run.host.stop_error
    return c.unknown_outcome() if type(error) is OutcomeUnknown else c.failure(error, duration_ms)


@define(slots=True, eq=False)
class _BodyContext(ToolContext[Any]):
    """The run as one body sees it."""

    _c: PendingCall
    _run: CallRun
    _step_id: StepId
    call_id: str
    idempotency_key: str
    _steps: set[str] = field(factory=set)
    _children: int = 0

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def thread_id(self) -> str:
        return self._run.thread_id

    @property
    def deps(self) -> Any:
        return self._run.deps

    @property
    def deadline(self) -> float | None:
        return self._run.deadline

    def cut_scope(self) -> CutScope:
        return CutScope(self._run.caller_cancel)

    def interrupt(self, question: str, *, options: Sequence[str | Option] = ()) -> Any:
        self._c.question = str(self._c.answered)
        given = self._c.find_answer(self._run)
        if given is not None:
            self._c.answered += 1
            return given[1]
        self._c.raised_by_context = Interrupt(question, tuple(options))
        raise self._c.raised_by_context

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], *, effect: str = "once") -> Any:
        if name in self._steps:
            raise ValueError(f"the step {name!r} ran already in this call; give each step its own name")
        self._steps.add(name)
        step_id = self._step_id.inner(STEP, name=name)
        return await self._run.host.step(step_id, fn, effect)  # type: ignore[arg-type]  # the host checks it

    async def run_child(
        self, agent: Any, prompt: Any, *, budget: Any = None, without_guards: Collection[str] = ()
    ) -> Any:
        step_id, account = self._step_id.inner(CHILD, self._children), self._c.account
        self._children += 1
        if account is not None:
            account = account.open_below(step_id)
        # The body may put what it has read into the prompt.
        given = self._c.state.label | self._c.label
        result = await self._run.run_child(agent, prompt, budget, step_id, account, None, without_guards, given)
        while result.interrupts:
            # The child's questions surface here as this body's own; with their answers the child goes on.
            answers = {q.interrupt_id: self.interrupt(q.question, options=q.options) for q in result.interrupts}
            result = await self._run.run_child(agent, prompt, budget, step_id, account, answers, without_guards, given)
        spent: Usage = result.usage
        self._c.read |= result.state.label
        self._c.usage = spent if self._c.usage is None else self._c.usage + spent
        return result

    async def emit_progress(
        self, progress: float | None = None, *, total: float | None = None, message: str = ""
    ) -> None:
        if self._run.has_listener(ToolProgressEvent):
            await self._run.emit(
                ToolProgressEvent(
                    tool_name=self._c.call.name,
                    call_id=self.call_id,
                    progress=progress,
                    total=total,
                    message=await self._run.filter_progress(message, self._c.call) if message else message,
                )
            )
