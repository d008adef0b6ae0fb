"""A program that kills a run at each of its points, one after another, and judges what became of it.

The segments are processes of their own. They are forked from this one, which has imported everything and started
nothing, so that a process costs milliseconds. ``python -m tests.durability.explore '{"subject": "sqlite", ...}'``
prints a line of JSON a point; it ends after the first point that the run does not reach, with the names of all.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field, frozen
from tests.durability.broken import BROKEN
from tests.durability.case import THREAD, Plain, Program, Segment, final_state, plain, segment
from tests.durability.log import Log
from tests.durability.oracle import judge
from tests.durability.points import Points
from tests.durability.subjects import SUBJECTS, Subject
from tests.durability.unsynced import Unsynced, connect_through

__all__ = ["SCRIPT", "Order", "forked", "main"]

#: Sequential and parallel tools of all policies, a failing one, a busy one that a hook has done again, duplicates, a
#: question, a child run, an answer thrown away, a model that fails, and an answer that is sent back.
SCRIPT: tuple[Any, ...] = (
    ["charge"],
    ["look", "send", "slow", "stamp"],
    ["fail", "flaky", "book", "book", "lose"],
    ["ask", "look"],
    ["delegate"],
    "!done",
    "done",
)

ALL = {**SUBJECTS, **BROKEN}

#: How many segments a run may take.
MOST = 20


@frozen
class Order:
    """What to explore.

    Args:
        subject: a name of `SUBJECTS` or `BROKEN`.
        folder: where journals and logs go.
        first, step: which points: ``first``, ``first + step``, ...
        mode: how calls run.
        snapshot_every: as the store's.
        upto: the last point to try; 0 = until the run does not reach one.
        until: stop where something is wrong that says this; "" = do not.
        backend: of the event loop.
    """

    subject: str
    folder: str
    first: int = 1
    step: int = 1
    mode: Any = "concurrent"
    snapshot_every: int | None = None
    upto: int = 0
    until: str = ""
    backend: str = "asyncio"


# -- processes -----------------------------------------------------------------------------------------


def forked(work: Callable[[], Any], answer: Path) -> Any:
    """What a function gives in a process of its own, through a file; None when that was killed.

    Raises:
        RuntimeError: it failed.
    """
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            answer.write_text(json.dumps(work()))
            status = 0
        except BaseException:  # noqa: BLE001  the parent reports it
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return None
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"a process of {answer.parent} failed: its traceback stands above")
    return json.loads(answer.read_text())


class _Statements(Unsynced):
    """A connection that may be killed after each statement, which is before the next one."""

    points = Points()

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        done = super().execute(sql, *parameters)
        self.points.here(f"sql: after {' '.join(sql.split()[:2])}")
        return done


# -- one point -----------------------------------------------------------------------------------------


@define
class _Case:
    order: Order
    program: Program
    subject: Subject
    folder: Path
    #: The names of the points that were survived.
    passed: set[str] = field(factory=set)

    def segment(self, at: int, answers: dict[str, Any] | None) -> dict[str, Any] | None:
        """One segment in a process; None when it was killed."""

        def work() -> Any:
            log, points = Log(self.folder / "log"), Points(at, "kill")
            points.told = lambda name: log.add("hit", name=name)
            _Statements.points = points
            connect_through(_Statements)

            async def run() -> Segment:
                ended = await segment(self.program, self.subject.open(points), log, points, answers=answers)
                await self.subject.close()
                return ended

            ended = anyio.run(run, backend=self.order.backend)
            names = sorted(points.names)
            return {"status": ended.status, "questions": ended.questions, "points": points.count, "names": names}

        found: dict[str, Any] | None = forked(work, self.folder / "segment")
        return found

    def run(self, at: int) -> tuple[str, int]:
        """The whole run, killed at a point, or nowhere at 0; gives the point's name, or "", and how often it died."""
        left, answers, faults = at, None, 0
        for _ in range(MOST):
            ended = self.segment(left, answers)
            if ended is None:
                left, answers, faults = 0, None, faults + 1
                continue
            self.passed |= set(ended["names"])
            left = max(0, left - ended["points"])
            answers = {i: f"yes, {question}" for i, question in ended["questions"]} or None
            if ended["status"] == "ended":
                hit = Log(self.folder / "log").lines("hit")
                return (hit[0]["name"] if hit else ""), faults
        raise AssertionError(f"point {at}: the run does not end; see {self.folder}")

    def judged(self, plain: Plain, faults: int) -> list[str]:
        """What the oracle says, in a process of its own: a store may have threads, and those do not survive a fork."""

        async def look() -> list[str]:
            store = self.subject.open(Points())
            verdict = judge(
                await final_state(store),
                await store.read(THREAD),
                Log(self.folder / "log"),
                wanted=plain.state,
                asked=plain.asked,
                faults=faults,
                rows=self.subject.rows(THREAD),
            )
            await self.subject.close()
            return list(verdict.wrong)

        wrong: list[str] = forked(lambda: anyio.run(look, backend=self.order.backend), self.folder / "verdict")
        return wrong


def main(order: Order) -> None:
    """Explore, and print what was found."""
    program, base = Program(SCRIPT, order.mode), Path(order.folder)
    connect_through(Unsynced)
    wanted = _warm(program, order, base / f"warm-{order.first}")
    at, parent = order.first, os.getppid()
    while not order.upto or at <= order.upto:
        folder = base / str(at)
        folder.mkdir()
        subject = ALL[order.subject](folder, snapshot_every=order.snapshot_every)
        subject.impatient()
        case = _Case(order, program, subject, folder)
        hit, faults = case.run(at)
        wrong = case.judged(wanted, faults)
        names = [] if hit else sorted(case.passed)
        sys.stdout.write(json.dumps({"at": at, "hit": hit, "wrong": wrong, "names": names}) + "\n")
        sys.stdout.flush()
        if os.getppid() != parent:
            return  # nobody reads this any more
        if not hit or (order.until and any(order.until in each for each in wrong)):
            return
        if not wrong:
            shutil.rmtree(folder)
        at += order.step


def _warm(program: Program, order: Order, folder: Path) -> Plain:
    """Run once without a fault, so that what is forked later has everything loaded; and that is what is wanted."""
    folder.mkdir(parents=True)
    known = anyio.run(plain, program, backend=order.backend)
    subject = ALL[order.subject](folder, snapshot_every=order.snapshot_every)

    async def again() -> None:
        for _ in range(2):
            store = subject.open(Points())
            await segment(program, store, Log(), Points())
            await final_state(store)
            await subject.close()

    anyio.run(again, backend=order.backend)
    while threading.active_count() > 1:  # a process is forked by its only thread
        time.sleep(0.01)
    gc.collect()
    gc.freeze()
    return known


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
