"""The parts of a causal chain: typed nodes, edges that cause or prevent, and what is wrong between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Literal

from attrs import field, frozen

__all__ = ["CausalEdge", "CausalNode", "Conflict", "NodeType", "Relation", "Source", "clamp"]

#: Where a node or an edge comes from: the rules about the tool trace, or a claim (a model's, a user's).
Source = Literal["trace", "claim"]


class NodeType(StrEnum):
    """What part a node plays."""

    ROOT_CAUSE = "root_cause"
    INTERMEDIATE = "intermediate"
    SYMPTOM = "symptom"
    UNKNOWN = "unknown"


class Relation(StrEnum):
    """What an edge says about its two ends."""

    CAUSES = "causes"
    PREVENTS = "prevents"


def clamp(value: Any) -> float:
    """A confidence from 0.0 to 1.0.

    Raises:
        ValueError: it is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"confidence must be a number from 0.0 to 1.0, got {value!r}")
    return min(1.0, max(0.0, float(value)))


def _ids(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@frozen
class CausalNode:
    """Something that happened.

    Args:
        id: unique in its chain. Calls of a trace are ``c1``, ``c2``, ... by the place of the first such call in the
            run, their failures ``e1``, ``e2``, ...
        label: what happened, for people.
        node_type: what part it plays.
        confidence: 0.0 to 1.0, clamped; what a trace shows is 1.0.
        source: where it comes from.
    """

    id: str
    label: str
    node_type: NodeType = field(default=NodeType.UNKNOWN, converter=NodeType)
    confidence: float = field(default=1.0, converter=clamp)
    source: Source = "claim"


@frozen
class CausalEdge:
    """One node's effect on another.

    Args:
        cause: the id of the node that acts.
        effect: the id of the node that it acts on.
        relation: what it does to it.
        confidence: 0.0 to 1.0, clamped.
        why: how one knows, for people.
        source: where it comes from.
    """

    cause: str
    effect: str
    relation: Relation = field(default=Relation.CAUSES, converter=Relation)
    confidence: float = field(default=1.0, converter=clamp)
    why: str = ""
    source: Source = "claim"

    @property
    def key(self) -> tuple[str, str, Relation]:
        """What makes two edges the same statement."""
        return (self.cause, self.effect, self.relation)


@frozen
class Conflict:
    """What cannot be, or should not.

    Args:
        kind: ``"cycle"``: nodes that cause each other in a ring. ``"contradiction"``: a node is said both to cause and
            to prevent another.
        nodes: the ids; of a cycle in order, each the cause of the next and the last that of the first.
    """

    kind: Literal["cycle", "contradiction"]
    nodes: tuple[str, ...] = field(converter=_ids)

    @classmethod
    def cycle(cls, nodes: Sequence[str]) -> Conflict:
        """A ring, written from one and the same of its nodes wherever it was entered."""
        at = min(range(len(nodes)), key=lambda i: (len(nodes[i]), nodes[i]))
        return cls("cycle", (*nodes[at:], *nodes[:at]))
