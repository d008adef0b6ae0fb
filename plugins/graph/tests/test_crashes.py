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

#: A process dies in every write in the proofs, and in every seventh one in the default run.
STRIDE = 7 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def killed(folder: Path, sync: str, control: str = "", stride: int = STRIDE) -> Any:
    command = [sys.executable, "-m", "plugins.graph.tests.crashing", str(folder), sync, control, str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_kill_at_any_write_comes_to_what_a_store_in_memory_comes_to(tmp_path: Path, sync: str) -> None:
    """Given SIGKILL in a write; then values, transitions and effects are those of a run that nothing disturbs."""
    came = killed(tmp_path, sync)

    assert came["found"] == []
    assert came["before"] == came["writes"] > 30 // STRIDE
    assert came["after"] > 14 // STRIDE  # an append that is posted is one write, and has one end
    assert came["asked"] > 1
    log = ["in", "plan", "side", "work0", "work1", "work2", "check", "pay", "inner", "inner2", "deep", "ask=yes"]
    assert came["wanted"]["values"] == {"log": [*log, "loop", "loop"], "mail": "sent"}
    whys = [why for why, _ in came["wanted"]["transitions"]]
    assert whys[:4] == ["a new turn", "plan, side -> work, work, work", "work, work, work -> check", "check -> sub"]


@pytest.mark.parametrize("control", ["pure", "unstable", "altering"])
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, control: str) -> None:
    assert killed(tmp_path, "normal", control, 8)["found"] != []
