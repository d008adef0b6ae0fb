"""Fan-out and reduce: one agent for each part, side by side, and one that puts the answers together."""

from __future__ import annotations

import operator
from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, NodeContext, Send, StateGraph


def build(model: Any) -> Any:
    """Summarise each of ``texts``, then all of them."""
    reader, graph = Agent(model), StateGraph(reducers={"notes": operator.add}, effect="pure")

    async def read(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        result = await ctx.run_child(reader, f"Summarise:\n{values['text']}")
        return {"notes": [result.raise_for_failure().text]}

    graph.add_node("read", read, retries=1)
    graph.add_node(
        "sum_up", Agent(model), prompt=lambda values: "Summarise:\n" + "\n".join(values["notes"]), into="summary"
    )
    graph.add_conditional_edges(START, lambda values: [Send("read", {"text": t}) for t in values["texts"]], ["read"])
    graph.add_edge("read", "sum_up").add_edge("sum_up", END)
    return graph.compile(max_concurrency=8)
