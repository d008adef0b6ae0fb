"""A router: a first agent says who answers."""

from __future__ import annotations

from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, StateGraph

ROLES = {"billing": "You answer questions about invoices.", "technical": "You answer technical questions."}


def build(model: Any) -> Any:
    """Answer ``question`` by the role that fits it."""
    graph = StateGraph()
    ask = f"Which of {', '.join(ROLES)} is this for? Answer with the one word.\n"
    graph.add_node("sort", Agent(model), prompt=lambda values: ask + values["question"], into="role")
    for role, system in ROLES.items():
        graph.add_node(role, Agent(model, system_prompt=system), prompt="question", into="answer").add_edge(role, END)

    def route(values: dict[str, Any]) -> str:
        return next((role for role in ROLES if role in values["role"].lower()), "technical")

    return graph.add_edge(START, "sort").add_conditional_edges("sort", route, list(ROLES)).compile()
