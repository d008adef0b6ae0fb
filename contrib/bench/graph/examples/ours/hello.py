"""The first example of the README: two nodes, one after the other."""

from __future__ import annotations

from typing import Any, TypedDict

from locus.multiagent.graph import END, START, StateGraph


class State(TypedDict):
    text: str


def node_a(state: State) -> Any:
    return {"text": state["text"] + "a"}


def node_b(state: State) -> Any:
    return {"text": state["text"] + "b"}


def main(model: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("node_a", node_a)
    graph.add_node("node_b", node_b)
    graph.add_edge(START, "node_a", "node_b", END)
    return graph.compile().run_sync({"text": ""}).values
