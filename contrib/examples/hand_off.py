"""A hand-off: a front desk sends a request to a specialist, who answers, passes it on, or gives it to a person.

    python contrib/examples/hand_off.py "I was charged twice for invoice 12."

It needs the plugins graph, sqlite and that of the model. Each agent has its own prompt and its own tools, so the one
that reads manuals cannot see invoices. The graph bounds how often a request is passed on.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from locus import Agent, Budget, TokenLimit, ToolContext, ToolError, tool
from locus_plugin_graph import END, START, Command, NodeContext, StateGraph

Desk = Literal["billing", "technical", "person"]
Files = Mapping[str, str]  # what the specialists look into


class State(TypedDict):
    """What the desks share: the request, why it was passed on, and the answer."""

    request: str
    notes: Annotated[list[str], operator.add]
    answer: str


def look_up(name: str, files: Files) -> str:
    """The text of a file; of one that is missing the model reads the error."""
    if name not in files:
        raise ToolError(f"{name!r} does not exist")
    return files[name]


@tool(effect="pure", reads="own")
def find_invoice(number: str, ctx: ToolContext[Files]) -> str:
    """Look an invoice up by its number."""
    return look_up(f"invoice {number}", ctx.deps)


@tool(effect="pure", reads="own")
def read_manual(topic: str, ctx: ToolContext[Files]) -> str:
    """Read the page of the manual about a topic."""
    return look_up(f"manual: {topic}", ctx.deps)


@tool(effect="pure")  # the graph acts on it, not this function
def pass_on(to: Desk, why: str) -> str:
    """Pass the request on, with why and what you found out, if it is not your matter or a person must decide."""
    return f"passed on to {to}"


DESKS: dict[str, tuple[Any, ...]] = {"front": (), "billing": (find_invoice,), "technical": (read_manual,)}


def make_desk(agent: Agent[Files, Any]) -> Any:
    """A node that runs the agent of a desk, and goes where that one says."""

    async def work(values: dict[str, Any], ctx: NodeContext) -> Command:
        prompt = "\n".join([values["request"], *(f"Note of {note}" for note in values["notes"])])
        result = (await ctx.run_child(agent, prompt, budget=Budget(tokens=20_000))).raise_for_failure()
        passed = [done for done in result.state.tool_executions if done.tool_name == "pass_on" and not done.error]
        if not passed:
            return Command(update={"answer": result.text}, goto=END)
        asked = passed[0].arguments
        return Command(update={"notes": [f"{agent.name}: {asked['why']}"]}, goto=asked["to"])

    return work


def ask_person(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
    """Leave the request to the staff; the run waits in the journal until somebody answers."""
    return {"answer": ctx.interrupt("\n".join([values["request"], *values["notes"]]))}


def build(model: Any, threads: Any = None) -> Any:
    """Make the graph, which runs as an agent does.

    Args:
        model: ``"provider:name"``, or a model.
        threads: where the journal is kept, such as ``"sqlite:desks.db"``.
    """
    graph = StateGraph(State, effect="pure")
    for name, tools in DESKS.items():
        rule = f"You are the {name} desk. Look up what you can, then answer in two sentences, or pass the request on."
        agent = Agent[Files, Any](
            model, name=name, tools=[*tools, pass_on], system_prompt=rule, terminal_tools=("pass_on",), max_iterations=5
        )
        graph.add_node(name, make_desk(agent), goto=[*DESKS, "person", END])
    graph.add_node("person", ask_person).add_edge(START, "front").add_edge("person", END)
    return graph.compile(checkpointer=threads, max_steps=6, termination=TokenLimit(50_000), name="desks")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Send a request to the desk that can handle it.")
    parser.add_argument("request", nargs="?", default="")
    parser.add_argument("--thread", default="request-1", help="its name")
    parser.add_argument("--answer", help="what the staff answers to the request of this thread that waits for it")
    parser.add_argument("--threads", default="sqlite:desks.db", help="where the journal is kept")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    files = {"invoice 12": "84.50 euros, paid twice", "manual: lamp": "Screw the bulb in tight."}
    app = build(args.model, args.threads)
    if args.answer:
        run = app.resume(args.thread, args.answer, deps=files)
    else:
        run = app.run({"request": args.request, "notes": []}, thread_id=args.thread, deps=files)
    result = asyncio.run(run)
    print(result.values.get("answer") or f"{result.stop_reason}: {[asked.question for asked in result.interrupts]}")
