"""A process that is killed at any write of a workflow: the run ends as if it had not been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.chaos]

ROOT = Path(__file__).resolve().parents[3]

#: A process dies at every write in the proofs, and at every fourth one in the default run.
STRIDE = 4 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def kill(folder: Path, what: str) -> Any:
    command = [sys.executable, "-m", "plugins.workflow.tests.killing", str(folder), str(STRIDE), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_at_any_write_changes_nothing(tmp_path: Path) -> None:
    came = kill(tmp_path, "look")

    assert came["found"] == []
    assert came["deaths"] >= 16 // STRIDE
    assert came["wanted"] == {
        "status": "completed",
        "output": [4, "published"],
        "look": ["hello", "turn 0", "turn 1", "turn 2"],
        "why": ["", "continue", "continue", "completed"],
    }


def test_a_kill_at_any_write_around_a_sleep_repeats_nothing_and_wakes_nothing_early(tmp_path: Path) -> None:
    """What may happen once is unknown only where the death came between its intent and its outcome: two of all."""
    came = kill(tmp_path, "sleep")

    assert came["found"] == []
    assert came["deaths"] >= 16 // STRIDE
    assert came["wanted"] == {"status": "completed", "sleeps": 1}
    assert came["left"] == "True"
    assert max(came["unknown"].values(), default=0) <= 2
