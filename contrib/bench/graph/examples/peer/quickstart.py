"""The quickstart: an agent with tools, by hand, as a node that asks the model and one that runs the tools."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph


@tool
def multiply(a: int, b: int) -> int:
    """Multiply a and b."""
    return a * b


@tool
def add(a: int, b: int) -> int:
    """Add a and b."""
    return a + b


tools_by_name = {tool.name: tool for tool in [multiply, add]}


class State(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]
    llm_calls: int


def main(model: Any) -> Any:
    model_with_tools = model.bind_tools([multiply, add])

    def llm_call(state: State) -> Any:
        system = SystemMessage("You are an assistant that does arithmetic.")
        answer = model_with_tools.invoke([system, *state["messages"]])
        return {"messages": [answer], "llm_calls": state.get("llm_calls", 0) + 1}

    def tool_node(state: State) -> Any:
        results = []
        for call in state["messages"][-1].tool_calls:
            observation = tools_by_name[call["name"]].invoke(call["args"])
            results.append(ToolMessage(content=str(observation), tool_call_id=call["id"]))
        return {"messages": results}

    def should_continue(state: State) -> str:
        return "tool_node" if state["messages"][-1].tool_calls else END

    graph = StateGraph(State)
    graph.add_node("llm_call", llm_call)
    graph.add_node("tool_node", tool_node)
    graph.add_edge(START, "llm_call")
    graph.add_conditional_edges("llm_call", should_continue, ["tool_node", END])
    graph.add_edge("tool_node", "llm_call")
    agent = graph.compile()
    result = agent.invoke({"messages": [HumanMessage(content="Add 3 and 4, and multiply it by 2.")]})
    messages = result["messages"]
    return {"answer": messages[-1].text, "messages": len(messages), "llm_calls": result["llm_calls"]}
