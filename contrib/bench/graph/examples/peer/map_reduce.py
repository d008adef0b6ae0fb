"""Map-reduce: a joke for each subject of a topic, side by side, and the best of them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel


class Subjects(BaseModel):
    subjects: list[str]


class Best(BaseModel):
    id: int


class State(TypedDict):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best_joke: str


def continue_to_jokes(state: State) -> Any:
    return [Send("generate_joke", {"subject": subject}) for subject in state["subjects"]]


def main(model: Any) -> Any:
    def generate_topics(state: State) -> Any:
        prompt = f"Generate a list of examples related to: {state['topic']}."
        return {"subjects": model.with_structured_output(Subjects).invoke(prompt).subjects}

    def generate_joke(state: Any) -> Any:
        prompt = f"Generate a joke about {state['subject']}"
        return {"jokes": [model.invoke(prompt).text]}

    def best_joke(state: State) -> Any:
        jokes = "\n\n".join(state["jokes"])
        prompt = f"Below are some jokes about {state['topic']}. Give the ID of the best one, from 0.\n\n{jokes}"
        return {"best_joke": state["jokes"][model.with_structured_output(Best).invoke(prompt).id]}

    graph = StateGraph(State)
    graph.add_node("generate_topics", generate_topics)
    graph.add_node("generate_joke", generate_joke)
    graph.add_node("best_joke", best_joke)
    graph.add_edge(START, "generate_topics")
    graph.add_conditional_edges("generate_topics", continue_to_jokes, ["generate_joke"])
    graph.add_edge("generate_joke", "best_joke")
    graph.add_edge("best_joke", END)
    return graph.compile().invoke({"topic": "animals"})
