"""Decide: may this tool call run, and where does the run go next?

Sync or async. A decider that fails does not let anything through: the call it was asked about is rejected.
A failing opinion about the route is dropped, because the router's own route is always a legal one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.directives import Continue, Decision
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_decide_tool_call(call: ToolCall, run: RunContext) -> Decision | Continue | None:
    """May this call run? Asked before its start event, for each call on its own.

    Every implementation is asked and the strictest answer wins: Cancel, Interrupt, Reject, Allow.
    `Reject` gives this one call an error result with the reason, `Interrupt` asks a person, `Cancel` ends
    the run; None and Continue mean Allow. An implementation that fails rejects the call.
    """


@spec(_SINCE)
def locus_decide_route(node: str, state: AgentState, proposed: str) -> str | None:
    """Another node to go to from ``node`` than the router's ``proposed`` one, or None.

    The first implementation that names another node wins; it must be one that can follow ``node``. Not asked
    when the run is about to terminate. The decision is recorded, so a replay does not ask again.
    """
