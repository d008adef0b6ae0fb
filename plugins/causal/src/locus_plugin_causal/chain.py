"""`CausalChain`: a graph of causes and effects, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from attrs import evolve, field, frozen

from locus.core import FrozenDict, register_value
from locus.core.errors import CheckpointError
from locus_plugin_causal.drawing import to_dot, to_mermaid
from locus_plugin_causal.graph import CausalEdge, CausalNode, Conflict, NodeType, Relation
from locus_plugin_causal.search import components, ring, shortest, simple_paths

__all__ = ["CausalChain"]

_FORMAT = 1


def _nodes(value: Mapping[str, CausalNode] | Iterable[CausalNode]) -> FrozenDict[str, CausalNode]:
    nodes = value.values() if isinstance(value, Mapping) else value
    return FrozenDict({node.id: node for node in nodes})


def _edges(value: Iterable[CausalEdge]) -> tuple[CausalEdge, ...]:
    return tuple({edge.key: edge for edge in value}.values())


@frozen
class CausalChain:
    """Nodes by id, and the edges between them.

    Args:
        nodes: nodes, or a mapping of them; of two with the same id the later one counts.
        edges: edges between them; of two that say the same the later one counts.

    Raises:
        ValueError: an edge leads from or to a node that is not there.
    """

    nodes: FrozenDict[str, CausalNode] = field(default=(), converter=_nodes)
    edges: tuple[CausalEdge, ...] = field(default=(), converter=_edges)

    def __attrs_post_init__(self) -> None:
        for edge in self.edges:
            for end in (edge.cause, edge.effect):
                if end not in self.nodes:
                    raise ValueError(f"the edge {edge.cause!r} -> {edge.effect!r} needs the node {end!r}; add it first")

    # -- building ---------------------------------------------------------------------------------

    def with_node(self, node: CausalNode) -> CausalChain:
        """One node added, or put in place of the one with its id. It copies: make large chains in one go."""
        return evolve(self, nodes={**self.nodes, node.id: node})

    def with_edge(self, edge: CausalEdge) -> CausalChain:
        """One edge added, or put in place of the one that says the same."""
        return evolve(self, edges=(*self.edges, edge))

    def merge(self, other: CausalChain) -> CausalChain:
        """This chain and another one; where both have a node or an edge, this chain's is kept."""
        return CausalChain({**other.nodes, **self.nodes}, (*other.edges, *self.edges))

    # -- asking -----------------------------------------------------------------------------------

    @cached_property
    def _effects(self) -> dict[str, list[str]]:
        return _leading(self.edges, Relation.CAUSES)

    @cached_property
    def _caused_nodes(self) -> frozenset[str]:
        return frozenset(edge.effect for edge in self.edges if edge.relation is Relation.CAUSES)

    @property
    def roots(self) -> tuple[CausalNode, ...]:
        """The nodes that cause something and that nothing causes."""
        return tuple(n for n in self.nodes.values() if n.id in self._effects and n.id not in self._caused_nodes)

    @property
    def root_causes(self) -> tuple[CausalNode, ...]:
        """The nodes of the type `NodeType.ROOT_CAUSE`."""
        return self.of_type(NodeType.ROOT_CAUSE)

    @property
    def symptoms(self) -> tuple[CausalNode, ...]:
        """The nodes of the type `NodeType.SYMPTOM`."""
        return self.of_type(NodeType.SYMPTOM)

    def of_type(self, node_type: NodeType) -> tuple[CausalNode, ...]:
        """The nodes of a type, in order."""
        return tuple(node for node in self.nodes.values() if node.node_type is node_type)

    @property
    def hypothesis(self) -> CausalNode | None:
        """The first root cause; without one the first node; None in an empty chain."""
        return next(iter(self.root_causes), next(iter(self.nodes.values()), None))

    @property
    def cycles(self) -> tuple[Conflict, ...]:
        """Rings of causes: one for each set of nodes that all cause each other. Linear in the size of the chain."""
        found = []
        for component in components(self.nodes, self._effects):
            within = frozenset(component)
            around = ring(self._effects, component[0], within=within)
            if around is not None:  # always: that is what makes it a component
                found.append(Conflict.cycle(around))
        return tuple(found)

    @property
    def contradictions(self) -> tuple[Conflict, ...]:
        """Pairs of nodes of which the first is said both to cause and to prevent the second."""
        causes = {(edge.cause, edge.effect) for edge in self.edges if edge.relation is Relation.CAUSES}
        prevents = [(edge.cause, edge.effect) for edge in self.edges if edge.relation is Relation.PREVENTS]
        return tuple(Conflict("contradiction", pair) for pair in prevents if pair in causes)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Cycles and contradictions."""
        return (*self.cycles, *self.contradictions)

    def path(self, cause: str, effect: str) -> tuple[str, ...] | None:
        """A shortest path from a cause to an effect: ids, both ends included; None without one."""
        return shortest(self._effects, [cause] if cause in self.nodes else [], effect)

    def paths(self, cause: str, effect: str, *, limit: int = 100, steps: int = 100_000) -> tuple[tuple[str, ...], ...]:
        """The ways from a cause to an effect that visit no node twice.

        Args:
            cause: the id where they begin.
            effect: the id where they end.
            limit: how many are given at most.
            steps: how many edges are followed at most in search of them.
        """
        if cause not in self.nodes or effect not in self.nodes:
            return ()
        return tuple(islice(simple_paths(self._effects, cause, effect, steps=steps), limit))

    # -- drawing ----------------------------------------------------------------------------------

    def to_mermaid(self) -> str:
        """The text of a Mermaid flowchart; what prevents is dotted."""
        return to_mermaid(self.nodes, self.edges)

    def to_dot(self) -> str:
        """The text of a Graphviz digraph; what prevents is dashed."""
        return to_dot(self.nodes, self.edges)

    # -- JSON -------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data. A chain can also be stored in ``state.metadata`` as it is."""
        return {
            "format": _FORMAT,
            "nodes": [[n.id, n.label, n.node_type.value, n.confidence, n.source] for n in self.nodes.values()],
            "edges": [[e.cause, e.effect, e.relation.value, e.confidence, e.why, e.source] for e in self.edges],
        }

    @classmethod
    def from_json(cls, data: Any) -> CausalChain:
        """A chain from its plain data.

        Raises:
            CheckpointError: it is not a chain, or of a newer version.
        """
        try:
            if data["format"] != _FORMAT:
                raise CheckpointError("causal", f"the format is {data['format']!r}; this version reads {_FORMAT}")
            nodes = [CausalNode(*each) for each in data["nodes"]]
            return cls(nodes, [CausalEdge(*each) for each in data["edges"]])
        except (LookupError, TypeError, ValueError) as e:
            raise CheckpointError("causal", f"this is not a causal chain: {type(e).__name__}: {e}") from e


def _leading(edges: Iterable[CausalEdge], relation: Relation) -> dict[str, list[str]]:
    leading: dict[str, list[str]] = {}
    for edge in edges:
        if edge.relation is relation:
            leading.setdefault(edge.cause, []).append(edge.effect)
    return leading


register_value(CausalChain, "locus_plugin_causal.CausalChain", CausalChain.to_json, CausalChain.from_json)
