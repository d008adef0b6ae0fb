"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_WINDOW = "locus.reasoning.causal"

plugin = Plugin(
    name="causal",
    api=(1, 0),
    summary="Draws a graph of causes and effects from the tool trace, and finds cycles and contradictions in it.",
    hooks=("locus_plugin_causal.hooks:CausalHook",),
    settings="locus_plugin_causal.settings:CausalSettings",
    compat_paths={
        f"{_WINDOW}:CausalChain": "locus_plugin_causal.chain:CausalChain",
        f"{_WINDOW}:CausalEdge": "locus_plugin_causal.graph:CausalEdge",
        f"{_WINDOW}:CausalNode": "locus_plugin_causal.graph:CausalNode",
        f"{_WINDOW}:NodeType": "locus_plugin_causal.graph:NodeType",
        f"{_WINDOW}:Relation": "locus_plugin_causal.graph:Relation",
        f"{_WINDOW}:build_causal_chain": "locus_plugin_causal.building:build_causal_chain",
    },
    after=("guardrails", "reflexion"),
)
