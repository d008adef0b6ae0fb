"""One node after the other: run it, route, commit. Whatever drives a run, here or in an engine, drives it through this.

A transition is one append to the journal; nothing that a node, a hook or a tool raises leaves this module, except
what says that this worker must not go on.
"""

from __future__ import annotations

from locus.core.directives import Cancel
from locus.core.errors import ConditionError, StepFailed
from locus.core.events import CheckpointEvent, IterationEvent, TerminateEvent
from locus.core.journal import END, START, Cancelled
from locus.core.state import AgentState
from locus.hooks.dispatch import decide_route
from locus.journal.steps import WHEN
from locus.loop.context import ActiveRun
from locus.loop.router import TERMINATE, THINK, Node, Route, legal
from locus.loop.thread import Stop, cancel_reason

__all__ = ["advance_node", "commit", "tell_end"]


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
        JournalError: this worker must not go on; the run is left open.
    """
    run.entered(state)
    if node is THINK and run.hears(IterationEvent) and not run.halted:
        await run.tell(IterationEvent(token_total=state.total_tokens_used, cost=state.cost))
        run.take_retry()
    if run.halted and node is not TERMINATE:
        _stop_cancelled(run)
        return await commit(run, state, run.charged(state), node, TERMINATE, ""), TERMINATE
    try:
        new = await run.runtime.nodes[node](state, run)
    except Exception as e:  # noqa: BLE001 - nothing that a plugin's node raises may leave the loop
        new = _failed(run, node, state, e)
    new = run.charged(new)
    run.state = new
    if node is TERMINATE:
        # Whatever stood in for Terminate: a history with open calls could not be gone on with.
        return await _finish(run, state, new.with_calls_closed(run.ending)), None
    route = _routed(run, node, new)
    proposed = route.next
    if proposed is not TERMINATE and run.runtime.diverts:
        route = await _diverted(run, node, new, route)
    instead_of = "" if route.next is proposed else str(proposed)
    committed = await commit(run, state, new, node, route.next, route.why, instead_of)
    return committed, route.next


def _failed(run: ActiveRun, node: Node, state: AgentState, error: Exception) -> AgentState:
    """The state after a node that raised."""
    if run.host.stopped is not None:
        raise run.host.stopped  # no failure of the node
    told = f"{node.value}: {type(error).__name__}: {error}"
    run.stop = Stop("NodeError", detail=told, error=error)
    return run.charged(state).with_error(told)


def _routed(run: ActiveRun, node: Node, state: AgentState) -> Route:
    if run.halted:
        _stop_cancelled(run)
    if run.stop is None:
        try:
            return _settled(run, run.runtime.router(node, state))
        except ConditionError as e:
            run.stop = Stop("ConditionError", error=e)
    return Route(TERMINATE, run.ending)


async def _diverted(run: ActiveRun, node: Node, state: AgentState, route: Route) -> Route:
    impls = run.runtime.hooks.impls("locus_decide_route")
    chosen = await decide_route(impls, node, state, route.next, legal(node, state), run.health)
    if isinstance(chosen, Cancel):
        run.cancel(chosen.reason)
        _stop_cancelled(run)
        return Route(TERMINATE, run.ending)
    route = _settled(run, run.runtime.router.divert(node, state, route, chosen))
    if route.next is TERMINATE and run.stop is None:
        run.stop = Stop("Diverted", detail=route.why)
    return route


def _settled(run: ActiveRun, route: Route) -> Route:
    found = route.satisfied
    if found is not None:
        run.stop = Stop(found.reason, found.leaves, found.detail)
    return route


def _stop_cancelled(run: ActiveRun) -> None:
    # An error or a condition that came first stays the reason.
    if run.stop is None and run.cancelled is not None:
        run.host.hold(Cancelled(run_id=run.run_id, reason=run.cancelled))
        run.stop = Stop(cancel_reason(run.cancelled), ("Cancelled",))


async def commit(
    run: ActiveRun, old: AgentState, new: AgentState, node: str, following: str, why: str, instead_of: str = ""
) -> AgentState:
    """Make a transition: one append, then the event about it."""
    again = following == THINK and node != START
    stop, error = run.stop, None
    told = run.hears(CheckpointEvent) or (following == END and run.hears(TerminateEvent))
    if stop is not None and following in (TERMINATE, END):
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
        detail=stop.detail if stop is not None and following in (TERMINATE, END) else "",
        instead_of=instead_of,
        uncharged=run.uncharged,
        active_seconds=new.active_seconds + run.elapsed(),
        iteration=new.iteration + 1 if again else new.iteration,
        when="now" if told else WHEN.get(following, "now"),
    )
    run.state = state
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
    return await commit(run, old, new, TERMINATE, END, stop.reason)


async def tell_end(
    run: ActiveRun,
    state: AgentState,
    reason: str,
    satisfied: tuple[str, ...],
    error: BaseException | None,
    detail: str = "",
) -> None:
    """The last event of a segment."""
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
