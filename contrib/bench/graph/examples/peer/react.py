"""ReAct with memory: an agent that searches, two turns of one conversation."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


@tool
def search(query: str) -> str:
    """Search the web."""
    return "60 degrees and foggy" if "sf" in query.lower() else "90 degrees and sunny"


def should_continue(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


def main(model: Any) -> Any:
    bound = model.bind_tools([search])

    def call_model(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    workflow = StateGraph(MessagesState)
    workflow.add_node("agent", call_model)
    workflow.add_node("tools", ToolNode([search]))
    workflow.add_edge(START, "agent")
    workflow.add_conditional_edges("agent", should_continue)
    workflow.add_edge("tools", "agent")
    app = workflow.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "42"}}
    first = app.invoke({"messages": [HumanMessage(content="what is the weather in sf")]}, config)
    last = app.invoke({"messages": [HumanMessage(content="what about ny")]}, config)
    return {"first": first["messages"][-1].text, "last": last["messages"][-1].text, "messages": len(last["messages"])}
