"""One node after the other: run it, route, commit. Whatever drives a run, here or in an engine, drives it through this.

What holds for each transition:

- It is one append to the journal, and the state that goes on is the one that was stored, never the one that a node
  returned. Charges enter the state before it is routed, so a limit counts what the node has just spent.
- Termination wins. A hook may put another edge of the table in place of the router's, never in place of Terminate.
- Why a run ends is decided once, in ``run.stop``, by what came first: an error, a condition or a cancel. It is written
  with the transition *into* Terminate, so a crash before the last one does not change the reason.
- Terminate leaves no call without a result, whatever stood in for the kernel's own node: a history with open calls
  could not be gone on with. What was under way is "unknown" then, and only what was never entered is "not run".
- Nothing that a node, a hook or a tool raises leaves this module: it becomes the reason of the end. Exceptions are
  `JournalError` (this worker must not go on), `Suspended`, cancellation and `KeyboardInterrupt`, which pass through.

The order within a node: `IterationEvent`, the node, charges, route, another edge by a hook, the append,
`CheckpointEvent`. A cancel that comes in between is seen at the next of these steps; its entry joins the append, so the
journal never has a cancelled run without its cancel. Listeners decide whether the append is waited for: who hears of a
transition hears of what is stored.
"""

from __future__ import annotations

from locus.core.directives import Cancel, Interrupt
from locus.core.errors import BudgetExceeded, ConditionError
from locus.core.events import (
    CONDITION_ERROR,
    DIVERTED,
    NODE_ERROR,
    CheckpointEvent,
    Ending,
    IterationEvent,
    TerminateEvent,
)
from locus.core.journal import END, START, Cancelled
from locus.core.state import AgentState
from locus.hooks.dispatch import decide_route
from locus.journal.host import JournalHost
from locus.journal.recovery import last_request_id
from locus.journal.writes import WHEN_BEFORE, When
from locus.loop.context import SegmentContext
from locus.loop.router import EXECUTE, TERMINATE, THINK, Node, Route, legal
from locus.tools.cancellation import is_failure
from locus.tools.outcome import with_recorded_results

_LAST = (TERMINATE, END)


async def advance_node(run: SegmentContext, state: AgentState, node: Node) -> tuple[AgentState, Node | None]:
    """Run one node and commit its transition: the driver that an outside engine calls.

    Args:
        run: the segment.
        state: the state that the node gets.
        node: the node to run.

    Returns:
        The committed state and the node that follows, None at the end.

    Raises:
        Suspended: the run waits for a person; nothing was committed.
        JournalError: this worker must not go on; the run is left open.
    """
    run.enter_node(state)
    if node is THINK and run.has_listener(IterationEvent) and not run.halted:
        await run.emit(IterationEvent(token_total=state.total_tokens_used, cost=state.cost))
        run.take_retry()
    if run.halted and node is not TERMINATE:
        _stop_cancelled(run)
        new = run.with_charges(state)
        if node is EXECUTE:  # a resume that ends before it begins: what was under way is not "not run"
            new = with_recorded_results(run.host, new, run.stop_reason)
        return await commit(run, state, new, node, TERMINATE, ""), TERMINATE
    try:
        new = await run.runtime.nodes[node](state, run)
    except BaseException as e:
        if not is_failure(e):  # nothing else that a plugin's node raises may leave the loop
            raise
        new = _fail_node(run, node, state, e)
    if run.uncharged is not None:
        new = run.with_charges(new)
    run.state = new
    if node is TERMINATE:
        # Whatever stood in for Terminate: a history with open calls could not be gone on with.
        return await _finish(run, state, new.with_calls_closed(run.stop_reason)), None
    route = _route(run, node, new)
    proposed = route.next
    if proposed is not TERMINATE and run.runtime.diverts:
        route = await _divert(run, node, new, route)
    instead_of = "" if route.next is proposed else str(proposed)
    committed = await commit(run, state, new, node, route.next, run.why or route.why, instead_of)
    return committed, route.next


def _fail_node(run: SegmentContext, node: Node, state: AgentState, error: BaseException) -> AgentState:
    """The state after a node that raised."""
    if run.host.stop_error is not None:
        raise run.host.stop_error  # no failure of the node
    detail = f"{node.value}: {type(error).__name__}: {error}"
    # A node that may not ask a model fails because of the limit: that is why the run ends.
    if run.cancelled is None and not (run.stop is not None and isinstance(error, BudgetExceeded)):
        run.stop = Ending(NODE_ERROR, detail=detail, error=error)
    return run.with_charges(state).with_error(detail)


def _route(run: SegmentContext, node: Node, state: AgentState) -> Route:
    if run.halted:
        _stop_cancelled(run)
    if run.stop is None:
        try:
            route = run.runtime.router.__call__(node, state)
            if route.satisfied is not None:
                run.stop = Ending.of(route.satisfied, iteration_finished=route.iteration_finished)
            return route
        except (ConditionError, Interrupt) as e:
            run.stop = Ending(CONDITION_ERROR, error=e)
    return Route(TERMINATE, run.stop_reason)


async def _divert(run: SegmentContext, node: Node, state: AgentState, route: Route) -> Route:
    impls = run.runtime.hooks.impls("locus_decide_route")
    chosen = await decide_route(impls, node, state, route.next, legal(node, state), run.health)
    if isinstance(chosen, Cancel):
        run.cancel(chosen.reason)
    if run.halted or isinstance(chosen, Cancel):
        _stop_cancelled(run)
        return Route(TERMINATE, run.stop_reason)
    route = run.runtime.router.divert(node, state, route, chosen)
    if route.satisfied is not None:
        run.stop = Ending.of(route.satisfied, iteration_finished=route.iteration_finished)
    elif route.next is TERMINATE and run.stop is None:
        run.stop = Ending(DIVERTED, detail=route.why)
    return route


async def end_suspended(run: SegmentContext) -> tuple[AgentState, Node | None]:
    """Lead a node that asked a person to the end, because the run is cancelled: the questions stay without an answer.

    As with a resume that ends before it begins, the journal says what became of the other calls.
    """
    host = run.host
    await host.flush()
    record = await JournalHost.peek(host.store, run.thread_id) or host
    _stop_cancelled(run)
    new = with_recorded_results(record, run.with_charges(host.state), run.stop_reason)
    return await commit(run, host.state, new, host.open_node or EXECUTE, TERMINATE, ""), TERMINATE


def _stop_cancelled(run: SegmentContext) -> None:
    # An error or a condition that came first stays the reason.
    if run.stop is None and run.cancelled is not None:
        run.host.defer(Cancelled(run_id=run.run_id, reason=run.cancelled))
        run.stop = Ending.from_cancel(run.cancelled)


async def commit(
    run: SegmentContext, old: AgentState, new: AgentState, node: str, following: str, why: str, instead_of: str = ""
) -> AgentState:
    """Make a transition: one append, then the event about it."""
    iteration, is_reported, ending = new.iteration, run.has_listener(CheckpointEvent), None
    if following == THINK and node != START:
        iteration += 1
    elif following in _LAST and run.stop is not None:
        # Written with the transition into Terminate as well, so that a crash in between does not lose it.
        ending = run.stop
        why = ending.reason
        iteration += ending.iteration_finished and following == TERMINATE
    if is_reported or (following == END and run.has_listener(TerminateEvent)):
        when: When = "now"
    else:
        when = WHEN_BEFORE.get(following, "now")
    run.state = state = await run.host.commit(
        old,
        new,
        node=node,
        next_node=following,
        why=why,
        ending=ending,
        instead_of=instead_of,
        uncharged=run.uncharged,
        request_id=last_request_id(new) if node == START else "",
        active_seconds=new.active_seconds + run.take_elapsed(),
        iteration=iteration,
        when=when,
    )
    if following == THINK and node != START:
        run.cleared = state
    if is_reported:
        await run.emit(CheckpointEvent(node=node, next_node=following, why=why, head=run.host.head))
        run.take_retry()
    return state


# -- ending ---------------------------------------------------------------------------------------


async def _finish(run: SegmentContext, old: AgentState, new: AgentState) -> AgentState:
    ending = run.stop
    if ending is None:  # resumed right at Terminate: the transition before says why
        last = run.host.last
        ending = run.stop = Ending(last.why, last.satisfied) if last is not None else Ending("NoToolCalls")
    return await commit(run, old, new, TERMINATE, END, ending.reason)


async def emit_end(run: SegmentContext, state: AgentState, ending: Ending, *, replayed: bool = False) -> None:
    """The last event of a segment; replayed where it describes the end of an earlier one."""
    run.ended = True
    if not run.has_listener(TerminateEvent):
        return
    last = state.last_assistant
    await run.emit(
        TerminateEvent(
            reason=ending.reason,
            detail=ending.detail,
            satisfied=ending.satisfied,
            final_message=last.text if last is not None else "",
            iterations_used=state.iteration + (not ending.iteration_finished),
            total_tool_calls=len(state.tool_executions),
            final_confidence=state.confidence,
            usage=state.usage,
            error=ending.error_text,
            replayed=replayed,
        )
    )
