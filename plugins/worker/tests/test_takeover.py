"""Workers on one file are frozen, thawed and killed: see `chaos`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .chaos import KILLS, SEEDS, STOPS, Chaos, Place, Start, Threads
from .processes import until

pytestmark = [pytest.mark.proof, pytest.mark.chaos]


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_that_thaw_beside_their_successors_add_nothing(
    place: Place, start: Start, threads: Threads, seed: int
) -> None:
    chaos = Chaos(place, start, threads, seed)

    chaos.insist_that_nothing_is_added(*[chaos.freeze] * STOPS, *[chaos.kill] * KILLS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_that_does_not_fence_is_found(
    here: Path, place: Place, start: Start, threads: Threads, seed: int
) -> None:
    shutil.copy(Path(__file__).with_name("unfenced.py"), here)
    chaos = Chaos(place, start, threads, seed, WORKER_MUTANT="unfenced")

    chaos.freeze()
    until(chaos.find_damage, "damage")
