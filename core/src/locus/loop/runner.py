"""The only driver: a new run, a continued thread, a resume after a crash or a question are one code path.

Each starts from *some* ``(state, node)`` and advances node by node. A transition is one append to the journal; the
end of a segment is exactly one `TerminateEvent`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio
from attrs import evolve

from locus.core.directives import Cancel, Suspended
from locus.core.errors import ConditionError, Fenced, JournalError, NothingToResume, StepFailed, StepMismatch
from locus.core.events import (
    CheckpointEvent,
    InterruptEvent,
    IterationEvent,
    RunStartEvent,
    TerminateEvent,
)
from locus.core.journal import BLANK, END, START
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.hooks.dispatch import decide_route, filter_input
from locus.loop.active import ActiveRun
from locus.loop.router import Node, Route, legal
from locus.memory.host import JournalHost
from locus.memory.thread import (
    Ended,
    Segment,
    Stop,
    cancel_reason,
    closed_state,
    matched_answers,
    recorded_error,
    with_system,
)
from locus.tools.cancellation import is_cancellation

if TYPE_CHECKING:
    from locus.memory.store import JournalStore

__all__ = ["advance_node", "drive"]

#: Seconds that hooks and the journal get to take note of a cancellation.
SHIELD = 5.0


async def drive(run: ActiveRun, store: JournalStore, segment: Segment) -> Ended:
    """Run one segment to its end.

    Raises:
        JournalError: the thread is busy, lost, or has nothing to resume.
        InputError: the prompt cannot be used.
    """
    host = await JournalHost.open(store, segment.thread_id, segment.worker, run.loop.clock.now)
    run.host = host
    run.show(host.state)
    try:
        state, node = await _begin(run, segment)
        ended = await _loop(run, state, node)
    except GeneratorExit:
        # Closed from outside any event loop: nothing can be awaited, so only what needs no waiting is done.
        _release_now(host)
        raise
    except BaseException as e:
        if is_cancellation(e):
            await _cancelled(run)
        with anyio.CancelScope(shield=True):
            await host.release()
        raise
    await host.release()
    return ended


def _release_now(host: JournalHost) -> None:
    release = host.release()
    with contextlib.suppress(StopIteration):
        release.send(None)
    release.close()


# -- beginning ------------------------------------------------------------------------------------


async def _begin(run: ActiveRun, segment: Segment) -> tuple[AgentState, Node]:
    host = run.host
    if segment.prompt is None and segment.seed is None:
        return await _resume(run, segment)
    run_id, now = host.new_id(), host.now()
    state = segment.seed
    if state is None and host.last is not None:
        state = closed_state(host).next_turn(run_id=run_id, now=now)
    if state is None:
        state = AgentState(run_id=run_id, started_at=now, updated_at=now, **segment.template)
    else:
        state = evolve(state, **segment.template)
        if segment.seed is not None and not host.run_id:
            run_id = state.run_id
    if state.run_id != run_id:
        state = evolve(state, run_id=run_id)
    state = with_system(state, segment.system)
    for key, value in segment.metadata.items():
        state = state.with_metadata(key, value)
    base = host.state
    host.run_id, host.segment = run_id, 0
    run.show(state)
    if segment.before:
        state = state.with_messages(segment.before)
    prompt = segment.prompt
    if prompt is not None:
        prompt = await _filtered(run, prompt)
        state = state.with_message(prompt)
    run.elapsed()
    run.show(state)
    await _start_event(run, prompt.text if prompt is not None else "", resumed=False)
    # A seed may end with calls that nobody has run yet.
    node = Node.EXECUTE if state.unanswered else Node.THINK
    if host.last is None:
        base = BLANK
    return await _commit(run, base, state, START, node, "a new turn"), node


async def _filtered(run: ActiveRun, prompt: Message) -> Message:
    impls = run.loop.hooks.impls("locus_filter_input")
    if not impls:
        return prompt
    got = await filter_input(impls, prompt, run, run.health)
    if isinstance(got, Cancel):
        run.cancel(got.reason)
        # What a guard refused must not enter the journal.
        return Message(Role.USER, "[withheld: the prompt was refused]")
    return got


async def _resume(run: ActiveRun, segment: Segment) -> tuple[AgentState, Node]:
    host = run.host
    if host.open_node is None:
        state = "is empty" if host.last is None else f"ended with {host.last.why or 'an answer'}"
        raise NothingToResume(
            f"thread {segment.thread_id!r} {state}; agent.run(prompt, thread_id=...) takes the next turn"
        )
    if host.run_id == "":  # pragma: no cover - a thread with a transition has a run
        raise NothingToResume(segment.thread_id)
    last = host.last
    if last is not None and last.next_node == Node.TERMINATE:
        # It was on its way out: it ends for the reason that it had.
        run.stop = Stop(last.why, last.satisfied, error=recorded_error(last))
    answers = matched_answers(host, segment.answers)
    await host.resume()
    if answers:
        await host.answer(answers)
    for outcome in host.outcomes:
        # What recorded steps have spent is charged here, once; a replay of them charges nothing. (Think's own call
        # is charged with its answer.)
        spent = getattr(outcome.value, "usage", None)
        if spent is not None and "/think/model" not in outcome.step_id:
            run.charge(spent)
    run.elapsed()
    run.show(host.state)
    await _start_event(run, "", resumed=True)
    return host.state, Node(host.open_node)


async def _start_event(run: ActiveRun, prompt: str, *, resumed: bool) -> None:
    if run.hears(RunStartEvent):
        await run.tell(
            RunStartEvent(
                prompt=prompt,
                agent_id=run.state.agent_id,
                model=run.loop.model.name,
                resumed=resumed,
                plugins=run.loop.versions,
            )
        )


# -- going on -------------------------------------------------------------------------------------


async def _loop(run: ActiveRun, state: AgentState, node: Node) -> Ended:
    deadline_of(run, state)
    following: Node | None = node
    while following is not None:
        try:
            state, following = await advance_node(run, state, following)
        except Suspended:
            return await _suspended(run)
    last = run.host.last
    assert last is not None
    stop = run.stop
    detail = stop.detail if stop is not None else ""
    error = stop.error if stop is not None else None
    await _terminate_event(run, state, last.why, last.satisfied, error, detail)
    return Ended(state=state, reason=last.why, satisfied=last.satisfied, detail=detail, error=error)


async def advance_node(run: ActiveRun, state: AgentState, node: Node) -> tuple[AgentState, Node | None]:
    """Run one node and commit its transition: the driver that an outside engine calls.

    Args:
        run: the segment.
        state: the state that the node gets.
        node: the node to run.

    Returns:
        The committed state and the node that follows, None at the end.

    Raises:
        Suspended: the run waits for a person; nothing was committed.
    """
    run.entered(state)
    if node is Node.THINK and not run.halted and run.hears(IterationEvent):
        await run.tell(IterationEvent(token_total=state.total_tokens_used, cost=state.cost))
        run.take_retry()
    if run.halted and node is not Node.TERMINATE:
        _stop_cancelled(run)
        return await _commit(run, state, run.charged(state), node, Node.TERMINATE, ""), Node.TERMINATE
    try:
        new = await run.loop.nodes[node](state, run)
    except (Fenced, StepMismatch):
        raise
    except Exception as e:  # noqa: BLE001 - nothing that a plugin's node raises may leave the loop
        run.stop = Stop("NodeError", detail=f"{node.value}: {type(e).__name__}: {e}", error=e)
        new = run.charged(state).with_error(f"{node.value}: {type(e).__name__}: {e}")
    new = run.charged(new)
    run.show(new)
    if node is Node.TERMINATE:
        return await _finish(run, state, new), None
    route = _routed(run, node, new)
    if route.next is not Node.TERMINATE and run.loop.diverts:
        route = await _diverted(run, node, new, route)
    committed = await _commit(run, state, new, node, route.next, route.why)
    return committed, route.next


def _routed(run: ActiveRun, node: Node, state: AgentState) -> Route:
    if run.halted:
        _stop_cancelled(run)
    if run.stop is None:
        try:
            return _settled(run, run.loop.router(node, state))
        except ConditionError as e:
            run.stop = Stop("ConditionError", error=e)
    return Route(Node.TERMINATE, run.ending)


async def _diverted(run: ActiveRun, node: Node, state: AgentState, route: Route) -> Route:
    impls = run.loop.hooks.impls("locus_decide_route")
    chosen = await decide_route(impls, node, state, route.next, legal(node, state), run.health)
    if isinstance(chosen, Cancel):
        run.cancel(chosen.reason)
        _stop_cancelled(run)
        return Route(Node.TERMINATE, run.ending)
    return _settled(run, run.loop.router.divert(node, state, route, chosen))


def _settled(run: ActiveRun, route: Route) -> Route:
    found = route.satisfied
    if found is not None:
        run.stop = Stop(found.reason, found.leaves, found.detail)
    return route


def _stop_cancelled(run: ActiveRun) -> None:
    # An error or a condition that came first stays the reason.
    if run.stop is None and run.cancelled is not None:
        run.stop = Stop(cancel_reason(run.cancelled), ("Cancelled",))


async def _commit(run: ActiveRun, old: AgentState, new: AgentState, node: str, following: str, why: str) -> AgentState:
    again = following == Node.THINK and node != START
    stop, error = run.stop, None
    if stop is not None and (following == Node.TERMINATE or following == END):
        # Written with the transition into Terminate as well, so that a crash in between does not lose it.
        why, error = stop.reason, stop.error
    state = await run.host.commit(
        old,
        new,
        node=node,
        next_node=following,
        why=why,
        satisfied=stop.satisfied if stop is not None else (),
        error=_told(error),
        active_seconds=new.active_seconds + run.elapsed(),
        iteration=new.iteration + 1 if again else new.iteration,
    )
    run.show(state)
    if again:
        run.cleared = state
    if run.hears(CheckpointEvent):
        await run.tell(CheckpointEvent(node=node, next_node=following, why=why, head=run.host.head))
        run.take_retry()
    return state


# -- ending ---------------------------------------------------------------------------------------


async def _finish(run: ActiveRun, old: AgentState, new: AgentState) -> AgentState:
    stop = run.stop
    if stop is None:  # resumed right at Terminate: the transition before says why
        last = run.host.last
        stop = run.stop = Stop(last.why, last.satisfied) if last is not None else Stop("NoToolCalls")
    return await _commit(run, old, new, Node.TERMINATE, END, stop.reason)


async def _suspended(run: ActiveRun) -> Ended:
    host = run.host
    questions = tuple(host.open_questions.values())
    await host.pause("Interrupted")
    state = run.charged(host.state, take=False)
    run.show(state)
    for q in questions:
        await run.tell(
            InterruptEvent(
                interrupt_id=q.interrupt_id,
                question=q.question,
                options=q.options,
                tool_name=q.tool_name,
                call_id=q.call_id,
            )
        )
    await _terminate_event(run, state, "Interrupted", (), None)
    return Ended(state=state, reason="Interrupted", questions=questions)


async def _cancelled(run: ActiveRun) -> None:
    """The caller's task was cancelled: tell hooks and journal, within bounds, and leave the run open."""
    with anyio.move_on_after(SHIELD, shield=True):
        # Nobody reads events any more: the consumer is gone, waiting for it would be for ever.
        run.sink = None
        if run.ended:
            return
        host, last = run.host, run.host.last
        if last is not None and last.next_node == END and last.run_id == host.run_id:
            # It had ended when the cancellation came.
            await _terminate_event(run, host.state, last.why, last.satisfied, None)
            return
        reason = cancel_reason(run.cancelled or "")
        if host.open_node is not None and last is not None and last.run_id == host.run_id:
            run.show(host.state)
            try:
                await host.pause(reason)
            except JournalError:
                return
        await _terminate_event(run, run.state, reason, ("Cancelled",), None)


async def _terminate_event(
    run: ActiveRun,
    state: AgentState,
    reason: str,
    satisfied: tuple[str, ...],
    error: BaseException | None,
    detail: str = "",
) -> None:
    run.ended = True
    last = state.last_assistant
    await run.tell(
        TerminateEvent(
            reason=reason,
            detail=detail,
            satisfied=satisfied,
            final_message=last.text if last is not None else "",
            iterations_used=state.iteration + 1,
            total_tool_calls=len(state.tool_executions),
            final_confidence=state.confidence,
            usage=state.usage,
            error=_told(error),
        )
    )


def _told(error: BaseException | None) -> str | None:
    if error is None:
        return None
    # One that was read from the journal is told as it was.
    return str(error) if isinstance(error, StepFailed) else f"{type(error).__name__}: {error}"


def deadline_of(run: ActiveRun, state: AgentState) -> None:
    """Set the run's deadline: what its condition allows, and never more than its parent has."""
    bound = run.bounds.seconds
    deadline = None
    if bound is not None:
        deadline = anyio.current_time() + max(0.0, bound.limit - state.active_seconds)
    at = run.loop.ceiling.stops_at
    if at is not None:
        left = anyio.current_time() + max(0.0, (at - run.loop.clock.now()).total_seconds())
        deadline = left if deadline is None else min(deadline, left)
    parent = run.parent.deadline if run.parent is not None else None
    if parent is not None and (deadline is None or parent < deadline):
        deadline = parent
    run.deadline = deadline
