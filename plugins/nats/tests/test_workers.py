"""Workers on one server are frozen, thawed and killed, and so is the server, see `plugins.worker.tests.takeover`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plugins.worker.tests import chaos
from plugins.worker.tests.chaos import Start, Threads
from plugins.worker.tests.processes import charges, until
from plugins.worker.tests.takeover import Takeover

from .conftest import ServerPlace

pytestmark = pytest.mark.proof


class TestTakeover(Takeover):
    has_server = True

    def restart(self, place: ServerPlace) -> None:
        place.server.kill()
        place.server.start()


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
