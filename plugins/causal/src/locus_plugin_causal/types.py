"""What part an untyped node plays, by its place among causes and effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from locus_plugin_causal.graph import CausalEdge, CausalNode, NodeType, Relation

__all__ = ["fill_types"]


def fill_types(nodes: Mapping[str, CausalNode], edges: Iterable[CausalEdge]) -> dict[str, CausalNode]:
    """The nodes, with a type for each claimed one that has none: in O(nodes + edges).

    What causes others and has no cause itself is a root cause, what only has causes a symptom, what has both is
    intermediate (all of a ring, too). A node without a cause or an effect stays unknown, and so do calls of a trace,
    of which the rules of the trace have said what can be proved.
    """
    real = [edge for edge in edges if edge.relation is Relation.CAUSES and edge.cause != edge.effect]
    causing, caused = {edge.cause for edge in real}, {edge.effect for edge in real}

    def typed(node: CausalNode) -> CausalNode:
        if node.node_type is not NodeType.UNKNOWN or node.source != "claim":
            return node
        if node.id in causing:
            return evolve(node, node_type=NodeType.INTERMEDIATE if node.id in caused else NodeType.ROOT_CAUSE)
        return evolve(node, node_type=NodeType.SYMPTOM) if node.id in caused else node

    return {key: typed(node) for key, node in nodes.items()}
