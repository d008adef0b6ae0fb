"""Graphs of nodes over one state: an agent whose Think is a super-step of all tasks that are due.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_graph.app import CompiledGraph, GraphResult
    from locus_plugin_graph.builder import StateGraph
    from locus_plugin_graph.condition import GraphEnd
    from locus_plugin_graph.context import NodeContext
    from locus_plugin_graph.errors import ConflictingUpdate, GraphError, NodeError
    from locus_plugin_graph.events import NodeCompleteEvent, NodeStartEvent
    from locus_plugin_graph.plan import END, START, Command, Send

__all__ = [
    "END",
    "START",
    "Command",
    "CompiledGraph",
    "ConflictingUpdate",
    "GraphEnd",
    "GraphError",
    "GraphResult",
    "NodeCompleteEvent",
    "NodeContext",
    "NodeError",
    "NodeStartEvent",
    "Send",
    "StateGraph",
]

_MODULES = {
    "app": ("CompiledGraph", "GraphResult"),
    "builder": ("StateGraph",),
    "condition": ("GraphEnd",),
    "context": ("NodeContext",),
    "errors": ("ConflictingUpdate", "GraphError", "NodeError"),
    "events": ("NodeCompleteEvent", "NodeStartEvent"),
    "plan": ("END", "START", "Command", "Send"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_graph.{module}": names for module, names in _MODULES.items()})
