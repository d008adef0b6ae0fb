"""A graph as a node: its parent shares a key with it, and does not know its other one."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class SubState(TypedDict):
    foo: str
    bar: str


class State(TypedDict):
    foo: str


def subgraph_node_1(state: SubState) -> Any:
    return {"bar": "bar"}


def subgraph_node_2(state: SubState) -> Any:
    return {"foo": state["foo"] + state["bar"]}


def node_1(state: State) -> Any:
    return {"foo": "hi! " + state["foo"]}


def main(model: Any) -> Any:
    inner = StateGraph(SubState)
    inner.add_node("subgraph_node_1", subgraph_node_1)
    inner.add_node("subgraph_node_2", subgraph_node_2)
    inner.add_edge(START, "subgraph_node_1")
    inner.add_edge("subgraph_node_1", "subgraph_node_2")
    graph = StateGraph(State)
    graph.add_node("node_1", node_1)
    graph.add_node("node_2", inner.compile())
    graph.add_edge(START, "node_1")
    graph.add_edge("node_1", "node_2")
    graph.add_edge("node_2", END)
    return graph.compile().invoke({"foo": "foo"})
