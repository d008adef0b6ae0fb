"""The machine: a pure router, four nodes, one driver; here is what an engine or a replay drives it with."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.core.directives import LeftOpen as LeftOpen
    from locus.core.directives import Suspended as Suspended
    from locus.hooks.context import as_current as as_current
    from locus.loop.budget import with_limits as with_limits
    from locus.loop.context import SegmentContext as SegmentContext
    from locus.loop.input import thread_name as thread_name
    from locus.loop.runtime import AgentRuntime as AgentRuntime
    from locus.loop.runtime import NodeFunction as NodeFunction
    from locus.loop.thread import ended_before as ended_before
    from locus.loop.thread import matched_answers as matched_answers
    from locus.loop.thread import restore_children as restore_children
    from locus.loop.transition import advance_node as advance_node
    from locus.models.call import request_fingerprint as request_fingerprint
    from locus.tools.session_tools import restore as restore

_MODULES = {
    "locus.core.directives": ("LeftOpen", "Suspended"),
    "locus.hooks.context": ("as_current",),
    "locus.loop.budget": ("with_limits",),
    "locus.loop.context": ("SegmentContext",),
    "locus.loop.input": ("thread_name",),
    "locus.loop.runtime": ("AgentRuntime", "NodeFunction"),
    "locus.loop.thread": ("ended_before", "matched_answers", "restore_children"),
    "locus.loop.transition": ("advance_node",),
    "locus.models.call": ("request_fingerprint",),
    "locus.tools.session_tools": ("restore",),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
