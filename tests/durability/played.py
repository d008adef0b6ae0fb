"""Faults that are played in this process: dying is an exception, being overtaken is another thread's work meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from attrs import frozen
from tests.durability.case import THREAD, Plain, Program, Segment, elsewhere, final_state, segment, whole
from tests.durability.log import Log
from tests.durability.oracle import Verdict, judge
from tests.durability.points import Points
from tests.durability.subjects import Subject

__all__ = ["Fault", "How", "Played", "play"]

How = Literal["die", "stall"]


@frozen
class Fault:
    """What happens at the ``at``-th point of a run, counted from the fault before: it dies, or is overtaken."""

    at: int
    how: How = "die"


@frozen
class Played:
    """What came of it: where the faults struck, and what is wrong."""

    hits: tuple[str, ...]
    verdict: Verdict


async def play(
    program: Program, subject: Subject, faults: Sequence[Fault], plain: Plain, backend: str = "asyncio"
) -> Played:
    """A run with faults, to its end and before the oracle."""
    log, left = Log(), list(faults)
    hits: list[str] = []
    points = _next(left, log, program, subject, backend)

    async def step(answers: dict[str, Any] | None) -> Segment:
        nonlocal points
        before = points.hit
        ended = await segment(program, subject.open(points), log, points, answers=answers)
        if ended.status == "died":
            await subject.settle()
            subject.bury()
        if points.hit and not before:
            hits.append(points.hit)
            points = _next(left, log, program, subject, backend)
        return ended

    await whole(step)
    store = subject.open(Points())
    verdict = judge(
        await final_state(store),
        await store.read(THREAD),
        log,
        wanted=plain.state,
        asked=plain.asked,
        faults=len(hits),
        stalled=any(fault.how == "stall" for fault in faults),
        rows=subject.rows(THREAD),
    )
    await subject.close()
    return Played(tuple(hits), verdict)


def _next(left: list[Fault], log: Log, program: Program, subject: Subject, backend: str) -> Points:
    if not left:
        return Points()
    fault = left.pop(0)

    async def rest() -> None:
        await subject.settle()
        subject.bury()
        await whole(lambda answers: segment(program, subject.open(Points()), log, Points(), answers=answers))

    return Points(fault.at, fault.how, stall=lambda: elsewhere(rest, backend))
