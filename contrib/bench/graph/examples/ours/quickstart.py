"""The quickstart: an agent with tools, by hand, as a node that asks the model and one that runs the tools."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from locus.multiagent.graph import END, START, NodeContext, StateGraph

from locus import tool
from locus.core.messages import Message, ToolResult


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
    messages: Annotated[list[Message], operator.add]
    llm_calls: int


async def llm_call(state: State, ctx: NodeContext) -> Any:
    system = Message("system", "You are an assistant that does arithmetic.")
    answer = await ctx.call_model([system, *state["messages"]], tools=[multiply, add])
    return {"messages": [answer.message], "llm_calls": state.get("llm_calls", 0) + 1}


def tool_node(state: State) -> Any:
    results = []
    for call in state["messages"][-1].tool_calls:
        observation = tools_by_name[call.name](**call.arguments)
        results.append(Message("tool", ToolResult(call.id, str(observation))))
    return {"messages": results}


def should_continue(state: State) -> str:
    return "tool_node" if state["messages"][-1].tool_calls else END


def main(model: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("llm_call", llm_call)
    graph.add_node("tool_node", tool_node)
    graph.add_edge(START, "llm_call")
    graph.add_conditional_edges("llm_call", should_continue, ["tool_node", END])
    graph.add_edge("tool_node", "llm_call")
    agent = graph.compile(model=model)
    result = agent.run_sync({"messages": [Message("user", "Add 3 and 4, and multiply it by 2.")]}).values
    messages = result["messages"]
    return {"answer": messages[-1].text, "messages": len(messages), "llm_calls": result["llm_calls"]}
