"""The cases with LangGraph."""

from __future__ import annotations

import asyncio
import operator
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict

from cases import measure, report
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    """The same keys."""

    i: int
    out: Annotated[list[Any], operator.add]


def build(kind: str, steps: int, saver: Any) -> Any:
    """The graph of a case."""
    graph = StateGraph(State)

    async def count(values: Any) -> Any:
        return {"i": values["i"] + 1}

    async def append(values: Any) -> Any:
        return {"i": values["i"] + 1, "out": ["x" * 2000]}

    async def work(values: Any) -> Any:
        return {"out": [values["n"]]}

    if kind == "fan":
        graph.add_node("work", work)
        graph.add_edge("work", END)
        graph.add_conditional_edges(START, lambda values: [Send("work", {"n": n}) for n in range(100)], ["work"])
    else:
        graph.add_node("step", count if kind == "count" else append)
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda values: END if values["i"] >= steps else "step", ["step", END])
    return graph.compile(checkpointer=saver)


@cache
def built(kind: str, steps: int) -> Any:
    """Compiled once: what is measured is a run."""
    return build(kind, steps, None)


async def run(kind: str, steps: int, store: str, path: Path) -> None:
    """One run of a case."""
    config: Any = {"recursion_limit": steps + 5, "configurable": {"thread_id": "t"}}
    if not store:
        values = await built(kind, steps).ainvoke({"i": 0, "out": []}, config)
    else:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            values = await build(kind, steps, saver).ainvoke({"i": 0, "out": []}, config)
    assert len(values["out"]) == {"fan": 100, "append": steps, "count": 0}[kind]


async def main() -> None:
    """Measure the case that the command line names."""
    report(await measure(sys.argv[1], run))


asyncio.run(main())
