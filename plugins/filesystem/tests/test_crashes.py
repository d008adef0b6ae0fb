"""A process that is killed at any write of a run with files and a child: nothing differs from a run that was not."""

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

#: A process dies at every write in the proofs, and at every sixth one in the default run, which has one control.
QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"
STRIDE = 6 if QUICK else 1
CONTROLS = ["large"] if QUICK else ["calls", "children", "large"]


def kill(folder: Path, control: str = "", stride: int = STRIDE, ids: str = "unique") -> Any:
    command = [sys.executable, "-m", "plugins.filesystem.tests.crashing", str(folder), control, str(stride), ids]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("ids", ["unique", "same"])
def test_a_kill_at_any_write_changes_neither_the_files_nor_what_the_tools_said(tmp_path: Path, ids: str) -> None:
    came = kill(tmp_path, ids=ids)

    assert came["found"] == []
    assert came["deaths"] > 40 // STRIDE
    files = came["wanted"]["files"]
    assert len(files.pop("files/large_results/one")) == 100_000
    assert files == {"files/a": "three\n", "files/b": "b2\n", "files/c": "of the kid\n"}
    conflict = "conflict: the turn already changes /a; change /a in the next one"
    first, second = ["/a", "/b", conflict], ["/a", "     1\tone", "/b"]
    *said, large, read_a, read_c = came["wanted"]["said"]
    assert said == [*first, *second, "child is done", "     1\tb2"]
    assert large.startswith("[this result has 100,000 characters; all of it is in /large_results/one, in 20,001 lines")
    assert (read_a, read_c) == ("     1\tthree", "     1\tof the kid")


@pytest.mark.parametrize("control", CONTROLS)
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, control: str) -> None:
    assert kill(tmp_path, control, 1)["found"] != []
