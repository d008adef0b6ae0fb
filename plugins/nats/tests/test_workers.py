"""Workers on one server are frozen, thawed and killed, and so is the server: see `plugins.worker.tests.chaos`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plugins.worker.tests import chaos
from plugins.worker.tests.chaos import KILLS, SEEDS, STOPS, WORKERS, Chaos, Start, Threads
from plugins.worker.tests.processes import charges, until

from locus.core.errors import JournalDamaged

from .conftest import ServerPlace

pytestmark = pytest.mark.proof

#: How often the server is killed and started again.
RESTARTS = 1 if WORKERS == 2 else 2


@pytest.mark.chaos
@pytest.mark.parametrize("seed", SEEDS)
def test_workers_that_thaw_beside_their_successors_add_nothing(
    place: ServerPlace, start: Start, threads: Threads, seed: int
) -> None:
    chaos = Chaos(place, start, threads, seed)

    def restart() -> None:
        chaos.busy()
        place.server.kill()
        place.server.start()

    chaos.insist_that_nothing_is_added(*[chaos.freeze] * STOPS, *[chaos.kill] * KILLS, *[restart] * RESTARTS)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_does_not_compare_is_found(
    here: Path, place: ServerPlace, start: Start, threads: Threads, seed: int
) -> None:
    shutil.copy(Path(__file__).with_name("unfenced.py"), here)
    chaos = Chaos(place, start, threads, seed, WORKER_MUTANT="unfenced")

    def find_damage() -> list[str]:
        try:
            return chaos.find_damage()
        except JournalDamaged as e:
            return [str(e)]

    chaos.freeze()
    until(find_damage, "damage")


def test_a_worker_whose_loop_hangs_loses_its_run_to_another(
    here: Path, place: ServerPlace, start: Start, threads: Threads
) -> None:
    shutil.copy(Path(chaos.__file__).with_name("hanging.py"), here)
    (thread,) = threads("hanging:agent")
    hangs = start("worker", "hanging:agent", "--stuck-after", "0.5")
    until(lambda: charges(here).total() == 1, "a loop that hangs")

    other = start("worker", "hanging:agent")
    assert other.expect("taken")["thread_id"] == thread
    assert other.expect("done")["text"] == "NoToolCalls"
    (here / "gate").touch()

    hangs.expect("back")
    assert [each["kind"] for each in hangs.lines if each.get("is_failure")][:1] == ["stuck"]
    assert charges(here).total() == 1
