"""A process that is killed in any write of an agent with todos: the list is as if nothing had happened."""

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

#: A process dies in every write in the proofs, and in every sixth one in the default run.
STRIDE = 6 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def kill(folder: Path, stride: int, control: str = "") -> Any:
    command = [sys.executable, "-m", "plugins.todos.tests.crashing", str(folder), str(stride), control]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_in_any_write_changes_nothing_of_the_list(tmp_path: Path) -> None:
    came = kill(tmp_path, STRIDE)
    assert came["changed"] == []
    assert came["deaths"] > 24 // STRIDE
    assert came["wanted"][0] == "Still later."
    assert came["wanted"][1] == [{"content": "c", "status": "pending"}]


def test_what_is_broken_on_purpose_is_found(tmp_path: Path) -> None:
    assert kill(tmp_path, 12, "bodies")["changed"] != []
