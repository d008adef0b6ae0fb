"""Infers the type of an untyped node from its position among causes and effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from locus_plugin_causal.graph import CausalEdge, CausalNode, NodeType, Relation

__all__ = ["fill_types"]


def fill_types(nodes: Mapping[str, CausalNode], edges: Iterable[CausalEdge]) -> dict[str, CausalNode]:
    """The nodes, with a type for each claimed one that has none: in O(nodes + edges).

    A node with effects but no cause is a root cause, one with causes but no effect a symptom, and one with both is
    intermediate (as is every node of a cycle). A node without a cause or an effect stays unknown, and so do calls of a
    trace: its own rules have already given them the types that can be proved.
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
