"""Claims about causes, as a model writes them: labels that name their causes. Invalid items are left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from locus_plugin_causal.graph import CausalEdge, CausalNode, NodeType, Relation

__all__ = ["ClaimBuilder", "claims_of"]

_LONGEST_LABEL = 300
#: The confidence of a claim that does not give one.
_UNSAID = 0.5
#: How many causes, and how many effects, one claim may name.
_MOST_NAMES = 100


def _label(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    return " ".join(value.split())[:_LONGEST_LABEL].rstrip()


def _labels(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(dict.fromkeys(label for each in given[:_MOST_NAMES] if (label := _label(each))))


def _type(value: Any) -> NodeType:
    try:
        return NodeType(str(value).strip().lower().replace("-", "_").replace(" ", "_"))
    except ValueError:
        return NodeType.UNKNOWN


def _confidence(value: Any) -> float:
    try:
        number = _UNSAID if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return _UNSAID
    return _UNSAID if math.isnan(number) else min(1.0, max(0.0, number))


@frozen
class Claim:
    """One claim: something happened, because of this, and it caused or prevented that."""

    label: str
    causes: tuple[str, ...]
    prevents: tuple[str, ...]
    node_type: NodeType
    confidence: float

    @classmethod
    def of(cls, item: Any) -> Claim | None:
        """The claim that an item makes, or None."""
        if not isinstance(item, Mapping):
            return None
        label = _label(item.get("label"))
        if not label:
            return None
        return cls(
            label,
            _labels(item.get("causes")),
            _labels(item.get("prevents")),
            _type(item.get("type")),
            _confidence(item.get("confidence")),
        )

    def to_data(self) -> dict[str, Any]:
        """As an item again."""
        return {
            "label": self.label,
            "causes": self.causes,
            "prevents": self.prevents,
            "type": self.node_type.value,
            "confidence": self.confidence,
        }


def claims_of(items: Any, *, most: int | None = None) -> tuple[dict[str, Any], ...]:
    """What of an untrusted value are claims, in one form, and not more than so many."""
    given = items if isinstance(items, list | tuple) else []
    found = (claim.to_data() for item in given if (claim := Claim.of(item)) is not None)
    return tuple(found)[:most]


class ClaimBuilder:
    """Grows a graph with claims. A label is an id; one that is the id of a node of a trace means that node.

    Args:
        nodes: the nodes there are, by id.
    """

    def __init__(self, nodes: Mapping[str, CausalNode] | None = None) -> None:
        self._known = nodes if nodes is not None else {}
        self.nodes: dict[str, CausalNode] = {}
        self.edges: dict[tuple[str, str, Relation], CausalEdge] = {}
        self._implied: set[str] = set()

    def add(self, item: Any) -> bool:
        """Take an item in; False when it is not a claim."""
        claim = Claim.of(item)
        if claim is None:
            return False
        label = claim.label
        if label not in self._known and (label not in self.nodes or label in self._implied):
            self._implied.discard(label)
            self.nodes[label] = CausalNode(label, label, claim.node_type, claim.confidence)
        for cause in claim.causes:
            self._connect(cause, label, claim.confidence, Relation.CAUSES)
        for effect in claim.prevents:
            self._connect(label, effect, claim.confidence, Relation.PREVENTS)
        return True

    def extend(self, items: Iterable[Any]) -> None:
        """Take items in."""
        for item in items:
            self.add(item)

    def _connect(self, cause: str, effect: str, confidence: float, relation: Relation) -> None:
        for end in (cause, effect):
            if end not in self._known and end not in self.nodes:
                self._implied.add(end)
                self.nodes[end] = CausalNode(end, end, NodeType.UNKNOWN, _UNSAID)
        edge = CausalEdge(cause, effect, relation, confidence)
        self.edges.setdefault(edge.key, edge)
