"""A process that is killed in any node of the research workflow: a resume ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from locus_deepagent.research.keys import KEY_CAUSAL_CHAIN, KEY_REPLAN_COUNT

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[3]

IS_QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"


def killed(folder: Path, stride: int, at: str) -> Any:
    command = [sys.executable, "-m", "contrib.deepagent.tests.crashing", str(folder), str(stride), at]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_in_any_node_changes_nothing_and_repeats_the_last_questions_at_most(tmp_path: Path) -> None:
    stride = 5 if IS_QUICK else 1
    came = killed(tmp_path, stride, "questions")

    assert came["found"] == []
    assert came["deaths"] == came["questions"][::stride]
    assert IS_QUICK or set(came["deaths"]) == {"think", "tool", "causal", "summarize", "grounding", "regenerate"}
    assert came["wanted"]["values"][KEY_REPLAN_COUNT] == 2
    assert came["wanted"]["values"][KEY_CAUSAL_CHAIN]["nodes"][0][0] == "a new line in a spectrum"


def test_a_kill_in_any_write_changes_nothing(tmp_path: Path) -> None:
    came = killed(tmp_path, 32 if IS_QUICK else 1, "writes")
    assert came["found"] == []
    assert len(came["deaths"]) >= 2


def test_a_kill_in_any_write_of_a_deep_agent_changes_nothing_and_repeats_no_effect(tmp_path: Path) -> None:
    stride = 11 if IS_QUICK else 1
    command = [sys.executable, "-m", "contrib.deepagent.tests.crashing_agent", str(tmp_path), str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout)

    assert came["wrong"] == []
    assert came["deaths"] >= 30 // stride
    assert came["wanted"]["reason"] == "ToolCalled AND ConfidenceMet"
    assert came["wanted"]["results"][-1] == "submitted"
    assert [key.partition("/")[0] for key in came["wanted"]["kept"]] == ["files", "todos"]
