"""A pipeline: each agent works on what the one before has made."""

from __future__ import annotations

from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, StateGraph


def build(model: Any) -> Any:
    """Outline, draft and polish a text on ``topic``."""
    graph = StateGraph()
    graph.add_node("outline", Agent(model), prompt=lambda values: f"Outline a text on {values['topic']}.")
    graph.add_node("draft", Agent(model), prompt=lambda values: f"Write it out:\n{values['outline']}")
    graph.add_node("polish", Agent(model), prompt=lambda values: f"Polish:\n{values['draft']}")
    graph.add_edge(START, "outline").add_edge("outline", "draft").add_edge("draft", "polish").add_edge("polish", END)
    return graph.compile()
