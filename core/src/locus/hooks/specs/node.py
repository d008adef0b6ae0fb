"""Node: the four nodes of the loop.

Sync or async, ``(state, run) -> state``. The kernel's own nodes are the last implementations of these hooks,
so a plugin replaces a node by answering before them, and leaves a case to them by returning None. A Think that
has an answer which needs no model, or another state to think on, hands it to `run.think`. What raises here is the
node's error, with a note that names the plugin, and is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_think(state: AgentState, run: RunContext) -> AgentState | None:
    """Think: ask the model. The first implementation that returns a state wins."""


@spec(_SINCE)
def locus_execute(state: AgentState, run: RunContext) -> AgentState | None:
    """Execute: run the tool calls of the last answer. The first implementation that returns a state wins."""


@spec(_SINCE)
def locus_reflect(state: AgentState, run: RunContext) -> AgentState | None:
    """Reflect: judge what was done. All implementations, in order, each on the state of the one before."""


@spec(_SINCE)
def locus_terminate(state: AgentState, run: RunContext) -> AgentState | None:
    """Terminate: leave a valid history. The first implementation that returns a state wins."""
