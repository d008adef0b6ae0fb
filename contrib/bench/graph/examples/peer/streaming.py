"""Streaming: what each node wrote, the model's words as they come, and a progress note of a node's own."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    topic: str
    joke: str


async def main(model: Any) -> Any:
    def refine_topic(state: State) -> Any:
        get_stream_writer()({"progress": "refining"})
        return {"topic": state["topic"] + " and cats"}

    async def generate_joke(state: State) -> Any:
        return {"joke": (await model.ainvoke(f"Generate a joke about {state['topic']}")).text}

    graph = StateGraph(State)
    graph.add_node("refine_topic", refine_topic)
    graph.add_node("generate_joke", generate_joke)
    graph.add_edge(START, "refine_topic")
    graph.add_edge("refine_topic", "generate_joke")
    graph.add_edge("generate_joke", END)
    seen: dict[str, list[Any]] = {"updates": [], "words": [], "notes": []}
    async for mode, chunk in graph.compile().astream(
        {"topic": "ice cream"}, stream_mode=["updates", "messages", "custom"]
    ):
        if mode == "updates":
            seen["updates"] += chunk.items()
        elif mode == "messages" and chunk[0].text:
            seen["words"].append(chunk[0].text)
        elif mode == "custom":
            seen["notes"].append(chunk["progress"])
    return seen
