"""The cases with this framework."""

from __future__ import annotations

import operator
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from cases import measure, report

from locus_plugin_graph import END, START, Send, StateGraph
from locus_plugin_sqlite import SqliteStore


def build(kind: str, steps: int, store: Any) -> Any:
    """The graph of a case."""
    graph = StateGraph(reducers={"out": operator.add})

    async def count(values: dict[str, Any]) -> dict[str, Any]:
        return {"i": values["i"] + 1}

    async def append(values: dict[str, Any]) -> dict[str, Any]:
        return {"i": values["i"] + 1, "out": ["x" * 2000]}

    async def work(values: dict[str, Any]) -> dict[str, Any]:
        return {"out": [values["n"]]}

    if kind == "fan":
        graph.add_node("work", work).add_edge("work", END)
        graph.add_conditional_edges(START, lambda values: [Send("work", {"n": n}) for n in range(100)], ["work"])
    else:
        graph.add_node("step", count if kind == "count" else append).add_edge(START, "step")
        graph.add_conditional_edges("step", lambda values: END if values["i"] >= steps else "step", ["step", END])
    return graph.compile(checkpointer=store, max_steps=steps + 1)


@cache
def built(kind: str, steps: int) -> Any:
    """Compiled once: what is measured is a run."""
    return build(kind, steps, None)


async def run(kind: str, steps: int, store: str, path: Path) -> None:
    """One run of a case."""
    if not store:
        result = await built(kind, steps).run({"i": 0, "out": []})
    else:
        async with SqliteStore(path, sync=store) as opened:
            result = await build(kind, steps, opened).run({"i": 0, "out": []}, thread_id="t")
    assert result.stop_reason == "GraphEnd"
    assert len(result.values["out"]) == {"fan": 100, "append": steps, "count": 0}[kind]


async def main() -> None:
    """Measure the case that the command line names."""
    report(await measure(sys.argv[1], run))


anyio.run(main)
