"""``locus workflow retry``, while the workers that fail a step and begin it again are killed with SIGKILL."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus
from plugins.worker.tests.processes import Process, until

from .test_kills import ROOT, STRIDE
from .test_watches import STORE, of_type

pytestmark = pytest.mark.proof


def test_a_step_that_is_begun_again_outlives_the_workers_that_are_killed(
    here: Path, start: Callable[..., Process], locus: Locus
) -> None:
    shutil.copy(Path(__file__).with_name("retrying.py"), here)

    def began() -> list[str]:
        path = here / "began"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    assert locus("workflow", "start", "retrying:wf", "--id", "r", "--input", '"given"', *STORE).status == 0
    first = start("workflow", "work", "retrying:wf")
    until(lambda: of_type(first, "run.failed"), "the end of the run")
    first.signal(signal.SIGKILL)

    # Nobody is at work: the wish to begin again waits for a worker. Uttered twice, it is one.
    (here / "mended").touch()
    for _ in range(2):
        assert locus("workflow", "retry", "r", "look", *STORE).status == 0
    second = start("workflow", "work", "retrying:wf")
    until(lambda: len(began()) == 2, "the step that is begun again")
    second.signal(signal.SIGKILL)
    assert json.loads(locus("workflow", "show", "r", "--json", *STORE).out)["status"] == "running"

    (here / "gate").touch()
    third = start("workflow", "work", "retrying:wf")
    until(lambda: of_type(third, "run.completed"), f"the end of the run: {third.lines}")

    shown = json.loads(locus("workflow", "show", "r", "--json", *STORE).out)
    assert (shown["status"], shown["output"], shown["error"]) == ("completed", "whole", "")
    assert began() == ["given half"] * 3
    assert not of_type(third, "run.failed")
    refused = locus("workflow", "retry", "r", "look", *STORE)
    assert refused.status == 1
    assert "step 'look' of run 'r' has not failed" in refused.err


@pytest.mark.chaos
def test_a_kill_at_any_write_of_a_retry_begins_the_step_again_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "plugins.workflow.tests.killing_retries", str(tmp_path), str(STRIDE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout)

    assert came["found"] == []
    assert came["deaths"] >= 16 // STRIDE
    assert came["wanted"] == {
        "status": "completed",
        "output": ["published", 1],
        "why": ["", "continue", "failed", "", "continue", "completed"],
    }
