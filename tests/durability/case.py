"""A run on one thread in as many segments as it takes, and what the run that never broke off came to."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from functools import partial
from threading import Thread
from typing import Any, Literal

import anyio
from attrs import field, frozen
from tests.durability.log import Log
from tests.durability.pointed import Pointed
from tests.durability.points import Points
from tests.durability.world import Mode, Script, World

from locus import IterationEvent
from locus.core.errors import Fenced, InterruptMismatch, NothingToResume, StoreError, ThreadBusy
from locus.core.journal import BLANK, fold
from locus.core.state import AgentState
from locus.journal import MemoryStore
from locus.journal.effects import Clock
from locus.journal.store import Claim, JournalStore
from locus_testkit import is_crash

__all__ = ["THREAD", "Opened", "Plain", "Program", "begin", "elsewhere", "final_state", "plain", "segment", "whole"]

THREAD = "t"

#: What became of a segment.
Status = Literal["ended", "asks", "died", "fenced", "busy", "failed"]

#: Makes a handle on the store, as a new process does.
Opened = Callable[[Points], JournalStore]


@frozen
class Program:
    """What is run: the same in every process.

    Args:
        script: what the model does.
        mode: how the calls of a turn run.
        retries: whether a hook throws one answer away.
        reviews: whether a hook sends the first final answer back, after asking the model about it.
    """

    script: Script = field()
    mode: Mode = "concurrent"
    retries: bool = True
    reviews: bool = True


@frozen
class Segment:
    """How a segment ended: its status, the questions that are open, and what the store could not do."""

    status: Status
    questions: tuple[tuple[str, str], ...] = ()
    error: StoreError | None = None


async def segment(
    program: Program,
    store: JournalStore,
    log: Log,
    points: Points,
    *,
    thread: str = THREAD,
    answers: dict[str, Any] | None = None,
    clock: Clock | None = None,
) -> Segment:
    """One process's part: it goes on with what it finds, or begins."""
    pointed = Pointed(store, points, log)
    world = World(log, points)
    agent = world.agent(
        program.script, pointed, program.mode, retries=program.retries, reviews=program.reviews, clock=clock
    )
    try:
        if await pointed.peek(thread) is None:
            result = await agent.run("go", thread_id=thread, deps=world)
        else:
            result = await agent.resume(thread, answers, deps=world)
    except NothingToResume:
        return Segment("ended")
    except (ThreadBusy, InterruptMismatch):
        return Segment("busy")  # somebody else has it, or has given the answer
    except Fenced:
        return Segment("fenced")
    except StoreError as e:
        return Segment("failed", error=e)
    except BaseException as e:
        if is_crash(e):
            return Segment("died")
        raise
    if result.interrupts:
        return Segment("asks", tuple((q.interrupt_id, q.question) for q in result.interrupts))
    return Segment("ended")


async def begin(program: Program, store: JournalStore, thread: str) -> None:
    """Begin a run, and leave it before its first model call."""
    run = World(Log()).agent(program.script, store, program.mode).run("go", thread_id=thread)
    async for event in run:
        if isinstance(event, IterationEvent):
            await run.aclose()
            return
    raise AssertionError("it ended before its first iteration")


async def whole(step: Callable[[dict[str, Any] | None], Awaitable[Segment]], *, most: int = 40) -> list[Segment]:
    """Segment after segment until the run has ended; questions are answered, crashes forgiven."""
    done: list[Segment] = []
    answers: dict[str, Any] | None = None
    for _ in range(most):
        done.append(await step(answers))
        if done[-1].status == "ended":
            return done
        answers = {i: f"yes, {question}" for i, question in done[-1].questions} or None
    raise AssertionError(f"it does not end: {[s.status for s in done]}")


async def final_state(store: JournalStore, thread: str = THREAD) -> AgentState:
    """The state that a claim would give."""
    claim = await store.peek(thread)
    assert claim is not None
    return folded(claim)


def folded(claim: Claim) -> AgentState:
    """The state that a claim shows."""
    start = BLANK if claim.snapshot is None else claim.snapshot.state
    return fold(start, [entry.body for entry in claim.entries])


@frozen
class Plain:
    """The run that was never interrupted.

    Args:
        state: where it ended.
        asked: how many model calls it made.
        points: how many points it passed.
    """

    state: AgentState
    asked: int
    points: int


async def plain(program: Program) -> Plain:
    """Run in memory, answering questions, without a fault."""
    log, store, points = Log(), MemoryStore(), Points()
    await whole(lambda answers: segment(program, store, log, points, answers=answers))
    state = await final_state(store)
    return Plain(state, len(log.lines("model")), points.count)


def elsewhere(work: Callable[[], Awaitable[Any]], backend: str) -> None:
    """Do something as another process would, in another thread, event loop and context, while this one stands still."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            contextvars.Context().run(partial(anyio.run, work, backend=backend))
        except BaseException as e:  # noqa: BLE001  told where it was asked for
            raised.append(e)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
