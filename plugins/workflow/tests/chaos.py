"""Workers of workflows in processes of their own, which die, freeze and thaw; and what may not come of it.

Where runs are kept is what `plugins.worker.tests.chaos` calls a place, so this is played on other stores as well.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from plugins.cli.tests.conftest import Locus
from plugins.worker.tests.chaos import Place, Start
from plugins.worker.tests.processes import LEASE, Process, until

from locus.core.errors import StoreError
from locus.core.journal import Outcome, Transition

__all__ = ["WorkChaos", "WorkLaws"]

_SHORT = os.environ.get("LOCUS_PROOFS", "quick") == "quick"
_SEEDS = [1] if _SHORT else [1, 2, 3]
_STOPS, _KILLS, _WORKERS = (1, 1, 2) if _SHORT else (6, 3, 4)
#: How often a worker is frozen once more, until one was refused a write.
_MORE = 10


def _read_log() -> Iterator[dict[str, Any]]:
    path = Path("loops")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    yield from (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n"))


async def _read(place: Place, threads: list[str], is_folded: bool = False) -> dict[str, list[Any]]:
    async with place.open_store() as store:
        for thread in threads if is_folded else ():
            await store.peek(thread)
        found = {thread: await store.read(thread) for thread in threads}
    for entries in found.values():
        assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    return {thread: [entry.body for entry in entries] for thread, entries in found.items()}


class WorkChaos:
    """Some workers, the runs of a loop, and what is done to them.

    Args:
        place: where the runs are kept.
        start: starts a command in the working directory.
        locus: runs one in this process.
        iterations: of each run, 5 or 20.
        runs: how many.
        workers: how many.
        seed: decides to which worker it happens.
        environment: of the workers.
    """

    def __init__(
        self,
        place: Place,
        start: Start,
        locus: Locus,
        *,
        iterations: int,
        runs: int,
        workers: int,
        seed: int = 1,
        **environment: str,
    ) -> None:
        self._place, self._start, self._environment = place, start, environment
        self._random, self._iterations = random.Random(seed), iterations
        self._source = f"looping:{ {5: 'five', 20: 'twenty'}[iterations] }"
        self.deaths = 0
        self._locus = locus
        self.runs: list[str] = []
        self._start_runs(runs)
        self.workers = [self.begin() for _ in range(workers)]

    def _start_runs(self, count: int) -> None:
        for n in range(len(self.runs), len(self.runs) + count):
            options = ("--id", f"run-{n}", "--checkpointer", self._place.checkpointer)
            assert self._locus("workflow", "start", self._source, *options).status == 0
            self.runs.append(f"run-{n}")

    def begin(self) -> Process:
        """Start a worker."""
        return self._start("workflow", "work", self._source, "--slots", "2", **self._environment)

    def replace_dead(self) -> None:
        """Start a worker for each that has died."""
        for n, each in enumerate(self.workers):
            if not each.is_running:
                self.deaths += 1
                self.workers[n] = self.begin()

    def amid(self, worker: Process) -> set[tuple[str, int]]:
        """The iterations that a worker is in: their effect is on record, and their end is not."""
        found: set[tuple[str, int]] = set()
        for line in _read_log():
            if line["pid"] == worker.pid and line["what"] in ("charged", "unknown"):
                found.add((line["run"], line["iteration"]))
            elif line["pid"] == worker.pid:
                found.discard((line["run"], line["iteration"]))
        return found

    def busy(self) -> Process:
        """A worker amid an iteration; where the runs have ended before the faults have, there are new ones."""
        if self.have_ended():
            self._start_runs(len(self.workers))
        found: list[Process] = until(lambda: [each for each in self.workers if self.amid(each)], "a busy worker")
        return self._random.choice(found)

    def freeze(self) -> None:
        """Freeze a worker past its lease, and thaw it while its successor is in the same iteration."""
        victim = self.busy()
        self._place.freeze(victim)
        held, since = self.amid(victim), time.time()
        end = time.monotonic() + 20 * LEASE
        while time.monotonic() < end and not any(
            line["pid"] != victim.pid and line["at"] > since and (line["run"], line["iteration"]) in held
            for line in _read_log()
        ):
            time.sleep(0.01)
        victim.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill a worker, and start another one."""
        victim = self.busy()
        victim.signal(signal.SIGKILL)
        until(lambda: not victim.is_running, "the end of a worker that was killed")
        self.replace_dead()

    def have_ended(self) -> bool:
        """Whether all runs have; workers that died meanwhile are replaced."""
        self.replace_dead()
        found = anyio.run(_read, self._place, self.runs).values()
        return all(any(isinstance(b, Transition) and b.next_node == "end" for b in bodies) for bodies in found)

    def count_refused(self) -> int:
        """How often a worker that had lost its step was refused a write."""
        return sum(line["what"] == "refused" for line in _read_log())

    def find_extra(self) -> list[str]:
        """The entries of which one may be, and more are; and threads that nobody can go on with."""
        steps = [f"{run}/look" for run in self.runs]
        found: list[str] = []
        try:
            journals = anyio.run(_read, self._place, steps, True)
        except StoreError as e:  # nobody can go on with it
            return [str(e)]
        for thread, bodies in journals.items():
            kept = Counter(str(b.step_id) for b in bodies if isinstance(b, Outcome))
            kept |= Counter(b.detail.rpartition(".")[0] for b in bodies if isinstance(b, Transition) and b.detail)
            found += [f"{thread}: {step} is on record {n} times" for step, n in kept.items() if n > 1]
        return found

    def find_damage(self) -> list[str]:
        """What is in the journals, or was done, that one worker without a fault would not have made."""
        charged = Counter((line["run"], line["iteration"]) for line in _read_log() if line["what"] == "charged")
        found = [f"{what} was charged {n} times" for what, n in charged.items() if n > 1]
        wanted = ["", *["continue"] * (self._iterations - 1), "failed"]
        steps = anyio.run(_read, self._place, [f"{run}/look" for run in self.runs])
        for thread, bodies in steps.items():
            whys = [b.why for b in bodies if isinstance(b, Transition)]
            if whys != wanted:
                found.append(f"{thread}: {whys}")
        found += self.find_extra()
        for thread, bodies in anyio.run(_read, self._place, self.runs).items():
            ends = [b.why for b in bodies if isinstance(b, Transition) and b.next_node == "end"]
            if ends != ["failed"]:
                found.append(f"{thread}: ended {ends}")
        return found

    def insist_that_nothing_is_added(self, *acts: Callable[[], None]) -> None:
        """Do this in an order of the seed; then all runs end, and no worker has added anything to them."""
        for act in self._random.sample(acts, len(acts)):
            act()
        for _ in range(
            _MORE if acts else 0
        ):  # a worker whose iteration ended right before it froze was refused nothing
            if self.count_refused():
                break
            self.freeze()
            until(lambda: self.count_refused() or self.have_ended(), "a refused write, or the end of all runs")
        until(self.have_ended, "the end of all runs")
        print(f"{self.count_refused()} refused, {self.deaths} deaths, {len(self.runs)} runs")  # noqa: T201
        found = self.find_damage()
        assert not found, found  # this module is no test, so pytest shows nothing by itself


class WorkLaws:
    """What holds of workers of workflows wherever runs are kept; subclass it beside a fixture ``place``."""

    #: What has the store not fence, when it is imported.
    unfenced: Path

    @pytest.fixture(autouse=True)
    def _programs(self, here: Path, shop: Path) -> None:
        shutil.copy(Path(__file__).with_name("looping.py"), here)
        shutil.copy(self.unfenced, here)

    def test_worker_that_dies_between_what_it_stored_and_its_offer_adds_no_iteration(
        self, place: Place, start: Start, locus: Locus
    ) -> None:
        """The bound is exact."""
        often, runs, iterations = ("0.1", 4, 5) if _SHORT else ("0.03", 16, 20)
        chaos = WorkChaos(place, start, locus, iterations=iterations, runs=runs, workers=_WORKERS, LOOP_DIES=often)

        chaos.insist_that_nothing_is_added()

        began = Counter((line["run"], line["iteration"]) for line in _read_log() if line["what"] == "began")
        assert set(began) == {(run, n) for run in chaos.runs for n in range(iterations)}
        # What was in the other slot of a worker that died is begun again.
        assert began.total() <= runs * iterations + chaos.deaths
        assert _SHORT or chaos.deaths >= 1

    @pytest.mark.parametrize("seed", _SEEDS)
    def test_workers_that_thaw_beside_their_successors_add_nothing(
        self, place: Place, start: Start, locus: Locus, seed: int
    ) -> None:
        chaos = WorkChaos(
            place, start, locus, iterations=20, runs=2 * _WORKERS, workers=_WORKERS, seed=seed, LOOP_SECONDS="0.2"
        )

        chaos.insist_that_nothing_is_added(*[chaos.freeze] * _STOPS, *[chaos.kill] * _KILLS)

        assert chaos.count_refused() >= 1, "no worker was refused anything: this proves nothing"

    def test_a_store_that_does_not_fence_is_found(self, place: Place, start: Start, locus: Locus) -> None:
        chaos = WorkChaos(
            place, start, locus, iterations=20, runs=4, workers=2, LOOP_SECONDS="0.2", WORKER_MUTANT="unfenced"
        )

        found: list[str] = []
        for _ in range(_MORE):  # a worker whose successor came late has nothing to write twice
            chaos.freeze()
            until(lambda: chaos.find_extra() or chaos.have_ended(), "damage, or the end of all runs")
            found = chaos.find_extra()
            if found:
                break

        assert found, "no damage was found"
