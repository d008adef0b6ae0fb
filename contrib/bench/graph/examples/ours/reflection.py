"""Reflection: an essay is written, criticised and written again."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from locus.core.reducers import add_messages
from locus.multiagent.graph import END, START, StateGraph

from locus import Agent
from locus.core.messages import Message


class State(TypedDict):
    messages: Annotated[list[Message], add_messages]


def should_continue(state: State) -> str:
    return END if len(state["messages"]) > 3 else "reflect"


def keep(role: str) -> Any:
    return lambda state, answer: {"messages": [Message(role, answer.text)]}


def main(model: Any) -> Any:
    generate = Agent(model, system_prompt="Write the best essay possible for the user's request.")
    reflect = Agent(model, system_prompt="You are a teacher grading an essay: generate critique and recommendations.")

    def swap(state: State) -> Any:
        # Seen from the other side, the essay is the user's and the critique one's own.
        swapped = {"assistant": "user", "user": "assistant"}
        rest = [Message(swapped[message.role], message.text) for message in state["messages"][1:]]
        return [state["messages"][0], *rest]

    graph = StateGraph(State)
    graph.add_node("generate", generate, prompt="messages", into=keep("assistant"))
    graph.add_node("reflect", reflect, prompt=swap, into=keep("user"))
    graph.add_edge(START, "generate")
    graph.add_conditional_edges("generate", should_continue, ["reflect", END])
    graph.add_edge("reflect", "generate")
    state = graph.compile().run_sync({"messages": [Message("user", "an essay on the Little Prince")]}).values
    return [message.text for message in state["messages"]]
