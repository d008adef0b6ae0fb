"""Streaming: what each node wrote, the model's words as they come, and a progress note of a node's own."""

from __future__ import annotations

from typing import Any, TypedDict

from locus.multiagent.graph import END, START, NodeCompleteEvent, NodeContext, StateGraph

from locus import Agent
from locus.core.events import ModelChunkEvent, ToolProgressEvent


class State(TypedDict):
    topic: str
    joke: str


async def refine_topic(state: State, ctx: NodeContext) -> Any:
    await ctx.emit(ToolProgressEvent(message="refining"))
    return {"topic": state["topic"] + " and cats"}


async def main(model: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("refine_topic", refine_topic)
    graph.add_node("generate_joke", Agent(model), prompt=lambda s: f"Generate a joke about {s['topic']}", into="joke")
    graph.add_edge(START, "refine_topic", "generate_joke", END)
    seen: dict[str, list[Any]] = {"updates": [], "words": [], "notes": []}
    async for event in graph.compile().run({"topic": "ice cream"}):
        if isinstance(event, NodeCompleteEvent):
            seen["updates"].append((event.node, event.update))
        elif isinstance(event, ModelChunkEvent):
            seen["words"].append(event.text)
        elif isinstance(event, ToolProgressEvent):
            seen["notes"].append(event.message)
    return seen
