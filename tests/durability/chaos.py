"""A program in which four workers share thirty threads of one file, and are killed and stopped as a seed says.

``python -m tests.durability.chaos '{"seed": 1, "folder": ...}'`` prints a line of JSON a thread, and one about the
whole. Where a worker is struck depends on its own progress and the seed, not on the time.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import anyio
from attrs import define, field, frozen
from tests.durability.case import Plain, Program, begin, final_state, plain, segment
from tests.durability.log import Log
from tests.durability.oracle import judge
from tests.durability.points import Points
from tests.durability.subjects import Files, Sqlite, Subject
from tests.durability.unsynced import Unsynced, connect_through

from locus.journal.effects import SystemClock
from locus.journal.store import JournalStore

__all__ = ["Chaos", "main"]

PROGRAMS = (
    Program((["charge"], ["look", "send", "slow"], "done"), "concurrent"),
    Program((["fail", "flaky", "book", "book"], "!done", "done"), "concurrent"),
    Program((["ask", "charge"], ["stamp", "sendto"], "done"), "sequential"),
    Program((["delegate", "look"], ["charge", "lose"], "done"), "concurrent", retries=False),
)

#: Seconds after which a worker that does not stir counts as dead, and for how long a stopped one sleeps.
LEASE, SLEEP = 0.4, 1.0

#: How many runs a worker has under way at a time.
AT_ONCE = 3


@frozen
class Chaos:
    """What is to happen.

    Args:
        seed: of everything random.
        folder: where the file and the logs go.
        subject: ``"sqlite"`` or ``"files"``.
        threads, workers: how many.
        kills, stops: how many workers are struck in all.
        skew: seconds by which the clocks of workers are wrong at most.
        backend: of the event loops.
    """

    seed: int
    folder: str
    subject: str = "sqlite"
    threads: int = 30
    workers: int = 4
    kills: int = 20
    stops: int = 6
    skew: float = 0.0
    backend: str = "asyncio"

    @property
    def place(self) -> Path:
        return Path(self.folder)

    def opened(self) -> Subject:
        kinds: dict[str, type[Subject]] = {"sqlite": Sqlite, "files": Files}
        subject = kinds[self.subject](self.place)
        subject.lease = timedelta(seconds=LEASE)
        subject.clock = _Skewed(0.0)
        return subject

    def names(self) -> list[str]:
        return [f"thread-{i}" for i in range(self.threads)]

    def log(self, name: str) -> Log:
        return Log(self.place / f"{name}.log")

    def done(self, name: str) -> Path:
        return self.place / f"{name}.done"


def kind_of(name: str) -> int:
    """Which of the programs runs on a thread."""
    return int(name.rpartition("-")[2]) % len(PROGRAMS)


class _Skewed(SystemClock):
    """A clock that is wrong."""

    __slots__ = ("_wrong",)

    def __init__(self, wrong: float) -> None:
        self._wrong = timedelta(seconds=wrong)

    def now(self) -> datetime:
        return super().now() + self._wrong


# -- a worker ----------------------------------------------------------------------------------------------


@define
class _Worker:
    chaos: Chaos
    random: Random
    points: Points
    clock: _Skewed
    running: set[str] = field(factory=set)

    async def work(self) -> None:
        subject = self.chaos.opened()
        subject.clock = self.clock
        store = subject.open(self.points)
        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(self._turns, store)
        await subject.close()

    async def _turns(self, store: JournalStore) -> None:
        while True:
            names = [n for n in self.chaos.names() if not self.chaos.done(n).exists()]
            if not names:
                return
            free = [n for n in names if n not in self.running]
            if not free or not await self._turn(self.random.choice(free), store):
                await anyio.sleep(0.01)  # somebody else has it

    async def _turn(self, name: str, store: JournalStore) -> bool:
        """Go on with a thread; False when it was not to be had."""
        log, answers = self.chaos.log(name), None
        self.running.add(name)
        try:
            while True:
                log.add("begin", pid=os.getpid())
                ended = await segment(
                    PROGRAMS[kind_of(name)], store, log, self.points, thread=name, answers=answers, clock=self.clock
                )
                log.add("finish", status=ended.status)
                if ended.status == "ended":
                    self.chaos.done(name).touch()
                answers = {i: f"yes, {question}" for i, question in ended.questions} or None
                if answers is None:
                    return ended.status == "ended"
        finally:
            self.running.discard(name)
            log.close()


def _forked(work: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001  the parent hears of it by the status
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _worker(chaos: Chaos, number: int, life: int, how: str | None) -> int:
    def work() -> None:
        random = Random(f"{chaos.seed} {number} {life}")
        points = Points(random.randint(1, 120) if how is not None else 0, "kill" if how == "kill" else "stop")
        clock = _Skewed(Random(f"{chaos.seed} {number}").uniform(-chaos.skew, chaos.skew))
        anyio.run(_Worker(chaos, random, points, clock).work, backend=chaos.backend)

    return _forked(work)


# -- all of them -------------------------------------------------------------------------------------------


@define
class _Herd:
    """The workers that live: each is struck once, then the next one takes its place, until there were enough faults."""

    chaos: Chaos
    random: Random
    left: list[str]
    lives: int = 0
    killed: int = 0
    stopped: int = 0
    #: pid -> number of the worker.
    alive: dict[int, int] = field(factory=dict)
    #: pid -> when to wake it.
    asleep: dict[int, float] = field(factory=dict)

    def start(self, number: int) -> None:
        self.lives += 1
        how = self.left.pop() if self.left else None
        self.alive[_worker(self.chaos, number, self.lives, how)] = number

    def tend(self, until: float) -> None:
        """Strike, wake and replace workers until the last one has nothing left to do."""
        try:
            while self.alive:
                self._tend()
                if time.monotonic() > until:
                    raise TimeoutError(f"seed {self.chaos.seed}: the workers do not come to an end")
        finally:
            for pid in self.alive:
                os.kill(pid, signal.SIGKILL)

    def _tend(self) -> None:
        for pid, at in list(self.asleep.items()):
            if time.monotonic() >= at:
                del self.asleep[pid]
                os.kill(pid, signal.SIGCONT)
        pid, status = os.waitpid(-1, os.WUNTRACED | os.WNOHANG)
        if pid == 0:
            time.sleep(0.005)
        else:
            self._happened(pid, status)

    def _happened(self, pid: int, status: int) -> None:
        if os.WIFSTOPPED(status):
            self.stopped += 1
            self.asleep[pid] = time.monotonic() + SLEEP
            if self.left:
                self.start(self.alive[pid])  # somebody else does its work meanwhile
            return
        number = self.alive.pop(pid)
        if os.WIFSIGNALED(status):
            self.killed += 1
            self.start(number)
        elif status:
            raise RuntimeError(f"seed {self.chaos.seed}: a worker failed: its traceback stands above")


async def _begun(chaos: Chaos) -> None:
    """Begin every run and leave it, so that no worker mistakes a finished one for none."""
    subject = chaos.opened()
    store = subject.open(Points())
    for name in chaos.names():
        await begin(PROGRAMS[kind_of(name)], store, name)
    await subject.close()


async def _judged(chaos: Chaos, wanted: Sequence[Plain]) -> None:
    subject = chaos.opened()
    store = subject.open(Points())
    for name in chaos.names():
        log = chaos.log(name)
        finished = [line["status"] for line in log.lines("finish")]
        # What began and did not finish was killed; what was fenced had been overtaken.
        faults = len(log.lines("begin")) - sum(status in ("ended", "asks", "busy") for status in finished)
        known = wanted[kind_of(name)]
        verdict = judge(
            await final_state(store, name),
            await store.read(name),
            log,
            wanted=known.state,
            asked=known.asked,
            faults=faults,
            thread=name,
            stalled=True,
            rows=subject.rows(name),
        )
        refused = len(log.lines("refused"))
        sys.stdout.write(
            json.dumps({"thread": name, "faults": faults, "refused": refused, "wrong": verdict.wrong}) + "\n"
        )
    await subject.close()


def main(chaos: Chaos) -> None:
    """Let it happen, and print what was found."""
    connect_through(Unsynced)
    chaos.place.mkdir(parents=True, exist_ok=True)
    wanted = [anyio.run(plain, program, backend=chaos.backend) for program in PROGRAMS]
    anyio.run(_begun, chaos, backend=chaos.backend)
    while threading.active_count() > 1:  # a process is forked by its only thread
        time.sleep(0.01)
    gc.collect()
    gc.freeze()
    random = Random(chaos.seed)
    faults = ["kill"] * chaos.kills + ["stop"] * chaos.stops
    random.shuffle(faults)
    herd = _Herd(chaos, random, faults)
    for number in range(chaos.workers):
        herd.start(number)
    herd.tend(time.monotonic() + 100)
    sys.stdout.write(json.dumps({"seed": chaos.seed, "killed": herd.killed, "stopped": herd.stopped}) + "\n")
    anyio.run(_judged, chaos, wanted, backend=chaos.backend)


if __name__ == "__main__":
    main(Chaos(**json.loads(sys.argv[1])))
