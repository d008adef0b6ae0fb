"""An evaluator loop: a draft is judged and written again until it is good enough, or often enough."""

from __future__ import annotations

import operator
from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, StateGraph

TRIES = 3


def build(model: Any) -> Any:
    """Write on ``topic``."""
    graph = StateGraph(reducers={"tries": operator.add}, effect="pure")

    def ask(values: dict[str, Any]) -> str:
        return f"Write a line on {values['topic']}. What was said of the last one: {values.get('verdict', 'nothing')}"

    graph.add_node("write", Agent(model), prompt=ask, into="draft").add_node("count", lambda values: {"tries": 1})
    graph.add_node(
        "judge", Agent(model), prompt=lambda values: f"GOOD, or what is wrong?\n{values['draft']}", into="verdict"
    )
    graph.add_edge(START, "write").add_edge("write", "count").add_edge("count", "judge")

    def next_node(values: dict[str, Any]) -> str:
        return END if values["verdict"].startswith("GOOD") or values["tries"] >= TRIES else "write"

    return graph.add_conditional_edges("judge", next_node, ["write", END]).compile()
