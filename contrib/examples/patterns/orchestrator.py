"""An orchestrator with workers: a plan that a model makes says which tasks there are."""

from __future__ import annotations

import operator
from typing import Any

from attrs import frozen

from locus import Agent
from locus_plugin_graph import END, START, NodeContext, Send, StateGraph


@frozen
class Tasks:
    """What is to be done, a line each."""

    tasks: list[str]


def build(model: Any) -> Any:
    """Reach ``goal`` by tasks that do not depend on each other."""
    worker, graph = Agent(model), StateGraph(reducers={"done": operator.add}, effect="pure")

    async def work(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"done": [(await ctx.run_child(worker, values["task"])).raise_for_failure().text]}

    graph.add_node("plan", Agent(model, output_schema=Tasks), prompt=lambda values: f"Plan: {values['goal']}")
    graph.add_node("work", work)
    graph.add_node("report", Agent(model), prompt=lambda values: "Report on:\n" + "\n".join(values["done"]))
    graph.add_conditional_edges(
        "plan", lambda values: [Send("work", {"task": t}) for t in values["plan"]["tasks"]], ["work"]
    )
    return graph.add_edge(START, "plan").add_edge("work", "report").add_edge("report", END).compile()
