"""One segment of a run: one call of ``run`` or ``resume``, from the claim of its thread to the release.

A new run, a continued thread, a resume after a crash or a question are one code path: each begins with *some*
``(state, node)``. Invariants: a segment ends with exactly one `TerminateEvent`, and its thread is released, whatever
happens. All that must be undone is on one stack, in the order in which it was opened:

1. the claim: flush what is being written, then release. Last of all, because the rest still writes and reads.
2. the model's session. A connection that fails to close changes nothing about the result.
3. the sessions of plugins, which may use the model.
4. the end of a segment that breaks off, emitted while the sessions are open, because hooks may use them.

Cancelled, hooks and journal get `SHIELD` seconds to take note; events are no longer read, so none are sent to the
consumer. After `GeneratorExit` there may be no event loop, and only what needs no waiting is done. Of two errors the
first is raised; a later one of the store is a note on it. Nested functions, one for each of the four, were the first
form: each had its own copy of these rules, and a reader had to hold three of them to follow one cancellation.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
from attrs import evolve

from locus.core.directives import Cancel, LeftOpen, Suspended
from locus.core.errors import DeadLetter, JournalError, NothingToResume, NotSerialisable, StepMismatch
from locus.core.events import INTERRUPTED, JOURNAL_ERROR, NODE_ERROR, YIELDED, Ending, InterruptEvent, RunStartEvent
from locus.core.journal import BLANK, END, START, ModelFailed, Outcome, Paused
from locus.core.messages import Message, Role, label_messages
from locus.core.state import AgentState
from locus.core.step_id import SEGMENT, THINK, StepId
from locus.hooks.context import as_current
from locus.hooks.review import filter_input
from locus.hooks.sessions import RunSessions
from locus.journal import recovery
from locus.journal.host import JournalHost
from locus.journal.queue import QueueStore
from locus.journal.recovery import LIMITS, is_last_turn, with_request_id
from locus.loop.context import SegmentContext
from locus.loop.router import Node
from locus.loop.signals import listen, take_up
from locus.loop.thread import (
    WENT_ON,
    Segment,
    SegmentResult,
    closed_state,
    ended_before,
    matched_answers,
    recorded_ending,
    restore_account,
)
from locus.loop.transition import advance_node, commit, emit_end, end_suspended
from locus.models.call import ChildUsage, ModelCallResult, open_session, request_fingerprint
from locus.tools.account import Account
from locus.tools.cancellation import cancellations, find_exit, is_cancellation

if TYPE_CHECKING:
    from locus.core.journal import PauseKind
    from locus.journal.store import JournalStore

#: Seconds that hooks and the journal get to take note of a cancellation.
SHIELD = 5.0


async def run_segment(run: SegmentContext, store: JournalStore, segment: Segment) -> SegmentResult:
    """Run one segment to its end.

    Raises:
        JournalError: the thread is busy, lost, or has nothing to resume, or its store failed.
        InputError: the prompt cannot be used.
    """
    host = await JournalHost.open(store, run.thread_id, f"pid {os.getpid()}", run.runtime.effects)
    run.host, run.state = host, host.state
    async with AsyncExitStack() as stack:
        stack.enter_context(as_current(run))
        stack.push_async_exit(partial(_give_back, run, segment))
        listen(run)
        if segment.is_resumed:
            segment = take_up(run, segment)
            if _sleeps(run, segment):
                return SegmentResult(state=host.state, ending=Ending(YIELDED))
        if segment.yield_after is not None:
            run.iterations_left = segment.yield_after
        is_same_turn = is_last_turn(host, segment.request_id)
        if host.claim.is_abandoned and host.last is not None and host.open_node is None:
            missed = await _emit_missed_end(run, is_wanted=is_same_turn or _is_resume(host, segment))
            if missed is not None:
                return missed
        if is_same_turn:
            ended = ended_before(host, answered=False)
            if ended is not None:
                return ended
            segment = evolve(segment, before=(), prompt=None, seed=None)  # it was left open: it is resumed
        await open_session(run.runtime.model, stack, SHIELD)
        sessions = RunSessions(run, run.runtime.hooks)
        stack.push_async_exit(sessions.__aexit__)
        stack.push_async_exit(partial(_emit_break_off, run, segment))
        state, node = await _begin(run, segment, sessions)
        _set_deadline(run, state)
        following: Node | None = node
        cancelling = cancellations()
        before = cancelling()
        while following is not None:
            if cancelling() > before:
                # A body swallowed it, or failed in its cleanup. A cancel scope asks again; a bare task does not.
                await anyio.lowlevel.checkpoint_if_cancelled()
                raise anyio.get_cancelled_exc_class()
            try:
                state, following = await advance_node(run, state, following)
                run.iterations_left -= following == THINK
                if run.iterations_left <= 0 and following not in (None, Node.TERMINATE) and not run.halted:
                    raise _Yielded  # leaves the run open, as below
            except Suspended as left:
                paused = None if run.halted else await _pause(run, left)
                if paused is not None:
                    return paused
                state, following = await end_suspended(run)
        last = host.last
        assert last is not None
        ending = run.stop or Ending(last.why, last.satisfied)
        await emit_end(run, state, ending)
        return SegmentResult(state=state, ending=ending)


# -- leaving -----------------------------------------------------------------------------------------


async def _give_back(run: SegmentContext, segment: Segment, _: object, error: BaseException | None, __: object) -> None:
    """Write what is still to be written, and release the thread."""
    host = run.host
    if isinstance(error, GeneratorExit):
        # Closed from outside any event loop: nothing can be awaited, so only what needs no waiting is done.
        release = host.release()
        with contextlib.suppress(StopIteration, JournalError):
            release.send(None)
        release.close()
    elif error is not None:
        with anyio.CancelScope(shield=True):
            if isinstance(error, StepMismatch) and segment.max_attempts is not None:
                # Not this worker's fault, nor the run's: another version can go on, so it counts as no attempt.
                with contextlib.suppress(Exception):
                    left = Paused(run_id=host.run_id, segment=host.segment, kind="yielded", reason=str(error))
                    await host.store.append(host.claim, (left,))
            for leave in (host.flush, partial(_forget_signals, run), host.release):
                try:
                    await leave()
                except JournalError as failed:
                    if failed is not host.stop_error:
                        error.add_note(str(failed))  # what was wrong first is what is raised
    else:
        await _forget_signals(run)
        try:
            await host.release()
        except JournalError:
            await host.flush()  # whether what the run did is saved comes first
            raise
        await host.flush()


async def _forget_signals(run: SegmentContext) -> None:
    """Forget the signals whose work is done; those that came too late for it stay."""
    if run.heard:
        with contextlib.suppress(Exception):  # they are read again, and do nothing then
            await cast(QueueStore, run.host.store).forget_signals(run.host.claim, tuple(run.heard))


async def _emit_break_off(
    run: SegmentContext, segment: Segment, _: object, error: BaseException | None, __: object
) -> None:
    """Emit the end of a segment that breaks off, too."""
    if error is None or isinstance(error, GeneratorExit):
        return
    leaving = find_exit(error)
    if leaving is not None:
        run.cancel(type(leaving).__name__)
    if leaving is not None or is_cancellation(error):
        await _record_cancel(run, segment)
    elif isinstance(error, JournalError) and run.host.stop_error is not None and not run.ended:
        _show_committed(run)
        await _ensure_begun(run, segment)
        await emit_end(run, run.state, Ending(JOURNAL_ERROR, error=error))


async def _ensure_begun(run: SegmentContext, segment: Segment) -> None:
    """Emit the start of a segment that broke off before that, and the events that a filter held back."""
    if not run.began:
        resumed = segment.is_resumed
        prompt = "" if resumed else _WITHHELD.format("the prompt was not filtered to its end")
        await _start_event(run, prompt, resumed=resumed)


class _Yielded(Suspended):
    """The segment makes room for others."""


def _sleeps(run: SegmentContext, segment: Segment) -> bool:
    """Whether a program that resumes by itself has come too early: a run that sleeps is woken by people and signals."""
    due = run.host.due
    if due is None or segment.max_attempts is None or segment.answer is not None or run.halted:
        return False
    return segment.is_resumed and run.host.effects.now() < due


# -- beginning ------------------------------------------------------------------------------------


def _is_resume(host: JournalHost, segment: Segment) -> bool:
    return segment.is_resumed or (segment.one_run and host.last is not None)


async def _begin(run: SegmentContext, segment: Segment, sessions: RunSessions) -> tuple[AgentState, Node]:
    host = run.host
    if _is_resume(host, segment):
        return await _resume(run, segment, sessions)
    run_id, now = segment.run_id or host.effects.new_id(), host.effects.now()
    state = segment.seed
    if state is None and host.last is not None:
        state = closed_state(host).next_turn(run_id=run_id, now=now)
    if state is None:
        state = run.runtime.blank.start_run(run_id=run_id, now=now)
    else:
        state = evolve(state, **run.runtime.template)
        if segment.seed is not None and not host.run_id:
            run_id = state.run_id
    if state.run_id != run_id:
        state = evolve(state, run_id=run_id)
    state = state.with_system(run.runtime.system)
    for key, value in segment.metadata.items():
        state = state.with_metadata(key, value)
    state = with_request_id(host, state, segment.request_id)
    base = host.state
    host.begin(run_id)
    run.state = state
    given = () if segment.prompt is None else (*segment.before, segment.prompt)
    if segment.seed is not None and state.messages[-1].role is Role.USER:
        # The user's turn is filtered and told of, in whatever form it was handed in.
        state, given = evolve(state, messages=state.messages[:-1]), state.messages[-1:]
        # A state from the middle of a run may have open calls, and the turn comes after them.
        state = state.with_calls_closed(WENT_ON)
    if given:
        if run.runtime.hooks.impls("locus_filter_input"):
            given = await _filter(run, given)
        state = state.with_messages(given)
    state = state.with_label(run.given).with_label(label_messages(given))
    run.state = state
    state = await sessions.open(state, ends=run.halted)
    run.take_elapsed()
    run.state = state
    await _start_event(run, given[-1].text if given else "", resumed=False)
    # A seed may end with calls that were not run yet.
    node = Node.EXECUTE if state.unanswered else Node.THINK
    if host.last is None:
        base = BLANK
    await _record_options(run, state, host.segment)
    return await commit(run, base, state, START, node, "a new turn"), node


#: What replaces a prompt that must not be seen.
_WITHHELD = "[withheld: {}]"


async def _filter(run: SegmentContext, given: tuple[Message, ...]) -> tuple[Message, ...]:
    """What the caller gave with every turn of the user's filtered, those of a transcript too."""
    impls = run.runtime.hooks.impls("locus_filter_input")
    run.hold_back()
    withheld = Message(Role.USER, _WITHHELD.format("the prompt was refused"))
    passed, refused = [], False
    for message in given:
        got: Message | Cancel = message
        if message.role is Role.USER:
            got = withheld if refused else await filter_input(impls, message, run, run.health)
        if isinstance(got, Cancel):
            run.cancel(got.reason)
            # What a guard refuses, and what is not filtered because of that, must not enter the journal.
            refused, got = True, withheld
        passed.append(got)
    return tuple(passed)


async def _resume(run: SegmentContext, segment: Segment, sessions: RunSessions) -> tuple[AgentState, Node]:
    host = run.host
    if host.open_node is None:
        state = "is empty" if host.last is None else f"ended with {host.last.why or 'an answer'}"
        raise NothingToResume(f"thread {run.thread_id!r} {state}; agent.run(prompt, thread_id=...) takes the next turn")
    if segment.max_attempts is not None:
        await _refuse_dead_letter(host, run.thread_id, segment.max_attempts)
    last = host.last
    if last is not None and last.next_node == Node.TERMINATE:
        # It was on its way out: it ends for the reason that it had.
        run.stop = recorded_ending(last)
    answers = matched_answers(host, segment.answer)
    await sessions.open(host.state, ends=run.halted or host.open_node == Node.TERMINATE, resumed=True)
    await _record_options(run, host.state, host.segment + 1)
    await host.resume()
    if answers:
        await host.answer(answers)
    for step in host.steps:
        # What recorded steps have spent is charged here, once; a replay of them charges nothing. (Think's own call
        # is charged with its answer.)
        spent = step.value if isinstance(step, Outcome) and step.step_id.node != THINK else step
        if isinstance(spent, ModelCallResult | ChildUsage | ModelFailed) and spent.usage is not None:
            run.charge(spent.usage)
    if last is not None and last.uncharged is not None:
        run.charge(last.uncharged)
    if run.is_limited:
        run.account = run.account or Account().limit(run.bounds)
        await restore_account(run.account, host)
    run.take_elapsed(recovery.find_paused_seconds(host))
    run.state = host.state
    run.resumed = True
    await _start_event(run, "", resumed=True)
    return host.state, Node(host.open_node)


async def _refuse_dead_letter(host: JournalHost, thread_id: str, max_attempts: int) -> None:
    """Give no worker a run that has killed its worker each time."""
    cause = recovery.dead_letter(host.claim)
    if cause is None and recovery.count_attempts(host.claim) >= max_attempts:
        cause = recovery.cause(host)
        await host.pause("dead_letter", cause)
    if cause is not None:
        raise DeadLetter(thread_id, cause)


async def _record_options(run: SegmentContext, state: AgentState, number: int) -> None:
    """Record what the segment is run with and the journal does not show otherwise, for a replay."""
    host = run.host
    if not host.store.keeps_history:
        return
    spec = run.output.spec if run.output is not None else None
    run.request_fingerprint = request_fingerprint(state, run.runtime.system, run.registry, run.settings, spec)
    if run.runtime.limits:
        try:
            limits = [limit.to_json() for limit in run.runtime.limits]
        except NotSerialisable:  # a lambda: then the record says only that there was something
            limits = []
        await host.annotate(StepId(0, SEGMENT, number, name=LIMITS), limits)


async def _start_event(run: SegmentContext, prompt: str, *, resumed: bool, replayed: bool = False) -> None:
    start = None
    if run.has_listener(RunStartEvent):
        start = RunStartEvent(
            prompt=prompt,
            agent_id=run.state.agent_id,
            model=run.runtime.model.name,
            resumed=resumed,
            plugins=run.runtime.versions,
            replayed=replayed,
        )
    await run.begin(start)


# -- ending ------------------------------------------------------------------------------------------


async def _emit_missed_end(run: SegmentContext, *, is_wanted: bool) -> SegmentResult | None:
    """Emit the end of a run whose worker died between the last append and the event, or right after it.

    Args:
        run: the segment.
        is_wanted: whether that run is what the caller asks for. Else a new turn begins: hooks get the end of the run
            before, the consumer does not.

    Returns:
        How it ended, where that is wanted.
    """
    host, hearing = run.host, run
    assert host.last is not None
    if not is_wanted:
        hearing = SegmentContext(run.runtime, run.thread_id, deps=run.deps, parent=run.parent)
        hearing.host, hearing.state = host, host.state
        hearing.show_to(None)
    ending = hearing.stop = recorded_ending(host.last)
    await _start_event(hearing, "", resumed=True, replayed=True)
    await emit_end(hearing, host.state, ending, replayed=True)
    return SegmentResult(state=host.state, ending=ending) if is_wanted else None


async def _pause(run: SegmentContext, left: Suspended) -> SegmentResult | None:
    """The segment ends with questions or a failure; a resume goes on. None: it was cancelled meanwhile."""
    host, ending = run.host, Ending(INTERRUPTED)
    kind: PauseKind = "interrupted"
    questions = tuple(host.open_questions.values())
    seconds = run.count_elapsed()
    if isinstance(left, LeftOpen):
        ending, kind = Ending(NODE_ERROR, detail=left.detail, error=left.error), "failed"
    elif isinstance(left, _Yielded) or left.until is not None:
        ending, kind = Ending(YIELDED), "yielded"
    await host.pause(kind, ending.detail, seconds, left.until)
    recovery.keep_fold(host)
    state = run.with_charges(host.state, take=False)
    state = state.at(updated_at=state.updated_at, active_seconds=state.active_seconds + seconds)
    run.state = state
    for q in questions:
        await run.emit(
            InterruptEvent(
                interrupt_id=q.interrupt_id,
                question=q.question,
                options=q.options,
                tool_name=q.tool_name,
                call_id=q.call_id,
            )
        )
    if run.halted:
        return None
    await emit_end(run, state, ending)
    return SegmentResult(state=state, ending=ending, questions=questions)


async def _record_cancel(run: SegmentContext, segment: Segment) -> None:
    """The caller's task was cancelled: let hooks and journal know, within bounds, and leave the run open."""
    with anyio.move_on_after(SHIELD, shield=True):
        # Events are no longer read: the consumer is gone, waiting for it would be for ever.
        run.show_to(None)
        if run.ended:
            return
        host, last = run.host, run.host.last
        if last is not None and last.next_node == END and last.run_id == host.run_id:
            # It had ended when the cancellation came.
            await emit_end(run, host.state, recorded_ending(last))
            return
        ending = Ending.from_cancel(run.cancelled)
        if _show_committed(run):
            try:
                await host.pause("cancelled", run.cancelled or "", run.count_elapsed())
            except JournalError as e:
                ending = Ending.from_cancel(run.cancelled, error=e)
                _show_committed(run)  # what was being written is not
        await _ensure_begun(run, segment)
        await emit_end(run, run.state, ending)


def _show_committed(run: SegmentContext) -> bool:
    """Let hooks see the state as it is in the journal; False when nothing of the run does, or all of it."""
    host, last = run.host, run.host.last
    if host.open_node is None or last is None or last.run_id != host.run_id:
        return False
    run.state = host.state
    return True


def _set_deadline(run: SegmentContext, state: AgentState) -> None:
    """Set the run's deadline: what its condition allows, and never more than its parent has."""
    seconds = state.active_seconds + run.count_elapsed()
    left = run.runtime.budget.seconds_left(seconds, run.host.effects.now)
    deadline = None if left is None else anyio.current_time() + max(0.0, left)
    parent = run.parent.deadline if run.parent is not None else None
    run.deadline = parent if deadline is None or (parent is not None and parent < deadline) else deadline
