"""A process that is killed in the third of five items: another one goes on, and repeats nothing that was finished."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .crashing import POINTS as EVERY
from .kit import ELEMENTS

pytestmark = pytest.mark.proof

#: All points in the proofs; in the default run every second one.
POINTS = EVERY[::2] if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else EVERY

ROOT = Path(__file__).resolve().parents[3]

#: What is done for an item, line by line.
STEPS = ("ground", "model", "model", "merge")


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> Any:
    command = [sys.executable, "-m", "plugins.knowledge.tests.crashing", str(tmp_path_factory.mktemp("killed"))]
    command += POINTS
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_scan_that_is_not_killed_is_what_the_others_are_compared_with(came: Any) -> None:
    for concurrency in (1, 4):
        whole = came[f"{concurrency} "]
        assert not whole["died"]
        assert [row[:2] for row in whole["ended"]["rows"]] == [[*each] for each in ELEMENTS.items()]
        assert whole["ended"]["kinds"] == ["ElementRow"]
        assert whole["ended"]["kept"] == 5
        assert whole["after"] == []


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("point", POINTS)
def test_what_comes_of_it_is_the_same(came: Any, concurrency: int, point: str) -> None:
    killed = came[f"{concurrency} {point}"]
    assert killed["died"]
    told = killed["ended"].pop("told")
    # What was on record counts as well; of a scan that had ended nothing is emitted.
    assert told == ([] if point == "close" else [[done, 5] for done in range(1, 6)])
    assert killed["ended"] == {key: value for key, value in came[f"{concurrency} "]["ended"].items() if key != "told"}


@pytest.mark.parametrize("point", POINTS)
def test_the_items_before_are_not_repeated_and_the_one_under_way_goes_on_where_it_was(came: Any, point: str) -> None:
    before, after = came[f"1 {point}"]["before"], came[f"1 {point}"]["after"]
    if point == "close":
        assert after == []  # the scan had ended: its result is on record
        return
    assert (after[:3], after[-1], after.count("close")) == (["open", "tools", "schema"], "close", 1)
    assert "discover" not in after
    assert [line for line in after if line.split()[-1] in ("lithium", "aluminium")] == []
    finished = sum(line.endswith(" iron") for line in before) - 1
    assert [line.split()[0] for line in after if line.endswith(" iron")] == [*STEPS[finished:]]
    assert [line for line in after if line.startswith("merge")] == ["merge iron", "merge copper", "merge gold"]


@pytest.mark.parametrize("point", POINTS[:-1])
def test_with_several_items_at_once_none_of_them_is_finished_twice(came: Any, point: str) -> None:
    before, after = came[f"4 {point}"]["before"], came[f"4 {point}"]["after"]
    for name in ELEMENTS:
        # One line at a time is under way when the process dies; what was on record before is not done again.
        for step in ("ground", "merge"):
            assert (before + after).count(f"{step} {name}") <= 2
    assert "discover" not in after
    assert after[-1] == "close"
