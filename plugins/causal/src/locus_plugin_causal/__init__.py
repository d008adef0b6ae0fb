"""Causes and effects in the tool trace of an agent.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_causal.building import build_causal_chain
    from locus_plugin_causal.chain import CausalChain
    from locus_plugin_causal.events import (
        CausalConflictEvent,
        CausalEdgeEvent,
        CausalInferenceFailedEvent,
        CausalNodeEvent,
    )
    from locus_plugin_causal.graph import CausalEdge, CausalNode, Conflict, NodeType, Relation
    from locus_plugin_causal.hooks import CausalHook
    from locus_plugin_causal.report import CausalReport
    from locus_plugin_causal.settings import CausalSettings

__all__ = [
    "CausalChain",
    "CausalConflictEvent",
    "CausalEdge",
    "CausalEdgeEvent",
    "CausalHook",
    "CausalInferenceFailedEvent",
    "CausalNode",
    "CausalNodeEvent",
    "CausalReport",
    "CausalSettings",
    "Conflict",
    "NodeType",
    "Relation",
    "build_causal_chain",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_causal.building": ("build_causal_chain",),
        "locus_plugin_causal.chain": ("CausalChain",),
        "locus_plugin_causal.events": (
            "CausalConflictEvent",
            "CausalEdgeEvent",
            "CausalInferenceFailedEvent",
            "CausalNodeEvent",
        ),
        "locus_plugin_causal.graph": ("CausalEdge", "CausalNode", "Conflict", "NodeType", "Relation"),
        "locus_plugin_causal.hooks": ("CausalHook",),
        "locus_plugin_causal.report": ("CausalReport",),
        "locus_plugin_causal.settings": ("CausalSettings",),
    },
)
