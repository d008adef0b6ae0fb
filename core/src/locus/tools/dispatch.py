"""Execute's engine: decide, deduplicate, run and record the tool calls of one turn.

Each call goes through one pipeline and ends in one `CallOutcome`; nothing a model emits and nothing a body raises
leaves it, except the runtime's own cancellation. The outcome of each call is recorded by itself, so that a crash in
the middle of a batch repeats none that had finished.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from attrs import define, evolve, field

from locus.core.directives import Allow, Cancel, Interrupt, Reject, Suspended
from locus.core.errors import OutcomeUnknown, RetryableToolError
from locus.core.events import (
    ToolCacheHitEvent,
    ToolCompleteEvent,
    ToolProgressEvent,
    ToolStartEvent,
)
from locus.core.executions import ToolExecution
from locus.core.frozen import maker
from locus.core.journal import Answered, Asked, Intent, Outcome
from locus.core.step_id import CHILD, EXECUTE, STEP, StepId
from locus.schema.canonical import call_key
from locus.tools.body import enter_body, find_question, split_failures, time_limit
from locus.tools.cancellation import is_foreign_cancellation
from locus.tools.context import ToolContext
from locus.tools.definition import ArgumentError, Bound, Tool
from locus.tools.outcome import UNKNOWN, CallOutcome, find_in_thread, place_media, repeat_content
from locus.tools.result import error_text, result_content

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from locus.core.messages import Block, ToolCall, Usage
    from locus.core.state import AgentState
    from locus.journal.writes import When
    from locus.tools.call_run import CallRun

__all__ = ["execute_calls"]

#: How often a hook's Retry may run the repeatable calls of one turn again.
MAX_TOOL_RETRIES = 3


_execution, _outcome, _step_id = maker(ToolExecution), maker(CallOutcome), maker(StepId)


@define(slots=True)
class _Call:
    """One call on its way through the pipeline."""

    call: ToolCall
    step_id: StepId
    state: AgentState
    # Of the arguments as the model gave them: the same, whatever has become of the tool since.
    digest: str
    key: str
    tool: Tool[..., Any] | None = None
    bound: Bound | None = None
    # The key that was recorded with its intent, before a crash.
    intended_key: str = ""
    outcome: CallOutcome | None = None
    # Why the body cannot run, whatever a hook asks for.
    invalid: CallOutcome | None = None
    waiting: bool = False
    # Nothing else is under way beside it.
    alone: bool = False
    attempt: int = 0
    # Which question of this call is open: "decide", "unknown", or the number of the body's question.
    question: str = "unknown"
    # How many of the body's questions have been answered in this entry of it.
    answered: int = 0
    # What children that the body ran have spent.
    usage: Usage | None = None
    # What ctx.interrupt raised, to tell it from an Interrupt that the body made itself.
    raised_by_context: Interrupt | None = None

    @property
    def at(self) -> StepId:
        """The step of the attempt under way."""
        return self.step_id if not self.attempt else self.step_id.at_attempt(self.attempt)

    def refusal(self, error: str) -> CallOutcome:
        return self._outcome_of(None, f"Error: {error}", error, 0.0, started=False)

    def _outcome_of(
        self,
        result: str | None,
        content: str | tuple[Block, ...],
        error: str | None,
        duration_ms: float,
        *,
        started: bool = True,
        retryable: bool = False,
    ) -> CallOutcome:
        execution = _execution(
            tool_name=self.call.name,
            arguments=self.call.arguments,
            result=result,
            error=error,
            duration_ms=duration_ms,
            key=self.key,
            call_id=self.call.id,
            iteration=self.state.iteration,
            started=started,
            retryable=retryable,
        )
        return _outcome(execution, content, self.usage)

    def result_of(self, value: Any, duration_ms: float) -> CallOutcome:
        content = result_content(value, self.tool)
        if isinstance(content, str):
            return self._outcome_of(content, content, None, duration_ms)
        text = "".join(getattr(b, "text", "") for b in content)
        return self.place_media(self._outcome_of(text, content, None, duration_ms))

    def place_media(self, outcome: CallOutcome) -> CallOutcome:
        """The outcome with the place of its blocks, which later hits are given again from the conversation."""
        return place_media(outcome, self.state, self.step_id.ordinal)

    def failure(self, error: BaseException, duration_ms: float) -> CallOutcome:
        text = error_text(error)
        retryable = isinstance(error, RetryableToolError)
        return self._outcome_of(None, f"Error: {text}", text, duration_ms, retryable=retryable)

    def unknown_outcome(self) -> CallOutcome:
        return self._outcome_of(None, f"Error: {UNKNOWN}", UNKNOWN, 0.0)

    def idempotency_key(self, run: CallRun) -> str:
        tool = self.tool
        if tool is not None and tool.idempotent:
            return f"{run.thread_id if tool.idempotent == 'thread' else run.run_id}/{self.intended_key or self.key}"
        return f"{run.run_id}/{self.step_id.iteration}/{self.step_id.ordinal}"


async def execute_calls(state: AgentState, calls: Sequence[ToolCall], run: CallRun) -> list[CallOutcome | None]:
    """Run the calls of one turn.

    Args:
        state: the state whose last assistant message asks for them.
        calls: in the order of the message.
        run: the run.

    Returns:
        One outcome a call, in order; None for a call that was not started because the run is ending.

    Raises:
        Suspended: at least one call asks a person. The outcomes of the others are recorded.
    """
    work = [_prepare(i, call, state, run) for i, call in enumerate(calls)]
    if len(work) == 1:
        work[0].alone = True
        await _run_one(work[0], run)
    else:
        for c in work:
            run.host.find_step(c.step_id, c.digest)  # raises for another program's steps, before anything is started
        await _run_all(work, run)
    for _ in range(MAX_TOOL_RETRIES):
        asked = run.take_retry()
        if not asked and not run.host.retried_steps:
            break
        again = [c for c in work if c.at in run.host.retried_steps or (asked and _is_repeatable(c))]
        if not again:
            break
        for c in again:
            if c.at not in run.host.retried_steps:
                run.host.record_retry(c.at, run.retry_reason)
            c.outcome, c.attempt, c.answered = c.invalid, c.attempt + 1, 0
        await _run_all(again, run)
    for c in work:
        if c.waiting:
            raise Suspended
    return [c.outcome for c in work]


def _is_repeatable(c: _Call) -> bool:
    done = c.outcome
    if done is None or done.execution.error is None or c.tool is None or not done.execution.started:
        return False
    # What came of it is unknown, to a hook too, whatever the tool declares by now.
    return done.execution.retryable or (c.tool.effect == "pure" and done.execution.error != UNKNOWN)


def _prepare(ordinal: int, call: ToolCall, state: AgentState, run: CallRun) -> _Call:
    digest = call_key(call.name, call.arguments if call.malformed is None else {"": call.malformed})
    c = _Call(call, _step_id(state.iteration, EXECUTE, ordinal), state, digest, digest)
    tool = c.tool = run.registry.get(call.name)
    if tool is None:
        c.outcome = c.refusal(run.registry.unknown(call.name))
    elif call.malformed is not None:
        c.outcome = c.refusal(
            f"ArgumentError: the arguments of {call.name} are not a JSON object: {call.malformed[:200]!r}; "
            "call it again with one"
        )
    else:
        bound = tool.bind(call.arguments)
        if isinstance(bound, ArgumentError):
            c.outcome = c.refusal(f"ArgumentError: {bound}")
        else:
            c.bound, c.key = bound, bound.key
    c.invalid = c.outcome
    return c


async def _run_all(work: Sequence[_Call], run: CallRun) -> None:
    """Run calls that may be duplicates of each other: the first of a kind leads, the others follow it."""
    todo = list(work)
    while todo:
        leaders: list[_Call] = []
        followers: list[_Call] = []
        seen: set[str] = set()
        for c in todo:
            idempotent = c.tool is not None and c.tool.idempotent and c.outcome is None
            if idempotent and c.key in seen:
                followers.append(c)
            else:
                leaders.append(c)
                if idempotent:
                    seen.add(c.key)
        if run.sequential or len(leaders) == 1:
            for c in leaders:
                c.alone = True
                await _run_one(c, run)
        else:
            await _run_together(leaders, run)
        todo = []
        for c in followers:
            first = next(lead for lead in leaders if lead.key == c.key)
            if first.waiting:
                c.waiting = True
            elif first.outcome is not None and _is_final(first.outcome.execution):
                await _reuse(c, first.outcome.execution, run, first.outcome.content)
            else:
                todo.append(c)


async def _run_together(work: Sequence[_Call], run: CallRun) -> None:
    await run.host.flush()
    for c in work:
        c.alone = False
    try:
        async with anyio.create_task_group() as group:
            for c in work:
                group.start_soon(_run_one, c, run)
    except ExceptionGroup:
        # Nothing but the journal fails here, and it fails for all of them alike.
        if run.host.stop_error is None:
            raise
    if run.host.stop_error is not None:
        raise run.host.stop_error  # out of the handler: its own cause is what there is to tell


def _is_final(execution: ToolExecution) -> bool:
    return execution.started and not execution.retryable


async def _reuse(
    c: _Call, earlier: ToolExecution, run: CallRun, content: str | tuple[Block, ...] | None = None
) -> None:
    execution = evolve(
        earlier,
        arguments=c.call.arguments,
        call_id=c.call.id,
        iteration=c.state.iteration,
        duration_ms=0.0,
        cache_hit=True,
    )
    if content is None:
        content = repeat_content(earlier, c.state)
    c.outcome = CallOutcome(execution, content)
    if run.has_listener(ToolCacheHitEvent):
        await run.emit(
            ToolCacheHitEvent(
                tool_name=c.call.name,
                arguments=c.call.arguments,
                call_id=c.call.id,
                result=earlier.result,
                error=earlier.error,
            )
        )


async def _run_one(c: _Call, run: CallRun) -> None:
    """One call from its decision to its record; sets ``c.outcome`` or ``c.waiting``, or leaves both unset."""
    step_id, host = c.at, run.host
    found = host.find_step(step_id, c.digest)
    if type(found) is Outcome:
        c.outcome = found.value
        await _emit_complete(c, run, replayed=True)
        return
    if host.questions and host.is_waiting(step_id):
        c.waiting = True
        return
    is_unknown = (found is not None or bool(host.questions)) and _is_unknown(c, run, step_id, found)
    tool = c.tool
    if not is_unknown:
        if c.outcome is None and tool is not None and tool.idempotent:
            earlier = _find_earlier(c, run)
            if earlier is not None:
                await _reuse(c, earlier, run)
                return
        if run.halted:
            c.outcome = None
            return
    try:
        if is_unknown:
            _tell_unknown(c, run, step_id)
        elif (
            c.outcome is None
            and (not run.has_deciders or await _decide(c, run, step_id))
            and (not run.has_listener(ToolStartEvent) or await _announce(c, run))
        ):
            assert tool is not None
            policy = tool.effect
            if found is not None:
                policy = "keyed"  # the intent on record allows it
            if found is None and policy != "pure":
                await host.intend(step_id, policy, c.digest, key=c.key if tool.idempotent else "")
            else:
                await host.flush()
            body = partial(_run_wrapped if run.has_tool_wrappers else _run_body, c, run, step_id, c.call)
            c.outcome = await host.effects.run(step_id, body, policy, c.digest)
    except OutcomeUnknown:
        _tell_unknown(c, run, step_id)
    except Interrupt as asking:
        await _ask(c, asking, run, step_id)
        return
    if c.outcome is not None:
        is_heard = run.has_listener(ToolCompleteEvent)
        when: When = "next" if c.alone and not is_heard else "now"
        await host.settle(step_id, c.outcome, c.digest, when=when)
        if is_heard:
            await _emit_complete(c, run)


def _find_earlier(c: _Call, run: CallRun) -> ToolExecution | None:
    found = c.state.find_execution(c.key)
    if found is None and c.tool is not None and c.tool.idempotent == "thread":
        found = find_in_thread(c.state, c.call, c.key)
    return found


async def _decide(c: _Call, run: CallRun, step_id: StepId) -> bool:
    """Ask the hooks; True when the call may run. Sets the outcome of a rejected call."""
    decision = await run.decide(c.call)
    if type(decision) is Allow:
        return True
    if isinstance(decision, Interrupt):
        c.question = "decide"
        given = _find_answer(c, run, step_id)
        if given is None:
            raise decision
        if _approves(given.answer):
            return True
        c.outcome = c.refusal(f"Rejected: a person refused this call: {given.answer}")
    elif type(decision) is Reject:
        c.outcome = c.refusal(f"Rejected: {decision.reason or 'a policy refuses this call'}")
    else:
        run.cancel(getattr(decision, "reason", ""))
    return False


def _approves(answer: Any) -> bool:
    return answer is True or str(answer).strip().lower() in (
        "allow",
        "approve",
        "approved",
        "yes",
        "y",
        "true",
    )


def _is_unknown(c: _Call, run: CallRun, step_id: StepId, found: object) -> bool:
    """Whether the outcome of a call that was begun before a crash is unknown; it is not begun again then.

    What was recorded with the intent counts, not what the code says now: the effect may have been declared another
    one since, the tool removed, or a parameter renamed. A person who was asked about it has answered for it.
    """
    if type(found) is Intent:
        c.intended_key = found.key
        return found.policy != "keyed" or c.outcome is not None
    if found is not None or c.outcome is not None:
        return False
    return _find_answer(c, run, step_id) is not None


def _tell_unknown(c: _Call, run: CallRun, step_id: StepId) -> None:
    if c.tool is not None and c.tool.ask_on_unknown and c.outcome is None and not run.halted:
        c.question = "unknown"
        given = _find_answer(c, run, step_id)
        if given is None:
            raise Interrupt(f"{c.call.name}{dict(c.call.arguments)}: {UNKNOWN}. What came of it?")
        c.outcome = c.result_of(f"a person says: {given.answer}", 0.0)
    else:
        c.outcome = c.unknown_outcome()


async def _announce(c: _Call, run: CallRun) -> bool:
    """Tell that the body is about to run; False when a hook refuses the call or ends the run."""
    directive = await run.emit(ToolStartEvent(tool_name=c.call.name, arguments=c.call.arguments, call_id=c.call.id))
    if type(directive) is Reject:
        c.outcome = c.refusal(f"Rejected: {directive.reason or 'a hook refuses this call'}")
    return type(directive) is not Reject and type(directive) is not Cancel


async def _run_wrapped(c: _Call, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
    """The body inside the onion."""
    try:
        outcome = await run.wrap_tool_call(partial(_run_body, c, run, step_id))(call)
    except Exception as e:  # noqa: BLE001 - what a wrapper raises is the call's error
        return _fail(c, e, run, 0.0)
    if c.usage is not None and outcome.usage is not c.usage:  # the wrapper made an outcome of its own
        outcome = evolve(outcome, usage=c.usage)
    # A wrapper may have put blocks in the place of text.
    return outcome if isinstance(outcome.content, str) else c.place_media(outcome)


async def _run_body(c: _Call, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
    """Enter the body: whatever it returns or raises becomes an outcome."""
    tool, bound = c.tool, c.bound
    assert tool is not None
    assert bound is not None
    if call is not c.call:  # a wrapper changed the arguments
        rebound = tool.bind(call.arguments)
        if isinstance(rebound, ArgumentError):
            return c.refusal(f"ArgumentError: {rebound}")
        bound = rebound
    context: _BodyContext | None = None
    if tool.parameters.injected is not None:
        context = _BodyContext(c, run, step_id, call.id, c.idempotency_key(run))
    began = time.perf_counter()
    limit = tool.timeout if run.deadline is None else time_limit(tool, run.deadline)
    try:
        if limit is None and tool.is_async:
            value = await bound.call(context)
        elif limit is None:
            value = await enter_body(tool, bound, context)
        else:
            with anyio.move_on_after(limit) as scope:
                value = await enter_body(tool, bound, context)
            if scope.cancelled_caught:
                late = TimeoutError(f"the tool did not finish within {limit:.3g} s and was stopped")
                return c.failure(late, (time.perf_counter() - began) * 1000)
    except (Exception, SystemExit) as e:  # noqa: BLE001 - whatever a body raises is its call's error
        return _fail(c, e, run, (time.perf_counter() - began) * 1000)
    except (Interrupt, BaseExceptionGroup) as e:
        asking = find_question(e)
        if asking is None:
            failed = split_failures(e)
            if failed is None:
                raise
            return c.failure(failed, (time.perf_counter() - began) * 1000)
        c.question = str(c.answered)
        given = None if asking is c.raised_by_context else _find_answer(c, run, step_id)
        if given is None:
            raise asking from None
        # The body raised the question itself and cannot receive an answer: the answer is its result.
        return c.result_of(given.answer, (time.perf_counter() - began) * 1000)
    except BaseException as e:
        if not is_foreign_cancellation(e):
            raise
        return c.failure(e, (time.perf_counter() - began) * 1000)
    return c.result_of(value, (time.perf_counter() - began) * 1000)


def _fail(c: _Call, error: BaseException, run: CallRun, duration_ms: float) -> CallOutcome:
    """The error as the call's, unless this worker must not go on: then nothing came of the call yet."""
    if run.host.stop_error is not None:
        raise run.host.stop_error
    return c.failure(error, duration_ms)


def _find_answer(c: _Call, run: CallRun, step_id: StepId) -> Answered | None:
    answers = run.host.answers(step_id)
    if not answers:
        return None
    wanted = f"{step_id}?{c.question}"
    return next((a for a in answers if a.interrupt_id == wanted), None)


async def _ask(c: _Call, asking: Interrupt, run: CallRun, step_id: StepId) -> None:
    c.waiting = True
    await run.host.ask(
        Asked(
            run_id=run.run_id,
            interrupt_id=f"{step_id}?{c.question}",
            step_id=step_id,
            question=asking.question,
            options=asking.options,
            tool_name=c.call.name,
            call_id=c.call.id,
        )
    )


async def _emit_complete(c: _Call, run: CallRun, *, replayed: bool = False) -> None:
    if c.outcome is not None and run.has_listener(ToolCompleteEvent):
        execution = c.outcome.execution
        await run.emit(
            ToolCompleteEvent(
                tool_name=c.call.name,
                arguments=c.call.arguments,
                call_id=c.call.id,
                result=execution.result,
                error=execution.error,
                duration_ms=execution.duration_ms,
                replayed=replayed,
            )
        )


@define(slots=True, eq=False)
class _BodyContext(ToolContext[Any]):
    """The run as one body sees it."""

    _c: _Call
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

    def interrupt(self, question: str, *, options: Sequence[str] = ()) -> Any:
        self._c.question = str(self._c.answered)
        given = _find_answer(self._c, self._run, self._step_id)
        if given is not None:
            self._c.answered += 1
            return given.answer
        self._c.raised_by_context = Interrupt(question, tuple(options))
        raise self._c.raised_by_context

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], *, effect: str = "once") -> Any:
        if name in self._steps:
            raise ValueError(f"the step {name!r} ran already in this call; give each step its own name")
        self._steps.add(name)
        step_id = self._step_id.inner(STEP, name=name)
        return await self._run.host.step(step_id, fn, effect)  # type: ignore[arg-type]  # the host checks it

    async def run_child(self, agent: Any, prompt: Any, *, budget: Any = None) -> Any:
        step_id = self._step_id.inner(CHILD, self._children)
        self._children += 1
        result = await self._run.run_child(agent, prompt, budget, step_id)
        while result.interrupts:
            # The child's questions surface here as this body's own; with their answers the child goes on.
            answers = {q.interrupt_id: self.interrupt(q.question, options=q.options) for q in result.interrupts}
            result = await self._run.run_child(agent, prompt, budget, step_id, answers)
        spent: Usage = result.usage
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
