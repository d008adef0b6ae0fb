"""Deciders: a call runs only when nobody objects, and whoever cannot say objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from locus.core.directives import Allow, Cancel, Continue, Decision, Interrupt, Reject
from locus.hooks.dispatch.call import ask, is_failure, nonsense

if TYPE_CHECKING:
    from collections.abc import Container

    from locus.core.events import HookFailedEvent
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext
    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

__all__ = ["decide_route", "decide_tool_call"]

Node = TypeVar("Node", bound=str)

_ALLOW = Allow()
_STRICTNESS: dict[type, int] = {Allow: 0, Reject: 1, Interrupt: 2, Cancel: 3}
_EXPECTED = "Allow(), Reject(...), Interrupt(...), Cancel(...), or None to allow"


async def decide_tool_call(impls: tuple[Impl, ...], call: ToolCall, run: RunContext, health: HookHealth) -> Decision:
    """May this call run? Everybody is asked and the strictest answer wins; whoever fails rejects the call.

    Args:
        impls: ``table.impls("locus_decide_tool_call")``.
        call: the call as the model asked for it.
        run: what the hooks see of the run.
        health: the run's failures; what decides is never quarantined, for that would let everything through.
    """
    strictest: Decision = _ALLOW
    failed: list[HookFailedEvent] | None = None
    for impl in impls:
        try:
            decision = _decision(await ask(impl, call, run))
        except Interrupt as asked:
            # Raising is how a tool asks; a decider that does the same means the same.
            decision = Interrupt(asked.question, asked.options)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=False))
            decision = Reject(f"plugin_error: {impl.plugin!r} failed while it decided about this call")
        if _STRICTNESS[type(decision)] > _STRICTNESS[type(strictest)]:
            strictest = decision
    await health.tell(failed)
    return strictest


def _decision(answer: Any) -> Decision:
    if answer is None or type(answer) is Continue:
        return _ALLOW
    if type(answer) not in _STRICTNESS:
        nonsense(answer, _EXPECTED)
    decision: Decision = answer
    return decision


async def decide_route(
    impls: tuple[Impl, ...],
    node: Node,
    state: AgentState,
    proposed: Node,
    legal: Container[Node],
    health: HookHealth,
) -> Node | Cancel:
    """Where the run goes next: the first other legal node that somebody names, else what the router proposed.

    Args:
        impls: ``table.impls("locus_decide_route")``.
        node: the node that finished.
        state: the state it left.
        proposed: the router's route; the loop does not ask when that is Terminate.
        legal: the nodes that can follow ``node``.
        health: the run's failures. The router's route stands when an opinion fails; a failing guard cancels.
    """
    failed: list[HookFailedEvent] | None = None
    route: Node | Cancel = proposed
    for impl in impls:
        if impl in health.quarantined:
            continue
        try:
            answer = await ask(impl, node, state, proposed)
            if answer is None or answer == proposed:
                continue
            if not isinstance(answer, str) or answer not in legal:
                nonsense(answer, f"None, or a node that can follow {node!s}")
            route = type(proposed)(answer)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=True))
            if not impl.guard:
                continue
            route = Cancel(f"guard {impl.plugin} failed")
        break
    await health.tell(failed)
    return route
