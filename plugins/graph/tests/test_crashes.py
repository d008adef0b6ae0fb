"""A process that is killed at any write of a graph: the run ends as if uninterrupted, and no effect is doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[3]

#: A process dies at every write in the proofs, and at every third one in the default run.
STRIDE = 3 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def killed(folder: Path, sync: str, control: str = "", stride: int = STRIDE) -> Any:
    command = [sys.executable, "-m", "plugins.graph.tests.crashing", str(folder), sync, control, str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_kill_at_any_write_changes_neither_the_values_nor_what_happened(tmp_path: Path, sync: str) -> None:
    came = killed(tmp_path, sync)

    assert came["found"] == []
    assert came["writes"] > 30
    assert came["before"] == len(range(0, came["writes"], STRIDE))
    assert came["after"] > 20 // STRIDE  # an append that is posted is one write, and has one end
    assert came["asked"] > 3
    log = ["in", "plan", "side", "work0", "work1", "work2", "check", "pay", "inner", "inner2", "deep", "ask=yes"]
    assert came["wanted"]["values"] == {"log": [*log, "loop", "loop"], "mail": "sent"}


@pytest.mark.parametrize("control", ["pure", "unstable"])
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, control: str) -> None:
    assert killed(tmp_path, "normal", control, 8)["found"] != []
