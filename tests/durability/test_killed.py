"""SIGKILL at every point of a run, then a new process that goes on: the run ends like the one that was never killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.durability.effort import THOROUGH
from tests.durability.programs import side_by_side

#: What must have been struck, whatever the store.
EVERYWHERE = {
    "peek: before",
    "claim: before",
    "claim: after",
    "append: before",
    "append: after Intent",
    "append: after Outcome",
    "append: after Asked",
    "append: after Answered",
    "append: after Paused",
    "append: after Resumed",
    "append: after a transition",
    "release: before",
    "release: after",
    "model: before",
    "model: inside",
    "once: before the effect",
    "once: after the effect",
    "keyed: before the effect",
    "keyed: after the effect",
    "pure: before the effect",
    "pure: after the effect",
    "step: after the effect",
    "hook: think",
    "hook: tool complete",
    "hook: review",
    "hook: reflect",
    "hook: before it sleeps",
    "hook: before it waits",
    "hook: after it waited",
    "hook: terminate",
}
INSIDE = {
    "sqlite": {
        "post: before",
        "post: under way",
        "post: known, append: after a transition",
        "post: known, append: after the final transition",
        "sql: after BEGIN IMMEDIATE",
        "sql: after INSERT INTO",
        "sql: after UPDATE threads",
        "sql: after COMMIT",
    },
    "files": {
        "append: after the final transition",
        "file: before the write",
        "file: inside the write",
        "file: written",
    },
}
SNAPSHOTS = {"snapshot: before", "snapshot: after"}

#: How many points a test strikes, so that none takes long. The last one goes on to where the run ends.
SIZE, STARTS = 120, (1, 121, 241, 361)

#: Every point is struck by the proofs, every third one by the default run.
STRIDE = 1 if THOROUGH else 3

CASES: list[tuple[str, dict[str, Any]]] = [("sqlite", {"mode": "concurrent"})]
if THOROUGH:
    CASES += [
        ("sqlite", {"mode": "sequential", "backend": "trio", "snapshot_every": 4}),
        ("files", {"mode": "concurrent", "snapshot_every": 4}),
    ]


@pytest.mark.parametrize(("subject", "options"), CASES)
def test_the_points_are_before_inside_and_after_everything(
    subject: str, options: dict[str, Any], tmp_path: Path
) -> None:
    beyond = 1_000_000
    [line] = side_by_side("explore", [{"subject": subject, "folder": str(tmp_path), "first": beyond, **options}])
    assert (line["hit"], line["wrong"]) == ("", [])
    wanted = EVERYWHERE | INSIDE[subject] | (SNAPSHOTS if "snapshot_every" in options else set())
    assert wanted - set(line["names"]) == set()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("subject", "options"), CASES)
def test_a_run_that_is_killed_at_any_point_ends_like_the_one_that_never_was(
    subject: str, options: dict[str, Any], start: int, tmp_path: Path
) -> None:
    upto = 0 if start == STARTS[-1] else start + SIZE - 1
    order = {"subject": subject, "folder": str(tmp_path), "step": 2 * STRIDE, "upto": upto, **options}
    found = side_by_side("explore", [{**order, "first": start}, {**order, "first": start + STRIDE}])
    struck = [line for line in found if line["hit"]]
    assert {line["at"]: (line["hit"], line["wrong"]) for line in found if line["wrong"]} == {}
    assert len(struck) == SIZE // STRIDE if upto else len(found) - len(struck) == 2  # both went beyond the last point


@pytest.mark.parametrize(
    ("subject", "said"),
    [("files: save, then dispatch", "entries have the number"), ("files: acknowledgement first", "acknowledged")],
)
def test_a_broken_store_is_found_by_killing_too(subject: str, said: str, tmp_path: Path) -> None:
    [*_, last] = side_by_side("explore", [{"subject": subject, "folder": str(tmp_path), "until": said}])
    assert any(said in each for each in last["wrong"])
