"""A chain as a picture: the text forms of Mermaid and of Graphviz."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from locus_plugin_causal.graph import CausalEdge, CausalNode, NodeType, Relation

__all__ = ["to_dot", "to_mermaid"]

_MERMAID = {
    NodeType.ROOT_CAUSE: ('{{"', '"}}'),
    NodeType.INTERMEDIATE: ('["', '"]'),
    NodeType.SYMPTOM: ('(["', '"])'),
    NodeType.UNKNOWN: ('("', '")'),
}
_DOT = {
    NodeType.ROOT_CAUSE: "hexagon",
    NodeType.INTERMEDIATE: "box",
    NodeType.SYMPTOM: "ellipse",
    NodeType.UNKNOWN: "plain",
}


def to_mermaid(nodes: Mapping[str, CausalNode], edges: Iterable[CausalEdge]) -> str:
    """The text of a Mermaid flowchart; what prevents is dotted. Nodes are numbered, so that any id will do."""
    numbers = {node_id: f"n{at}" for at, node_id in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes.values():
        before, after = _MERMAID[node.node_type]
        lines.append(f"    {numbers[node.id]}{before}{_entities(node.label)}{after}")
    for edge in edges:
        arrow = "-->" if edge.relation is Relation.CAUSES else "-. prevents .->"
        lines.append(f"    {numbers[edge.cause]} {arrow} {numbers[edge.effect]}")
    return "\n".join(lines) + "\n"


def to_dot(nodes: Mapping[str, CausalNode], edges: Iterable[CausalEdge]) -> str:
    """The text of a Graphviz digraph; what prevents is dashed."""
    numbers = {node_id: f"n{at}" for at, node_id in enumerate(nodes)}
    lines = ["digraph causes {", "    rankdir=LR;"]
    for node in nodes.values():
        lines.append(f'    {numbers[node.id]} [label="{_quote(node.label)}", shape={_DOT[node.node_type]}];')
    for edge in edges:
        style = "" if edge.relation is Relation.CAUSES else ' [style=dashed, label="prevents"]'
        lines.append(f"    {numbers[edge.cause]} -> {numbers[edge.effect]}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def _entities(text: str) -> str:
    """Text that can end no string and begin no markup of Mermaid's."""
    line = " ".join(text.split())
    return "".join(c if c.isalnum() or c in " .,_-/+=:'()?!" else f"#{ord(c)};" for c in line)


def _quote(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
