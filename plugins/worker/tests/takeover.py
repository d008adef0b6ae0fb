"""What workers promise on any store while they are frozen, thawed and killed, and its server with them: see `chaos`."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest

from locus.core.errors import JournalDamaged

from .chaos import KILLS, SEEDS, STOPS, WORKERS, Chaos, Start, Threads
from .processes import until

__all__ = ["Takeover"]

#: How often a server is killed and started again.
_RESTARTS = 1 if WORKERS == 2 else 2


@pytest.mark.proof
@pytest.mark.chaos
class Takeover:
    """Subclass it beside `unfenced.py`, a store that does not fence, where a fixture `place` is the store."""

    #: Whether the store has a server, which `restart` kills and starts again.
    has_server = False

    def restart(self, place: Any) -> None:
        """Kill the server and start it again."""
        raise NotImplementedError

    @pytest.mark.parametrize("seed", SEEDS)
    def test_workers_that_thaw_beside_their_successors_add_nothing(
        self, place: Any, start: Start, threads: Threads, seed: int
    ) -> None:
        chaos = Chaos(place, start, threads, seed)

        def restart() -> None:
            chaos.busy()
            self.restart(place)

        restarts = [restart] * _RESTARTS if self.has_server else []
        chaos.insist_that_nothing_is_added(*[chaos.freeze] * STOPS, *[chaos.kill] * KILLS, *restarts)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_store_that_does_not_fence_is_found(
        self, here: Path, place: Any, start: Start, threads: Threads, seed: int
    ) -> None:
        shutil.copy(Path(inspect.getfile(type(self))).with_name("unfenced.py"), here)
        chaos = Chaos(place, start, threads, seed, WORKER_MUTANT="unfenced")

        def find_damage() -> list[str]:
            try:
                return chaos.find_damage()
            except JournalDamaged as e:  # the store has found it itself
                return [str(e)]

        chaos.freeze()
        until(find_damage, "damage")
