"""The body of a step: what Execute enters for a tool call, and a plugin's node for what it runs as steps of its own.

A step is recorded, was under way when a process died, or has not begun. Only what may be entered is entered, after its
intent is on record (`enter_step`). What its body sees of the run is a `StepContext`; a body that asks a person is left
(`ask_person`), and entered again from its top when there is an answer.
"""

from __future__ import annotations

from collections import deque
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import anyio
from attrs import define, field

from locus.core.directives import Interrupt
from locus.core.journal import Asked
from locus.core.labels import CLEAN, Label
from locus.core.step_id import CHILD, STEP
from locus.journal.effects import CutScope
from locus.tools.cancellation import find_exit, is_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Sequence

    from anyio.abc import TaskGroup

    from locus.core.directives import Directive, Option
    from locus.core.events import Event
    from locus.core.journal import Policy, Step
    from locus.core.messages import Usage
    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.models.protocol import Model, ModelRequest, ModelResponse
    from locus.tools.account import Account
    from locus.tools.call_run import StepRun
    from locus.tools.context import Stash, ToolContext
    from locus.tools.definition import Bound, Tool

    _Body = Callable[[], Coroutine[Any, Any, None]]


@define(slots=True)
class BodyEntry:
    """Whether a body was entered, and whether its function was left."""

    is_entered: bool = field(default=False, kw_only=True)
    is_left: bool = field(default=False, kw_only=True)


@define(slots=True, kw_only=True)
class StepEntry(BodyEntry):
    """A step on its way, whose body may ask a person, make steps of its own and run children."""

    step_id: StepId
    # Of what the step is asked to do; it is recorded with it.
    digest: str = ""
    attempt: int = 0
    waiting: bool = False
    # Which question is open: "decide", "unknown", the number of the body's question, or the name of a child's.
    question: str = "unknown"
    # How many of the body's questions have been answered in this entry of it.
    answered: int = 0
    # What children of the body may spend, all together; None where nothing limits them.
    account: Account | None = None
    # What children that the body ran have spent.
    usage: Usage | None = None
    # Of what children of the body, and models that it asked, have seen.
    read: Label = CLEAN
    # What ctx.interrupt raised, to tell it from an Interrupt that the body made itself.
    raised_by_context: Interrupt | None = None
    # Which question that is.
    raised_as: str = ""

    @property
    def at(self) -> StepId:
        """The step of the attempt under way."""
        return self.step_id if not self.attempt else self.step_id.at_attempt(self.attempt)

    @property
    def asks_about(self) -> str:
        """What an open question of this step is about."""
        return self.digest

    def find_answer(self, run: StepRun) -> tuple[Asked, Any] | None:
        """The question of this step that is open, as a person was asked it, and the answer; None without one."""
        step_id = self.at
        wanted = f"{step_id}?{self.question}", self.asks_about
        answers = run.host.answers(step_id)
        return next(((asked, a) for asked, a in answers if (asked.interrupt_id, asked.digest) == wanted), None)


async def enter_step(
    entry: StepEntry,
    run: StepRun,
    body: Callable[[], Awaitable[Any]],
    policy: Policy,
    found: Step | None = None,
    *,
    key: str = "",
) -> Any:
    """Enter the body of a step, its intent on record before; what it returns is for the caller to settle.

    Args:
        entry: the step.
        run: the run.
        body: what the step does.
        policy: what may happen to it after a crash.
        found: its intent, where one is on record that allows another entry.
        key: what is recorded with a new intent, the hash in the key that the body is given.
    """
    if found is not None:
        policy = "keyed"  # the intent on record allows it
    host, at, digest = run.host, entry.at, entry.digest
    if found is None and policy != "pure":
        await host.intend(at, policy, digest, key=key)
    else:
        await host.flush()
    return await host.effects.run(at, body, policy, digest)


async def ask_person(
    entry: StepEntry, asking: Interrupt, run: StepRun, *, tool_name: str = "", call_id: str = ""
) -> None:
    """Record the question that a step asks; it waits for the answer."""
    entry.waiting = True
    await run.host.ask(
        Asked(
            run_id=run.run_id,
            interrupt_id=f"{entry.at}?{entry.question}",
            step_id=entry.at,
            question=asking.question,
            options=asking.options,
            tool_name=tool_name,
            call_id=call_id,
            digest=entry.asks_about,
        )
    )


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
        except GeneratorExit as e:
            if type(e) is not GeneratorExit:
                raise
            # A thread is never closed. Outside of it this would close the coroutine that waits for the thread.
            raise RuntimeError("function raised GeneratorExit") from e
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


class _InContext:
    """Awaits a coroutine in a copy of the context, as a task of its own would.

    Args:
        coroutine: awaited once.
        on_wait: called when it is about to wait for the first time.
    """

    __slots__ = ("_coroutine", "_on_wait", "has_waited")

    def __init__(self, coroutine: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> None:
        self._coroutine, self._on_wait = coroutine, on_wait
        self.has_waited = False

    def __await__(self) -> Generator[Any, Any, None]:
        resume, given = self._coroutine.send, None
        enter = copy_context().run
        while True:
            try:
                waits_for = enter(resume, given)
            except StopIteration:
                return
            finally:
                given = None  # an exception would hold this frame, and this frame the exception
            if not self.has_waited:
                self.has_waited = True
                self._on_wait()
            try:
                resume, given = self._coroutine.send, (yield waits_for)
            except GeneratorExit:  # it is being closed, and must not wait again
                enter(self._coroutine.close)
                raise
            except BaseException as e:  # noqa: BLE001  raised where the coroutine waits
                resume, given = self._coroutine.throw, e


class _StepTasks:
    """Tasks that run bodies one after another, until one of them waits for something: then others go on behind it.

    A task costs more than all that is recorded of a body, and bodies that only compute never wait. No body can tell
    which task it is in: it has a context of its own, and while none waits nothing else can reach the task. A task ends
    with a body that has waited, as a cancellation that was meant for that body may still be on its way.
    """

    __slots__ = ("_at_once", "_group", "_idle", "_todo", "_under_way", "exits")

    def __init__(self, group: TaskGroup, bodies: Iterable[tuple[_Body, bool]], at_once: int | None) -> None:
        self._group, self._todo = group, deque(bodies)
        self._at_once = len(self._todo) if at_once is None else at_once
        # How many bodies have been entered and not left, and how many tasks have not begun.
        self._under_way = self._idle = 0
        self.exits: list[BaseException] = []

    def begin(self, at_most: int | None = None) -> None:
        """Begin as many tasks as there is room for."""
        if self._todo and not self.exits:
            room = max(self._at_once - self._under_way, not self._todo[0][1])
            for _ in range(min(room, len(self._todo)) - self._idle if at_most is None else at_most):
                self._idle += 1
                self._group.start_soon(self._work, name="locus step")

    async def _work(self) -> None:
        self._idle -= 1
        while self._todo and not self.exits:
            body, has_body = self._todo[0]
            if has_body and self._under_way >= self._at_once:
                return
            self._todo.popleft()
            self._under_way += has_body
            apart = _InContext(body(), self.begin)
            try:
                await apart
            except BaseException as e:
                if find_exit(e) is None:
                    raise
                # Out of a task, it would end the event loop before anybody has taken note.
                self.exits.append(e)
                self._group.cancel_scope.cancel()
            self._under_way -= has_body
            if apart.has_waited:
                self.begin()
                return


async def run_together(
    run: StepRun,
    bodies: Iterable[tuple[_Body, bool]],
    at_once: int | None = None,
) -> None:
    """Run steps side by side, begun in order as slots come free.

    Args:
        run: the run.
        bodies: what runs each, which keeps failures to itself, and whether there is a body behind it: without one it
            needs neither a task nor a slot, and there may be any number of these.
        at_once: how many may be under way; None = all.

    Raises:
        JournalError: this worker must not go on.
        BaseException: what is to end more than the step that raised it.
    """
    await run.host.flush()
    tasks = None
    try:
        async with anyio.create_task_group() as group:
            tasks = _StepTasks(group, bodies, at_once)
            tasks.begin(1)
    except ExceptionGroup:
        # Nothing but the journal fails here, and it fails for all of them alike.
        if run.host.stop_error is None:
            raise
    if run.host.stop_error is not None:
        raise run.host.stop_error  # out of the handler: its own cause is what there is to tell
    if tasks is not None and tasks.exits:
        raise tasks.exits[0]


class StepContext:
    """The run as the body of one step sees it.

    Args:
        entry: the step.
        run: the run.
        idempotency_key: the same on every attempt at the step, across crashes too.
    """

    __slots__ = ("_children", "_entry", "_run", "_steps", "idempotency_key")

    def __init__(self, entry: StepEntry, run: StepRun, idempotency_key: str) -> None:
        self._entry, self._run, self.idempotency_key = entry, run, idempotency_key
        self._steps: set[str] = set()
        self._children = 0

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run.run_id

    @property
    def thread_id(self) -> str:
        """The thread the run belongs to."""
        return self._run.thread_id

    @property
    def deps(self) -> Any:
        """What the caller passed as ``deps=``; never journalled."""
        return self._run.deps

    @property
    def deadline(self) -> float | None:
        """Seconds on `anyio.current_time` by which the body must end, or None."""
        return self._run.deadline

    @property
    def state(self) -> AgentState:
        """The state of the run; it cannot be changed."""
        return self._run.state

    @property
    def stash(self) -> Stash:
        """Where a plugin keeps what belongs to this run."""
        return self._run.stash

    @property
    def label(self) -> Label:
        """Of what the body may put into the prompt of a child."""
        return self.state.label | self._entry.read

    def cut_scope(self) -> CutScope:
        """A block that is left at once when the caller cancels the run; the body goes on behind it."""
        return CutScope(self._run.caller_cancel)

    def inner_step(self, node: str, ordinal: int = 0, name: str = "") -> StepId:
        """The id of a step inside the body."""
        return self._entry.at.inner(node, ordinal, name)

    def interrupt(self, question: str, *, options: Sequence[str | Option] = ()) -> Any:
        """Ask a person; the answer, once the body is entered again."""
        answer = self._ask(str(self._entry.answered), question, options)
        self._entry.answered += 1
        return answer

    def _ask(self, name: str, question: str, options: Sequence[str | Option]) -> Any:
        entry = self._entry
        entry.question = name
        given = entry.find_answer(self._run)
        if given is not None:
            return given[1]
        entry.raised_by_context, entry.raised_as = Interrupt(question, options), name
        raise entry.raised_by_context

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], *, effect: str = "once") -> Any:
        """Run an effect once although the body may run again."""
        if name in self._steps:
            raise ValueError(f"the step {name!r} ran already in this call; give each step its own name")
        self._steps.add(name)
        return await self._run.host.step(self.inner_step(STEP, name=name), fn, effect)  # type: ignore[arg-type]  # the host checks it

    async def run_child(
        self, agent: Any, prompt: Any, *, budget: Any = None, without_guards: Collection[str] = ()
    ) -> Any:
        """Run another agent as a step of this run; gives its `AgentResult`."""
        entry, run = self._entry, self._run
        step_id, account = self.inner_step(CHILD, self._children), entry.account
        self._children += 1
        if account is not None:
            account = account.open_below(step_id)
        given = self.label
        result = await run.run_child(agent, prompt, budget, step_id, account, None, without_guards, given)
        while result.interrupts:
            # The child's questions surface here under names of their own; with their answers the child goes on. By a
            # number, the answer to an earlier question of the child would be taken for that to a later one.
            answers = {
                q.interrupt_id: self._ask(f"{step_id}/{q.interrupt_id}", q.question, q.options)
                for q in result.interrupts
            }
            result = await run.run_child(agent, prompt, budget, step_id, account, answers, without_guards, given)
        spent: Usage = result.usage
        entry.read |= result.state.label
        entry.usage = spent if entry.usage is None else entry.usage + spent
        return result

    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str
    ) -> ModelResponse:
        """Ask a model as a step of this body."""
        response = await self._run.call_model(request, model=model, purpose=purpose, parent=self._entry.at)
        if response.label is not None:
            self._entry.read |= response.label
        return response

    async def emit(self, event: Event) -> Directive | None:
        """Send an event to all listeners."""
        return await self._run.emit(event)
