"""The bodies of nodes that run agents and graphs, and what a function of a node takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from locus.core import encode
from locus_plugin_graph.errors import GraphError, NodeError
from locus_plugin_graph.values import RECORD, own_writes

if TYPE_CHECKING:
    from locus import Agent, AgentResult, Budget
    from locus_plugin_graph.app import CompiledGraph
    from locus_plugin_graph.context import NodeContext

    Into = Callable[[dict[str, Any], AgentResult[Any]], Mapping[str, Any] | None]

__all__ = ["is_async", "run_agent", "run_graph", "takes_context"]


def takes_context(name: str, fn: Callable[..., Any]) -> bool:
    """Whether a function takes a `NodeContext` beside the values.

    Raises:
        GraphError: it takes something else.
    """
    try:
        parameters = [*inspect.signature(fn).parameters.values()]
    except (TypeError, ValueError):
        return False
    given = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in given if p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return len(given) > 1
    if not given or len(needed) > 2:
        raise GraphError(f"node {name!r} must take the values, or the values and a NodeContext, got {fn!r:.80}")
    return len(needed) == 2 or (len(given) > 1 and given[1].name == "ctx")


def is_async(fn: Any) -> bool:
    """Whether a call of it gives something to await."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


async def run_agent(
    agent: Agent[Any, Any],
    prompt: Any,
    into: str | Into,
    budget: Budget | None,
    values: dict[str, Any],
    ctx: NodeContext,
) -> Any:
    """The body of a node that runs an agent."""
    asked = values[prompt] if isinstance(prompt, str) else prompt(values)
    result = (await ctx.run_child(agent, asked, budget=budget)).raise_for_failure()
    if callable(into):
        return into(values, result)
    return {into: result.text if result.parsed is None else encode(result.parsed)}


async def run_graph(
    graph: CompiledGraph,
    keys: frozenset[str] | None,
    outputs: Mapping[str, str] | None,
    budget: Budget | None,
    values: dict[str, Any],
    ctx: NodeContext,
) -> dict[str, Any]:
    """The body of a node that runs a graph.

    Args:
        graph: the graph.
        keys: those of the graph that the node is in; None = any.
        outputs: what goes back, key here -> key there; None = what its nodes wrote.
        budget: what it may spend.
        values: of the node.
        ctx: of the node.
    """
    known = graph.plan.keys
    given = values if known is None else {key: value for key, value in values.items() if key in known}
    result = (await ctx.run_child(graph, given, budget=budget)).raise_for_failure()
    if RECORD not in result.state.metadata:
        raise NodeError(ctx.node, f"its graph ended with {result.stop_reason!r} before its first super-step")
    wrote = own_writes(result.state)
    if outputs is not None:
        return {key: wrote[there] for key, there in outputs.items() if there in wrote}
    return {key: value for key, value in wrote.items() if keys is None or key in keys}
