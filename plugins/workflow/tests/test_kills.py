"""A process that is killed at any write of a workflow: the run ends as if it had not been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.chaos]

ROOT = Path(__file__).resolve().parents[3]

#: A process dies at every write in the proofs, and at every fourth one in the default run.
STRIDE = 4 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def test_a_kill_at_any_write_changes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "plugins.workflow.tests.killing", str(tmp_path), str(STRIDE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout)

    assert came["found"] == []
    assert came["deaths"] >= 16 // STRIDE
    assert came["wanted"] == {
        "status": "completed",
        "output": [4, "published"],
        "look": ["hello", "turn 0", "turn 1", "turn 2"],
        "why": ["", "continue", "continue", "completed"],
    }
