"""Human approval: a run waits for a person, whose answer says where it goes."""

from __future__ import annotations

from typing import Any, TypedDict

from locus.multiagent.graph import END, START, Command, NodeContext, StateGraph

from locus.journal import MemoryStore


class State(TypedDict):
    details: str
    status: str


def approval(state: State, ctx: NodeContext) -> Command:
    decision = ctx.interrupt(f"Approve this action? {state['details']}")
    return Command(goto="proceed" if decision == "yes" else "cancel")


def proceed(state: State) -> Any:
    return {"status": "approved"}


def cancel(state: State) -> Any:
    return {"status": "rejected"}


def main(model: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("approval", approval, goto=["proceed", "cancel"])
    graph.add_node("proceed", proceed)
    graph.add_node("cancel", cancel)
    graph.add_edge(START, "approval")
    graph.add_edge("proceed", END)
    graph.add_edge("cancel", END)
    app = graph.compile(checkpointer=MemoryStore())
    said = {}
    for answer in ("yes", "no"):
        asked = app.run_sync({"details": "Transfer $500", "status": "pending"}, thread_id=f"approval-{answer}")
        said["question"] = asked.interrupts[0].question
        said[answer] = app.resume_sync(f"approval-{answer}", answer).values["status"]
    return said
