"""A program that kills a tree of runs at each of its points, one after another, and goes on in new processes.

``python -m tests.durability.trees '{"folder": ..., "first": 1, "step": 1, "upto": 0}'`` prints a line of JSON a point:
what was spent in the end, by each call of the first run and in all. It ends after the first point that is not reached.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from attrs import frozen
from tests.durability.explore import forked
from tests.durability.log import Log
from tests.durability.pointed import Pointed
from tests.durability.points import Points
from tests.durability.subjects import SUBJECTS, Subject
from tests.durability.unsynced import Unsynced, connect_through
from tests.property.budget_world import Meter, Node, Work, agent_of

from locus.core.errors import NothingToResume
from locus.core.journal import CHILD, Outcome
from locus.journal import JournalHost
from locus.tools.account import Account

__all__ = ["LIMIT", "TOKENS", "UNDER_WAY", "Order", "main"]

#: What the first run may spend with all below it, and what each of its model calls takes.
LIMIT, TOKENS = 200, 10
_LEAF = Node(turns=((Work(),),) * 8, tokens=TOKENS, waits=2)
_MIDDLE = Node(turns=((Work((_LEAF, _LEAF), together=True),),) * 3, tokens=TOKENS, waits=1)
_TREE = Node(
    turns=((Work((_LEAF, _LEAF), together=True), Work((_MIDDLE,)), Work((_LEAF, _LEAF))),),
    tokens=TOKENS,
    max_tokens=LIMIT,
)
#: How many model calls each call of the first run can have under way at the same time.
UNDER_WAY = (2, 2, 1)


@frozen
class Order:
    """What to do.

    Args:
        folder: where journals and logs go.
        first, step: which points: ``first``, ``first + step``, ...
        upto: the last point to try; 0 = until one is not reached.
        forget: let accounts not know what was spent in an earlier process, as a broken kernel would.
        backend: of the event loop.
    """

    folder: str
    first: int = 1
    step: int = 1
    upto: int = 0
    forget: bool = False
    backend: str = "asyncio"


class _Striking(Meter):
    """Writes down what is spent, in a file that outlives the process, and lets it die before and after."""

    def __init__(self, log: Log, points: Points) -> None:
        super().__init__(None, None)
        self.log, self.points = log, points

    def below(self, max_tokens: int | None, max_dollars: float | None) -> Meter:
        return self

    def begin(self, tokens: int) -> None:
        self.points.reach("model: before")

    def end(self, tokens: int) -> None:
        self.log.add("spent", tokens=tokens)
        self.points.reach("model: after")


def _segment(subject: Subject, log: Log, at: int, order: Order) -> dict[str, Any]:
    """One process's work: begin the run or go on with it."""
    points = Points(at, "kill")
    points.told = lambda name: log.add("hit", name=name)
    if order.forget:
        Account.catch_up = lambda self, usage: None  # type: ignore[method-assign]

    async def run() -> str:
        store = Pointed(subject.open(points), points, log)
        agent = agent_of(_TREE, _Striking(log, points), checkpointer=store)
        before = await JournalHost.peek(store, "t")
        try:
            result = await (agent.run("go", thread_id="t") if before is None else agent.resume("t"))
            return str(result.stop_reason)
        except NothingToResume:
            return "ended"
        finally:
            await subject.close()

    reason = anyio.run(run, backend=order.backend)
    return {"reason": reason, "points": points.count}


def _look(subject: Subject, order: Order) -> dict[str, Any]:
    """What the journals say in the end."""

    async def look() -> dict[str, Any]:
        store = subject.open(Points())
        host = await JournalHost.peek(store, "t")
        assert host is not None
        bodies = [entry.body for entry in await store.read("t")]
        outcomes = [body for body in bodies if isinstance(body, Outcome)]
        parts: list[int] = [0] * len(UNDER_WAY)
        for body in outcomes:
            if body.step_id.node == CHILD:
                parts[body.step_id.root.ordinal] += body.value.usage.total_tokens
        reserved = [dict(body.value) for body in outcomes if body.step_id.name == "reserved"]
        await subject.close()
        return {"total": host.state.total_tokens_used, "parts": parts, "reserved": reserved, "open": host.open_node}

    found: dict[str, Any] = anyio.run(look, backend=order.backend)
    return found


def main(order: Order) -> None:
    """Kill, go on, and print what was spent."""
    connect_through(Unsynced)
    base, at, parent = Path(order.folder), order.first, os.getppid()
    _warm(base / f"warm-{order.first}", order)
    while not order.upto or at <= order.upto:
        folder = base / str(at)
        folder.mkdir()
        line = _try_point(folder, at, order)
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if not line["hit"] or os.getppid() != parent:
            return
        at += order.step


def _try_point(folder: Path, at: int, order: Order) -> dict[str, Any]:
    """Kill a run at a point, go on with it to its end, and say what was spent."""
    subject, log = SUBJECTS["sqlite"](folder), Log(folder / "log")
    subject.impatient()
    for left in (at, 0):
        ended = forked(partial(_segment, subject, log, left, order), folder / "segment")
        if ended is not None:
            break
    found = forked(partial(_look, subject, order), folder / "look")
    hit = log.lines("hit")
    spent = sum(line["tokens"] for line in log.lines("spent"))
    return {"at": at, "hit": hit[0]["name"] if hit else "", "ended": ended, "spent": spent, **found}


def _warm(folder: Path, order: Order) -> None:
    """Run once, so that what is forked later has everything loaded."""
    folder.mkdir(parents=True)
    _segment(SUBJECTS["sqlite"](folder), Log(folder / "log"), 0, Order(str(folder), backend=order.backend))
    while threading.active_count() > 1:  # a process is forked by its only thread
        time.sleep(0.01)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
