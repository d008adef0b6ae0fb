"""Human approval: a run waits for a person, whose answer says where it goes."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    details: str
    status: str


def approval(state: State) -> Command[Literal["proceed", "cancel"]]:
    decision = interrupt(f"Approve this action? {state['details']}")
    return Command(goto="proceed" if decision == "yes" else "cancel")


def proceed(state: State) -> Any:
    return {"status": "approved"}


def cancel(state: State) -> Any:
    return {"status": "rejected"}


def main(model: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("approval", approval)
    graph.add_node("proceed", proceed)
    graph.add_node("cancel", cancel)
    graph.add_edge(START, "approval")
    graph.add_edge("proceed", END)
    graph.add_edge("cancel", END)
    app = graph.compile(checkpointer=InMemorySaver())
    said = {}
    for answer in ("yes", "no"):
        config: Any = {"configurable": {"thread_id": f"approval-{answer}"}}
        asked = app.invoke({"details": "Transfer $500", "status": "pending"}, config)
        said["question"] = asked["__interrupt__"][0].value
        said[answer] = app.invoke(Command(resume=answer), config)["status"]
    return said
