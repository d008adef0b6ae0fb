"""Workers on one server are frozen, thawed and killed, and so is the server: see `plugins.worker.tests.chaos`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plugins.worker.tests.chaos import KILLS, SEEDS, STOPS, WORKERS, Chaos, Start, Threads
from plugins.worker.tests.processes import until

from .conftest import ServerPlace

pytestmark = [pytest.mark.proof, pytest.mark.chaos]

#: How often the server is killed and started again.
_RESTARTS = 1 if WORKERS == 2 else 2


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_that_thaw_beside_their_successors_add_nothing(
    place: ServerPlace, start: Start, threads: Threads, seed: int
) -> None:
    chaos = Chaos(place, start, threads, seed)

    def restart() -> None:
        chaos.busy()
        place.server.stop()
        place.server.start()

    chaos.insist_that_nothing_is_added(*[chaos.freeze] * STOPS, *[chaos.kill] * KILLS, *[restart] * _RESTARTS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_that_does_not_fence_is_found(
    here: Path, place: ServerPlace, start: Start, threads: Threads, seed: int
) -> None:
    shutil.copy(Path(__file__).with_name("unfenced.py"), here)
    chaos = Chaos(place, start, threads, seed, WORKER_MUTANT="unfenced")

    chaos.freeze()
    until(chaos.find_damage, "damage")
