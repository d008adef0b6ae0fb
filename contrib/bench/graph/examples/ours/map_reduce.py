"""Map-reduce: a joke for each subject of a topic, side by side, and the best of them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from attrs import frozen
from locus.multiagent.graph import END, START, Send, StateGraph

from locus import Agent


@frozen
class Subjects:
    subjects: list[str]


@frozen
class Best:
    id: int


class State(TypedDict):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best_joke: str


def continue_to_jokes(state: State) -> Any:
    return [Send("generate_joke", {"subject": subject}) for subject in state["subjects"]]


def to_topics(state: State) -> str:
    return f"Generate a list of examples related to: {state['topic']}."


def to_joke(state: Any) -> str:
    return f"Generate a joke about {state['subject']}"


def to_best(state: State) -> str:
    jokes = "\n\n".join(state["jokes"])
    return f"Below are some jokes about {state['topic']}. Give the ID of the best one, from 0.\n\n{jokes}"


def main(model: Any) -> Any:
    topics, joker, judge = Agent(model, output_schema=Subjects), Agent(model), Agent(model, output_schema=Best)
    graph = StateGraph(State)
    graph.add_node("generate_topics", topics, prompt=to_topics, into=lambda s, r: {"subjects": r.parsed.subjects})
    graph.add_node("generate_joke", joker, prompt=to_joke, into=lambda s, r: {"jokes": [r.text]})
    graph.add_node("best_joke", judge, prompt=to_best, into=lambda s, r: {"best_joke": s["jokes"][r.parsed.id]})
    graph.add_edge(START, "generate_topics")
    graph.add_conditional_edges("generate_topics", continue_to_jokes, ["generate_joke"])
    graph.add_edge("generate_joke", "best_joke", END)
    return graph.compile().run_sync({"topic": "animals"}).values
