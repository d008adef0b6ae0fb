"""Reflection: an essay is written, criticised and written again."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langgraph.graph import END, START, MessagesState, StateGraph


def prompt(system: str) -> Any:
    return ChatPromptTemplate.from_messages([("system", system), MessagesPlaceholder("messages")])


def should_continue(state: MessagesState) -> str:
    return END if len(state["messages"]) > 3 else "reflect"


def main(model: Any) -> Any:
    generate = prompt("Write the best essay possible for the user's request.") | model
    reflect = prompt("You are a teacher grading an essay: generate critique and recommendations.") | model

    def generation_node(state: MessagesState) -> Any:
        return {"messages": [generate.invoke({"messages": state["messages"]})]}

    def reflection_node(state: MessagesState) -> Any:
        # Seen from the other side, the essay is the user's and the critique one's own.
        swapped = {"ai": HumanMessage, "human": AIMessage}
        rest = [swapped[message.type](content=message.content) for message in state["messages"][1:]]
        answer = reflect.invoke({"messages": [state["messages"][0], *rest]})
        return {"messages": [HumanMessage(content=answer.content)]}

    graph = StateGraph(MessagesState)
    graph.add_node("generate", generation_node)
    graph.add_node("reflect", reflection_node)
    graph.add_edge(START, "generate")
    graph.add_conditional_edges("generate", should_continue)
    graph.add_edge("reflect", "generate")
    state = graph.compile().invoke({"messages": [HumanMessage(content="an essay on the Little Prince")]})
    return [message.text for message in state["messages"]]
