"""A graph as a drawing, made from the table by which it is routed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_plugin_graph.plan import END, START
from locus_plugin_graph.values import RECORD

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus_plugin_graph.plan import Plan

__all__ = ["draw_mermaid"]

_SHAPES = {"function": ("[", "]"), "agent": ("([", "])"), "graph": ("[[", "]]")}


def draw_mermaid(plan: Plan, state: AgentState | None = None) -> str:
    """A mermaid flowchart.

    Args:
        plan: the graph.
        state: of a run, whose nodes that have run and those that are due are marked; None = of no run.
    """
    ids = {START: "start", END: "finish", **{name: f"n{i}" for i, name in enumerate(plan.nodes)}}
    lines = ["flowchart TD", '    start(("START"))', '    finish(("END"))']
    for node in plan.nodes.values():
        left, right = _SHAPES[node.kind]
        lines.append(f'    {ids[node.name]}{left}"{_text(node.name)}"{right}')
    for source in (START, *plan.nodes):
        lines += [f"    {ids[source]} --> {ids[target]}" for target in plan.edges.get(source, ())]
        for branch in plan.branches.get(source, ()):
            if branch.mapping is None:
                lines += [f"    {ids[source]} -.-> {ids[target]}" for target in (*plan.nodes, END)]
                continue
            for answer, target in branch.mapping.items():
                label = "" if answer == target else f'|"{_text(str(answer))}"|'
                lines.append(f"    {ids[source]} -.->{label} {ids[target]}")
        if source in plan.nodes:
            lines += [f'    {ids[source]} -.->|"goto"| {ids[target]}' for target in plan.nodes[source].goto]
        if source in plan.fallbacks:
            lines.append(f'    {ids[source]} -.->|"on error"| {ids[plan.fallbacks[source]]}')
    for number, join in enumerate(plan.joins):
        lines.append(f"    j{number}{{{{all}}}}")
        lines += [f"    {ids[source]} --> j{number}" for source in join.sources]
        lines.append(f"    j{number} --> {ids[join.target]}")
    if state is not None and RECORD in state.metadata:
        record = state.metadata[RECORD]
        due = {name for name, _ in record["next"]}
        ran = [ids[name] for name in record["ran"] if name in ids and name not in due]
        lines += ["    classDef ran fill:#d7f0d7,stroke:#2b7a2b", "    classDef next fill:#fff0c2,stroke:#a87900"]
        lines += [f"    class {','.join(ran)} ran"] if ran else []
        lines += [f"    class {','.join(ids[name] for name in plan.nodes if name in due)} next"] if due else []
        lines += ["    class finish ran"] if not due else []
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A name between quotes: mermaid has entity codes for what it would read as its own."""
    return "".join(c if c.isalnum() or c in " _-.,:/()" else f"#{ord(c)};" for c in text)
