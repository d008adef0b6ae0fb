"""A debate: two sides speak in turns, side by side, and a judge decides after some rounds."""

from __future__ import annotations

import operator
from typing import Any

from locus import Agent
from locus_plugin_graph import END, START, NodeContext, StateGraph

ROUNDS = 2


def build(model: Any) -> Any:
    """Debate ``claim``."""
    graph = StateGraph(reducers={"said": operator.add}, effect="pure")

    def side(name: str) -> Any:
        speaker = Agent(model, system_prompt=f"You argue {name} the claim, in two sentences.")

        async def speak(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
            said = "\n".join([values["claim"], *values.get("said", [])])
            return {"said": [f"{name}: {(await ctx.run_child(speaker, said)).raise_for_failure().text}"]}

        return speak

    graph.add_node("for", side("for")).add_node("against", side("against")).add_node("round", lambda values: None)
    graph.add_node("judge", Agent(model), prompt=lambda values: "Who is right?\n" + "\n".join(values["said"]))
    graph.add_edge(START, "for").add_edge(START, "against").add_edge(["for", "against"], "round").add_edge("judge", END)
    again = {True: "judge", False: ["for", "against"]}
    graph.add_conditional_edges(
        "round", lambda values: again[len(values["said"]) >= 2 * ROUNDS], ["for", "against", "judge"]
    )
    return graph.compile()
