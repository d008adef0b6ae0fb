"""The plugin's events: the graph as it grows, what is wrong with it, and an inference that did not come about."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from locus.plugin import Event, register_event

__all__ = ["CausalConflictEvent", "CausalEdgeEvent", "CausalInferenceFailedEvent", "CausalNodeEvent"]


def _ids(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class CausalNodeEvent(Event):
    """A node was added, or its type is another one now.

    Args:
        node_id: unique in the run; a later event with the same one replaces this.
        label: what happened.
        node_type: ``"root_cause"``, ``"intermediate"``, ``"symptom"`` or ``"unknown"``.
        confidence: 0.0 to 1.0.
        source: ``"trace"`` or ``"claim"``.
    """

    node_id: str = ""
    label: str = ""
    node_type: str = ""
    confidence: float = 0.0
    source: str = ""


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class CausalEdgeEvent(Event):
    """An edge was added.

    Args:
        cause, effect: ids of nodes.
        relation: ``"causes"`` or ``"prevents"``.
        confidence: 0.0 to 1.0.
        why: how one knows.
        source: ``"trace"`` or ``"claim"``.
    """

    cause: str = ""
    effect: str = ""
    relation: str = ""
    confidence: float = 0.0
    why: str = ""
    source: str = ""


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class CausalConflictEvent(Event):
    """The graph has a cycle or a contradiction.

    Args:
        kind: ``"cycle"`` or ``"contradiction"``.
        nodes: ids, see `Conflict`.
        labels: what these nodes are.
    """

    kind: str = ""
    nodes: tuple[str, ...] = field(default=(), converter=_ids)
    labels: tuple[str, ...] = field(default=(), converter=_ids)


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class CausalInferenceFailedEvent(Event):
    """The model that was to infer causes failed, or its answer holds none; the graph stays as it was.

    Args:
        error: what happened.
        error_type: the name of the exception.
    """

    error: str = ""
    error_type: str = ""
