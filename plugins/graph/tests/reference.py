"""What a graph means, in 60 lines: an interpreter without journal, tasks, questions or time, and graphs to compare by.

A program is plain data, so that neither side can read it in the other's way.
"""

from __future__ import annotations

from typing import Any

import attrs

END, START = "__end__", "__start__"


class Conflict(Exception):
    """Two tasks of one step wrote a key without a reducer."""


@attrs.frozen
class Program:
    """A graph.

    Args:
        nodes: name -> the keys without a reducer that it writes, or the program of a graph that it runs.
        edges: source -> targets, in order.
        routes: source -> answers; the one is given whose index is the length of the log modulo their number. An answer
            is a tuple of names, and of numbers n: a Send of ``n`` to ``worker``.
        worker: the node that Sends go to.
        joins: sources and target.
    """

    nodes: dict[str, Any]
    edges: dict[str, tuple[str, ...]]
    routes: dict[str, tuple[tuple[Any, ...], ...]]
    worker: str = ""
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()


def interpret(program: Program, log: list[str], steps: int) -> tuple[dict[str, Any], bool]:
    """The values at the end, and whether it ended by itself within that many steps."""
    values: dict[str, Any] = {"log": list(log)}
    waits: list[set[str]] = [set() for _ in program.joins]
    due = follow(program, [START], values, waits)
    for _ in range(steps):
        if not due:
            break
        updates = [run(program, task, values, steps) for task in due]
        written: set[str] = set()
        for update in updates:
            plain = set(update) - {"log", "sum"}
            if plain & written:
                raise Conflict
            written |= plain
        for update in updates:
            for key, value in update.items():
                values[key] = values[key] + value if key in ("log", "sum") and key in values else value
        due = follow(program, [task[0] for task in due], values, waits)
    return values, not due


def run(program: Program, task: tuple[str, Any], values: dict[str, Any], steps: int) -> dict[str, Any]:
    """What a task writes."""
    name, sent = task
    what = program.nodes[name]
    if sent is not None:
        return {"log": [f"{name}{sent}"], "sum": sent}
    if isinstance(what, Program):
        inner, _ = interpret(what, values["log"], steps)
        added = inner["log"][len(values["log"]) :]
        own = {key: value for key, value in inner.items() if key != "log"}
        return own | ({"log": added} if added else {})
    return {"log": [name], **dict.fromkeys(what, name)}


def follow(program: Program, ran: list[str], values: dict[str, Any], waits: list[set[str]]) -> list[tuple[str, Any]]:
    """The tasks that are due after these."""
    due: list[tuple[str, Any]] = []
    for name in dict.fromkeys(ran):
        targets: list[Any] = list(program.edges.get(name, ()))
        if name in program.routes:
            answers = program.routes[name]
            targets += answers[len(values["log"]) % len(answers)]
        for target in targets:
            due.append((program.worker, target) if isinstance(target, int) else (target, None))
    for (sources, target), seen in zip(program.joins, waits, strict=True):
        seen |= set(sources) & set(ran)
        if seen == set(sources):
            seen.clear()
            due.append((target, None))
    return [task for i, task in enumerate(due) if task[0] != END and (task[1] is not None or task not in due[:i])]
