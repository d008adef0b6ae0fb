"""Chaos that is aimed: workers are frozen past their lease, and thaw while their successor is at work.

Random kills are a weak judge: with the compare-and-swap of the store switched off they find nothing. A worker that
comes back to a thread which another has gone on with is where an unfenced write would show: as an extra entry, an
extra end, or a tool with ``effect="once"`` that ran twice.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import anyio

from locus.core.errors import StoreError
from locus.core.journal import Intent, Outcome, Transition

from .processes import LEASE, Process, charges, read_log, until

__all__ = ["KILLS", "SEEDS", "STOPS", "WORKERS", "Chaos", "Place", "Start", "Threads"]

_SHORT = os.environ.get("LOCUS_PROOFS", "quick") == "quick"
SEEDS = [1] if _SHORT else [1, 2, 3, 4, 5]
STOPS, KILLS, WORKERS = (2, 1, 2) if _SHORT else (10, 2, 4)
#: How often a worker is frozen once more, until one was refused a write.
_MORE = 10

Start = Callable[..., Process]
Threads = Callable[..., list[str]]


class Place(Protocol):
    """Where the runs of a test are kept."""

    @property
    def checkpointer(self) -> str:
        """As the command line has it."""

    @property
    def settings(self) -> str:
        """Of ``locus.toml``: a lease of `LEASE` seconds, and what else is needed."""

    def open_store(self) -> AbstractAsyncContextManager[Any]:
        """The store."""

    def freeze(self, process: Process) -> None:
        """Stop a process, at a moment at which the others can go on."""


class Chaos:
    """Some workers, the runs they work on, and what is done to them.

    Args:
        place: where the runs are kept.
        start: starts a command in the working directory, where the program of the agent is.
        threads: submits turns.
        seed: decides to which worker it happens.
        environment: of the workers.
    """

    def __init__(self, place: Place, start: Start, threads: Threads, seed: int, **environment: str) -> None:
        self._place, self._start, self._threads, self._environment = place, start, threads, environment
        self._random = random.Random(seed)
        self.runs = threads("shop:many", 3 * WORKERS)
        self.workers = [self.begin() for _ in range(WORKERS)]
        self.gone: list[Process] = []

    def begin(self) -> Process:
        """Start a worker."""
        return self._start("worker", "shop:many", "--slots", "2", SHOP_SECONDS="0.3", **self._environment)

    def has(self, worker: Process) -> set[str]:
        """The threads in the slots of a worker."""
        held: set[str] = set()
        for line in tuple(worker.lines):
            if line["kind"] == "taken":
                held.add(line["thread_id"])
            elif line["kind"] in ("done", "back"):
                held.discard(line["thread_id"])
        return held

    def busy(self) -> Process:
        """A worker amid a run; where the runs have ended before the faults have, there are new ones."""

        def find() -> list[Process]:
            found = [each for each in self.workers if self.is_amid(each)]
            if not found and self.have_ended():  # also while this waits
                self.runs += self._threads("shop:many", WORKERS)
            return found

        found: list[Process] = until(find, "a busy worker")
        return self._random.choice(found)

    def is_amid(self, worker: Process) -> bool:
        """Whether it has done something of each run that it has; one that has only begun has nothing to write."""
        if not self.has(worker):
            return False
        taken = datetime.fromisoformat(worker.of_kind("taken")[-1]["at"]).timestamp()
        return any(line["pid"] == worker.pid and line["at"] > taken for line in read_log(Path()))

    def have_ended(self) -> bool:
        """Whether all runs have."""
        found = anyio.run(_read, self._place, self.runs).values()
        return all(any(isinstance(b, Transition) and b.next_node == "end" for b in bodies) for bodies, _ in found)

    def has_successor_worked(self, victim: Process, held: set[str], since: float) -> bool:
        """Whether another worker has taken a thread of a frozen one, and has done something since."""
        for each in self.workers:
            taken = [
                datetime.fromisoformat(line["at"]).timestamp()
                for line in each.of_kind("taken")
                if each is not victim and line["thread_id"] in held
            ]
            times = [at for at in taken if at > since]
            if times and any(line["pid"] == each.pid and line["at"] > times[0] for line in read_log(Path())):
                return True
        return False

    def freeze(self) -> None:
        """Freeze a worker past its lease, and thaw it while its successor is at work."""
        victim = self.busy()
        self._place.freeze(victim)
        held, since = self.has(victim), time.time()
        # A job that ended right before the freeze has no successor: then there is nothing to wait for.
        end = time.monotonic() + 20 * LEASE
        while not self.has_successor_worked(victim, held, since) and time.monotonic() < end:
            time.sleep(0.01)
        victim.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill a worker, and start another one."""
        victim = self.busy()
        victim.signal(signal.SIGKILL)
        self.workers.remove(victim)
        self.gone.append(victim)
        self.workers.append(self.begin())

    def fenced(self) -> int:
        """How often a worker found another one in its thread, in the middle of its work."""
        every = [line for each in (*self.workers, *self.gone) for line in tuple(each.lines)]
        return sum(line["kind"] == "back" and "another worker" in line["text"] for line in every)

    def find_damage(self) -> list[str]:
        """What is in the journals, or was done, that one worker without a fault would not have made."""
        found = [f"{what} ran {n} times" for what, n in charges(Path()).items() if n > 1]
        try:
            journals = anyio.run(_read, self._place, self.runs)
        except StoreError as e:  # nobody can go on with it
            return [*found, str(e)]
        for thread, (bodies, numbers) in journals.items():
            nodes = [str(b.node) for b in bodies if isinstance(b, Transition)]
            # The start, six turns of think and execute, the answer, the end: no worker has added one.
            if nodes != ["start", *["think", "execute"] * 6, "think", "terminate"]:
                found.append(f"{thread}: {nodes}")
            if numbers != list(range(1, len(numbers) + 1)):
                found.append(f"{thread}: {numbers}")
            steps = Counter((type(b).__name__, str(b.step_id)) for b in bodies if isinstance(b, Intent | Outcome))
            found += [f"{thread}: {step} is on record {n} times" for step, n in steps.items() if n > 1]
        return found

    def insist_that_nothing_is_added(self, *acts: Callable[[], None]) -> None:
        """Do this in an order of the seed; then all runs end, and no worker has added anything to them."""
        for act in self._random.sample(acts, len(acts)):
            act()
        for _ in range(_MORE):  # a worker whose job ended right before it froze was refused nothing
            if self.fenced():
                break
            self.freeze()
            until(lambda: self.fenced() or self.have_ended(), "a refused write, or the end of all runs")
        until(self.have_ended, "the end of all runs")

        print(f"{self.fenced()} fenced, {len(self.runs)} runs")  # noqa: T201
        assert self.fenced() >= 1, "no worker was refused anything: this proves nothing"
        assert self.find_damage() == []


async def _read(place: Place, threads: list[str]) -> dict[str, tuple[list[object], list[int]]]:
    async with place.open_store() as store:
        found = {thread: await store.read(thread) for thread in threads}
    return {thread: ([e.body for e in entries], [e.n for e in entries]) for thread, entries in found.items()}
