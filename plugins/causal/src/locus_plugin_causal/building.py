"""`build_causal_chain`: a chain from events, claims or data about causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from locus.core.events import ToolCacheHitEvent, ToolCompleteEvent
from locus.core.state import ToolExecution
from locus_plugin_causal.chain import CausalChain
from locus_plugin_causal.claims import ClaimBuilder
from locus_plugin_causal.events import CausalEdgeEvent, CausalNodeEvent
from locus_plugin_causal.graph import CausalEdge, CausalNode, Relation
from locus_plugin_causal.trace import TraceBuilder
from locus_plugin_causal.types import fill_types

__all__ = ["build_causal_chain", "chain_of"]


def build_causal_chain(events: Iterable[Any], *, known: Iterable[str] = ()) -> CausalChain:
    """The chain that events describe.

    Each of them is one of these; anything else, and whatever is malformed, is left out:

    - a tool call: a `ToolExecution` (``state.tool_executions``), a `ToolCompleteEvent` or a `ToolCacheHitEvent`; the
      rules of `locus_plugin_causal.trace` say what caused what;
    - a claim: ``{"label": text, "causes": [labels], "prevents": [labels], "type": "root_cause" | "intermediate" |
      "symptom" | "unknown", "confidence": 0.0 to 1.0}``, where only the label is needed, ``causes`` are what caused it
      and ``prevents`` what it prevented. A label without a type gets one by its place, see `fill_types`; a label
      ``c3`` means that node of the trace;
    - a `CausalNodeEvent` or `CausalEdgeEvent` of a run.

    Args:
        events: the events.
        known: texts that the run began with (the user's words): a value in them was not brought by any call.
    """
    calls: list[ToolExecution] = []
    claims: list[Any] = []
    told = CausalChain()
    nodes: dict[str, CausalNode] = {}
    edges: list[CausalEdge] = []
    for event in events if isinstance(events, Iterable) else ():
        if isinstance(event, ToolExecution):
            calls.append(event)
        elif isinstance(event, ToolCompleteEvent | ToolCacheHitEvent):
            calls.append(_execution(event))
        elif isinstance(event, CausalNodeEvent):
            _take_node(event, nodes)
        elif isinstance(event, CausalEdgeEvent):
            _take_edge(event, edges)
        elif isinstance(event, Mapping):
            claims.append(event)
    if nodes:
        known_edges = [edge for edge in edges if edge.cause in nodes and edge.effect in nodes]
        told = CausalChain(fill_types(nodes, known_edges), known_edges)
    trace = TraceBuilder(known)
    trace.extend(calls)
    return told.merge(chain_of(trace, claims))


def chain_of(trace: TraceBuilder, claims: Iterable[Any] = ()) -> CausalChain:
    """The chain of a trace, with claims about it."""
    claimed = ClaimBuilder(trace.nodes)
    claimed.extend(claims)
    nodes = fill_types(claimed.nodes, claimed.edges.values())
    return CausalChain({**trace.nodes, **nodes}, [*trace.edges.values(), *claimed.edges.values()])


def _execution(event: ToolCompleteEvent | ToolCacheHitEvent) -> ToolExecution:
    return ToolExecution(
        tool_name=event.tool_name,
        arguments=event.arguments,
        result=event.result,
        error=event.error,
        call_id=event.call_id,
        cache_hit=isinstance(event, ToolCacheHitEvent),
        iteration=event.iteration,
    )


def _take_node(event: CausalNodeEvent, nodes: dict[str, CausalNode]) -> None:
    try:
        source: Any = event.source
        nodes[event.node_id] = CausalNode(event.node_id, event.label, event.node_type, event.confidence, source)
    except ValueError:
        return


def _take_edge(event: CausalEdgeEvent, edges: list[CausalEdge]) -> None:
    try:
        source: Any = event.source
        relation = Relation(event.relation)
        edges.append(CausalEdge(event.cause, event.effect, relation, event.confidence, event.why, source))
    except ValueError:
        return
