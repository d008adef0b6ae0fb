"""Wrap: around a node, a model call or a tool call, like the skins of an onion.

Async. Call ``await call_next(value)`` once, several times (to try again) or not at all (to answer in its
place), and return what it returned or something of the same kind. What raises here becomes the node's
error, with a note that names the plugin, and is reported; what ``call_next`` raises is not the wrapper's
failure. A ``hook_timeout`` does not count the time spent in ``call_next``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext
    from locus.models.protocol import ModelRequest, ModelResponse

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_wrap_node(
    call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
) -> Awaitable[AgentState]:
    """Around one node: ``await call_next(state)`` runs it."""
    return call_next(state)


@spec(_SINCE)
def locus_wrap_model_call(
    call_next: Callable[[ModelRequest], Awaitable[ModelResponse]], request: ModelRequest, run: RunContext
) -> Awaitable[ModelResponse]:
    """Around one model call, inside its step: what comes out is what is recorded.

    ``call_next`` may be called again. It raises `BudgetExceeded`, and asks nobody, when the attempts before have used
    up what the run may spend, or the run is cancelled.

    Set ``buffers = True`` on the hook or in the manifest when the whole answer must be seen before anything
    of it is shown; the kernel then holds the chunks back.
    """
    return call_next(request)


# What a tool call results in belongs to the loop; a wrapper hands it on.
@spec(_SINCE)
def locus_wrap_tool_call(
    call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
) -> Awaitable[Any]:
    """Around one tool call, inside its step: ``await call_next(call)`` runs the body."""
    return call_next(call)
