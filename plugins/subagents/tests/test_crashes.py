"""A process that is killed in any write of a run with subagents: it ends as if uninterrupted, nothing done twice."""

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

#: A process dies in every write in the proofs, and in every ninth one in the default run.
STRIDE = 9 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def kill(folder: Path, stride: int, control: str = "") -> Any:
    command = [sys.executable, "-m", "plugins.subagents.tests.crashing", str(folder), str(stride), control]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_in_any_write_changes_neither_the_answers_nor_what_happened(tmp_path: Path) -> None:
    came = kill(tmp_path, STRIDE)
    assert came["wrong"] == []
    assert came["deaths"] > 50 // STRIDE
    assert came["wanted"] == ["All is done.", ["one is done.", "two is done.", "three is done."]]


def test_what_is_broken_on_purpose_is_found(tmp_path: Path) -> None:
    assert kill(tmp_path, 4, "once")["wrong"] != []
