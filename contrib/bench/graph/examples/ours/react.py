"""ReAct with memory: an agent that searches, two turns of one conversation."""

from __future__ import annotations

from typing import Any

from locus import Agent, tool
from locus.journal import MemoryStore


@tool
def search(query: str) -> str:
    """Search the web."""
    return "60 degrees and foggy" if "sf" in query.lower() else "90 degrees and sunny"


def main(model: Any) -> Any:
    agent = Agent(model, tools=[search], checkpointer=MemoryStore())
    first = agent.run_sync("what is the weather in sf", thread_id="42")
    last = agent.run_sync("what about ny", thread_id="42")
    return {"first": first.text, "last": last.text, "messages": len(last.state.messages)}
