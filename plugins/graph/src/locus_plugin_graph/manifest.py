"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = {
    "Command": "plan",
    "CompiledGraph": "app",
    "ConflictingUpdate": "errors",
    "END": "plan",
    "GraphEnd": "condition",
    "GraphError": "errors",
    "GraphResult": "app",
    "NodeCompleteEvent": "events",
    "NodeContext": "context",
    "NodeError": "errors",
    "NodeStartEvent": "events",
    "START": "plan",
    "Send": "plan",
    "StateGraph": "builder",
}

plugin = Plugin(
    name="graph",
    api=(1, 0),
    summary="Runs graphs of nodes, edges, joins and parallel tasks over one state, as agents are run.",
    hooks=("locus_plugin_graph.commands.registration",),
    compat_paths={
        f"locus.multiagent.graph:{name}": f"locus_plugin_graph.{home}:{name}" for name, home in _NAMES.items()
    },
)
