"""Execute's engine: decide, deduplicate, run and record the tool calls of one turn.

Each call goes through one pipeline and ends in one `CallOutcome`; nothing a model emits and nothing a body raises
leaves it, except the runtime's own cancellation. The outcome of each call is recorded by itself, so that a crash in
the middle of a batch repeats none that had finished.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.directives import APPROVAL, Allow, Cancel, Interrupt, Reject, Suspended
from locus.core.errors import ConfigError, OutcomeUnknown
from locus.core.events import ToolCacheHitEvent, ToolCompleteEvent, ToolProgressEvent, ToolStartEvent
from locus.core.journal import Intent, Outcome
from locus.core.labels import CLEAN
from locus.core.messages import TextBlock, text_of
from locus.schema.text import truncate
from locus.tools.call import PendingCall, prepare_call
from locus.tools.context import ToolContext
from locus.tools.definition import ArgumentError
from locus.tools.outcome import UNKNOWN, CallOutcome, find_in_thread, repeat_content
from locus.tools.result import result_text
from locus.tools.step import (
    StepContext,
    ask_person,
    enter_body,
    enter_step,
    find_failure,
    find_question,
    run_together,
    time_limit,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from locus.core.executions import ToolExecution
    from locus.core.labels import Label
    from locus.core.messages import Block, ToolCall
    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.journal.writes import When
    from locus.tools.call_run import CallRun

#: How often a hook's Retry may run the repeatable calls of one turn again.
MAX_TOOL_RETRIES = 3


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
    work = [prepare_call(i, call, state, run) for i, call in enumerate(calls)]
    if len(work) > 1 or run.bounds.tool_calls is not None:
        _refuse_excess(work, state, run)
    if run.is_limited:
        _reserve(work, run)
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
            c.is_entered = c.is_left = False
        await _run_all(again, run)
    for c in work:
        if c.waiting:
            raise Suspended
    return [c.outcome for c in work]


def _refuse_excess(work: Sequence[PendingCall], state: AgentState, run: CallRun) -> None:
    """Refuse what is beyond the calls that a turn, and that the run may make: the first ones are made."""
    per_turn, bound = run.call_limits.per_turn, run.bounds.tool_calls
    if per_turn is not None and len(work) > per_turn:
        for c in work[per_turn:]:
            c.refuse(
                f"not run: a turn may make {per_turn:,} tool calls, and this one asks for {len(work):,}; ask again for "
                "what is still needed"
            )
    if bound is not None:
        left = int(bound.limit) - state.started_calls
        for c in work:
            if c.outcome is None:
                left -= 1
                if left < 0:
                    c.refuse(f"not run: ToolCallLimit: {bound.limit:,.0f} calls are what the run may make")


def _reserve(work: Sequence[PendingCall], run: CallRun) -> None:
    """Give each call that may start a child its part of what is left, before the first body is entered."""
    may = [c for c in work if c.outcome is None and c.tool is not None and c.tool.parameters.injected is not None]
    if may:
        for c, part in zip(may, run.reserve([c.step_id.ordinal for c in may]), strict=True):
            c.account = part


def _is_repeatable(c: PendingCall) -> bool:
    done = c.outcome
    if done is None or done.execution.error is None or c.tool is None or not done.execution.started:
        return False
    # What came of it is unknown, to a hook too, whatever the tool declares by now.
    return done.execution.retryable or (c.tool.effect == "pure" and not done.execution.outcome_unknown)


async def _run_all(work: Sequence[PendingCall], run: CallRun) -> None:
    """Run calls that may be duplicates of each other: the first of a kind leads, the others follow it."""
    todo = list(work)
    while todo:
        leaders: list[PendingCall] = []
        followers: list[PendingCall] = []
        seen: set[str] = set()
        for c in todo:
            idempotent = c.tool is not None and c.tool.idempotent and c.outcome is None
            if idempotent and c.key in seen:
                followers.append(c)
            else:
                leaders.append(c)
                if idempotent:
                    seen.add(c.key)
        if run.call_limits.at_once == 1 or len(leaders) == 1:
            for c in leaders:
                c.alone = True
                await _run_one(c, run)
        else:
            await _run_together(leaders, run)
        todo = []
        for c in followers:
            first = next(lead for lead in leaders if (lead.asked_key or lead.key) == c.key)
            if first.waiting:
                c.waiting = True
            elif first.outcome is not None and _is_final(first.outcome.execution) and first.key == c.key:
                await _reuse(c, first.outcome.execution, run, first.outcome.content)
            else:
                todo.append(c)


async def _run_together(work: Sequence[PendingCall], run: CallRun) -> None:
    for c in work:
        c.alone = False
    # Without a body: a model may ask for any number of these.
    bodies = [(partial(_run_one, c, run), c.invalid is None) for c in work]
    await run_together(run, bodies, run.call_limits.at_once)


def _is_final(execution: ToolExecution) -> bool:
    return execution.started and not execution.retryable


async def _reuse(
    c: PendingCall, earlier: ToolExecution, run: CallRun, content: str | tuple[Block, ...] | None = None
) -> None:
    execution = evolve(
        earlier,
        arguments=c.call.arguments,
        call_id=c.call.id,
        iteration=c.state.iteration,
        duration_ms=0.0,
        cache_hit=True,
        answer=c.answer,
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


async def _run_one(c: PendingCall, run: CallRun) -> None:
    """One call from its decision to its record; sets ``c.outcome`` or ``c.waiting``, or leaves both unset."""
    step_id, host = c.at, run.host
    if host.questions:
        c.take_answer(run)
    found = host.find_step(step_id, c.digest)
    if type(found) is Outcome:
        c.outcome = found.value
        await _emit_complete(c, run, replayed=True)
        return
    if host.questions and host.is_waiting(step_id, (c.asked_key or c.key, c.digest)):
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
        if run.halted or (run.deadline is not None and c.outcome is None and run.is_out_of_time()):
            c.outcome = None
            return
    try:
        if is_unknown:
            _tell_unknown(c, run, step_id)
        elif (
            c.outcome is None
            and (not run.has_deciders or await _decide(c, run))
            and (not run.has_listener(ToolStartEvent) or await _announce(c, run))
        ):
            assert tool is not None
            body = partial(_run_shortened, c, run, step_id, c.call)
            c.outcome = await enter_step(c, run, body, tool.effect, found, key=c.key if tool.idempotent else "")
    except OutcomeUnknown:
        _tell_unknown(c, run, step_id)
    except Interrupt as asking:
        await ask_person(c, asking, run, tool_name=c.call.name, call_id=c.call.id)
        return
    if c.outcome is not None:
        if c.outcome.execution.label is None:  # a wrapper answered in place of the body
            c.outcome = evolve(c.outcome, execution=evolve(c.outcome.execution, label=c.label))
        if c.outcome.execution.started:
            if run.has_result_hooks:
                c.outcome = await run.label_result(c.call, c.outcome, c.label)
            if c.read is not CLEAN:  # what children have seen is in no opinion of a hook
                label = c.outcome.execution.known_label | c.read
                c.outcome = evolve(c.outcome, execution=evolve(c.outcome.execution, label=label, fields={}))
        c.outcome = c.tell_change(c.outcome)
        is_heard = run.has_listener(ToolCompleteEvent)
        # What was refused can be written later: nothing happened.
        when: When = "next" if (c.alone or c.invalid is not None) and not is_heard else "now"
        await host.settle(step_id, c.outcome, c.digest, when=when)
        if is_heard:
            await _emit_complete(c, run)


def _find_earlier(c: PendingCall, run: CallRun) -> ToolExecution | None:
    found = c.state.find_execution(c.key)
    if found is None and c.tool is not None and c.tool.idempotent == "thread":
        found = find_in_thread(c.state, c.call, c.key)
    return found


async def _decide(c: PendingCall, run: CallRun) -> bool:
    """Ask the hooks; True when the call may run. Sets the outcome of a rejected call.

    A person's refusal is final. A call that a person has changed is another one: the hooks are asked about it, but what
    they would ask the person is answered already.
    """
    if c.is_allowed is False:
        said = c.answer["reason"] if isinstance(c.answer, Mapping) else c.answer
        c.outcome = c.refusal(f"Rejected: a person refused this call: {said}")
        return False
    decision = await run.decide(c.call, is_answered=c.is_changed)
    if type(decision) is Allow or (c.is_allowed and isinstance(decision, Interrupt)):
        earlier = _find_earlier(c, run) if c.is_changed and c.tool is not None and c.tool.idempotent else None
        if earlier is not None:
            await _reuse(c, earlier, run)
        return c.outcome is None
    if isinstance(decision, Interrupt):
        c.question = c.next_question
        problem = f"\nThe arguments that you gave do not fit: {c.problem}" if c.problem else ""
        raise Interrupt(f"{decision.question}{problem}", decision.options or APPROVAL)
    if type(decision) is Reject:
        c.outcome = c.refusal(f"Rejected: {decision.reason or 'a policy refuses this call'}")
    else:
        run.cancel(getattr(decision, "reason", ""))
    return False


def _is_unknown(c: PendingCall, run: CallRun, step_id: StepId, found: object) -> bool:
    """Whether the outcome of a call that was begun before a crash is unknown; it is not begun again then.

    What was recorded with the intent counts, not what the code says now: the effect may have been declared another
    one since, the tool removed, or a parameter renamed. A person who was asked about it has answered for it.
    """
    if type(found) is Intent:
        c.intended_key = found.key
        return found.policy != "keyed" or c.outcome is not None
    if found is not None or c.outcome is not None:
        return False
    return c.find_answer(run) is not None


def _tell_unknown(c: PendingCall, run: CallRun, step_id: StepId) -> None:
    if c.tool is not None and c.tool.ask_on_unknown and c.outcome is None and not run.halted:
        c.question = "unknown"
        given = c.find_answer(run)
        if given is None:
            raise Interrupt(f"{c.call.name}{dict(c.call.arguments)}: {UNKNOWN}. What came of it?")
        c.outcome = c.result_of(result_text(f"a person says: {given[1]}", c.tool.max_result_chars), 0.0)
    else:
        c.outcome = c.unknown_outcome()


async def _announce(c: PendingCall, run: CallRun) -> bool:
    """Tell that the body is about to run; False when a hook refuses the call or ends the run."""
    directive = await run.emit(ToolStartEvent(tool_name=c.call.name, arguments=c.call.arguments, call_id=c.call.id))
    if type(directive) is Reject:
        c.outcome = c.refusal(f"Rejected: {directive.reason or 'a hook refuses this call'}")
    return type(directive) is not Reject and type(directive) is not Cancel


def body_of(fn: object) -> tuple[PendingCall, CallRun] | None:
    """The call whose body `Effects.run` was given, and its run; None where it was given something else."""
    return fn.args[:2] if isinstance(fn, partial) and fn.func is _run_shortened else None


def prepare_body(
    step_id: StepId, state: AgentState, run: CallRun
) -> tuple[PendingCall, Callable[[], Awaitable[CallOutcome]]]:
    """A call and its body, for a process that has the state in which it was asked for, and not the loop.

    Raises:
        ConfigError: the agent of this process cannot make the call.
    """
    work = [prepare_call(i, call, state, run) for i, call in enumerate(state.unanswered)]
    if run.is_limited:
        _reserve(work, run)
    c = work[step_id.ordinal]
    c.attempt = step_id.attempt
    c.take_answer(run)
    if c.invalid is not None:
        raise ConfigError(f"the agent of this process cannot make the call of step {step_id}: {c.invalid.content}")
    return c, partial(_run_shortened, c, run, step_id, c.call)


async def _run_shortened(c: PendingCall, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
    """What comes of the body and of what wraps it, in the length in which it is recorded."""
    outcome = await (_run_wrapped if run.has_tool_wrappers else _run_body)(c, run, step_id, call)
    execution, content = outcome.execution, outcome.content
    if execution.error is not None or c.tool is None:
        return outcome
    limit, text = c.tool.max_result_chars, text_of(content)
    if content is execution.result and len(text) <= limit and not run.has_result_hooks:
        return outcome  # as most are
    if isinstance(content, str):
        kept: Any = await run.shorten_result(content, call, limit)
    else:
        kept = list(content)
        for i, b in enumerate(content):
            if isinstance(b, TextBlock):
                kept[i] = evolve(b, text=await run.shorten_result(b.text, call, limit))
        kept = tuple(kept)
    result = execution.result
    result = text_of(kept) if result == text else result and truncate(result, limit)
    if kept == content and result == execution.result:
        return outcome
    return evolve(outcome, content=kept, execution=evolve(execution, result=result))


async def _run_wrapped(c: PendingCall, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
    """The body inside the onion."""
    try:
        outcome = await run.wrap_tool_call(partial(_run_body, c, run, step_id))(call)
    except Exception as e:  # noqa: BLE001 - what a wrapper raises is the call's error
        return _fail_call(c, e, run, 0.0)
    if c.usage is not None and outcome.usage is not c.usage:  # the wrapper made an outcome of its own
        outcome = evolve(outcome, usage=c.usage)
    # A wrapper may have put blocks in the place of text.
    return outcome if isinstance(outcome.content, str) else c.place_media(outcome)


async def _emit_complete(c: PendingCall, run: CallRun, *, replayed: bool = False) -> None:
    if c.outcome is not None and run.has_listener(ToolCompleteEvent):
        execution = c.outcome.execution
        await run.emit(
            ToolCompleteEvent(
                tool_name=c.call.name,
                arguments=execution.arguments,
                call_id=c.call.id,
                result=execution.result,
                error=execution.error,
                duration_ms=execution.duration_ms,
                replayed=replayed,
            )
        )


# -- the body --------------------------------------------------------------------------------------------


async def _run_body(c: PendingCall, run: CallRun, step_id: StepId, call: ToolCall) -> CallOutcome:
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
        context = _BodyContext(c, run, c.idempotency_key(run))
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
            return _fail_call(c, failed, run, duration_ms)
        is_from_context = asking is c.raised_by_context
        c.question = c.raised_as if is_from_context else str(c.answered)
        given = None if is_from_context else c.find_answer(run)
        if given is None:
            raise asking from None
        # The body raised the question itself and cannot receive an answer: the answer is its result.
        return c.result_of(given[1], duration_ms)
    return c.result_of(value, (time.perf_counter() - began) * 1000)


def _fail_call(c: PendingCall, error: BaseException, run: CallRun, duration_ms: float) -> CallOutcome:
    """The error as the call's, unless this worker must not go on: then nothing came of the call yet."""
    if run.host.stop_error is not None:
        raise run.host.stop_error
    return c.unknown_outcome() if type(error) is OutcomeUnknown else c.failure(error, duration_ms)


class _BodyContext(StepContext, ToolContext[Any]):
    """The run as the body of one tool call sees it."""

    __slots__ = ()
    _entry: PendingCall
    _run: CallRun

    @property
    def call_id(self) -> str:
        return self._entry.call.id

    @property
    def state(self) -> AgentState:
        """As Execute got it, from what wraps it."""
        return self._entry.state

    @property
    def label(self) -> Label:
        """With that of the tool: its body may put what it has read into a prompt."""
        return self.state.label | self._entry.label

    async def emit_progress(
        self, progress: float | None = None, *, total: float | None = None, message: str = ""
    ) -> None:
        call = self._entry.call
        if self._run.has_listener(ToolProgressEvent):
            await self._run.emit(
                ToolProgressEvent(
                    tool_name=call.name,
                    call_id=self.call_id,
                    progress=progress,
                    total=total,
                    message=await self._run.filter_progress(message, call) if message else message,
                )
            )
