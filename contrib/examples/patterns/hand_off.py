"""A hand-off: each agent answers or passes the conversation to another one."""

from __future__ import annotations

import operator
from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, Command, NodeContext, StateGraph

TEAM = {"sales": "You sell lamps.", "support": "You mend lamps."}


def build(model: Any) -> Any:
    """Answer ``question``; an answer ``PASS <name>`` goes to that member of the team."""
    graph = StateGraph(reducers={"log": operator.add}, effect="pure")

    def member(name: str, system: str) -> Any:
        others = [other for other in TEAM if other != name]
        rule = f"Where it is not your matter, answer PASS and one of {', '.join(others)}, and nothing else."
        agent = Agent(model, system_prompt=f"{system} {rule}")

        async def answer(values: dict[str, Any], ctx: NodeContext) -> Command:
            text = (await ctx.run_child(agent, values["question"])).raise_for_failure().text
            to = next((other for other in others if text.startswith(f"PASS {other}")), END)
            return Command(update={"log": [name]} | ({"answer": text} if to == END else {}), goto=to)

        return answer

    for name, system in TEAM.items():
        graph.add_node(name, member(name, system), goto=[*TEAM, END])
    return graph.add_edge(START, "sales").compile(max_steps=6)
