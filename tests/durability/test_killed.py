"""SIGKILL at every point of a run, then a new process that goes on: the run ends like the one that was never killed."""

from __future__ import annotations

from collections import Counter
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
    "append: after the final transition",
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
}
INSIDE = {
    "sqlite": {"sql: before INSERT INTO", "sql: after INSERT INTO", "sql: after COMMIT", "sql: after UPDATE threads"},
    "files": {"file: before the write", "file: inside the write", "file: written"},
}
SNAPSHOTS = {"snapshot: before", "snapshot: after"}

CASES: list[tuple[str, dict[str, Any]]] = [("sqlite", {"mode": "concurrent"})]
if THOROUGH:
    CASES += [
        ("sqlite", {"mode": "sequential", "backend": "trio", "snapshot_every": 4}),
        ("files", {"mode": "concurrent", "snapshot_every": 4}),
    ]


@pytest.mark.parametrize(("subject", "options"), CASES)
def test_a_run_that_is_killed_at_any_point_ends_like_the_one_that_never_was(
    subject: str, options: dict[str, Any], tmp_path: Path
) -> None:
    order = {"subject": subject, "folder": str(tmp_path), "step": 2, **options}
    found = side_by_side("explore", [{**order, "first": 1}, {**order, "first": 2}])
    struck = Counter(line["hit"] for line in found)
    assert {line["at"]: (line["hit"], line["wrong"]) for line in found if line["wrong"]} == {}
    missing = EVERYWHERE | INSIDE[subject] | (SNAPSHOTS if "snapshot_every" in options else set())
    assert missing - set(struck) == set()
    assert struck[""] == 2  # both went beyond the last point


@pytest.mark.parametrize(
    ("subject", "said"),
    [("files: save, then dispatch", "entries have the number"), ("files: acknowledgement first", "acknowledged")],
)
def test_a_broken_store_is_found_by_killing_too(subject: str, said: str, tmp_path: Path) -> None:
    [*_, last] = side_by_side("explore", [{"subject": subject, "folder": str(tmp_path), "until": said}])
    assert any(said in each for each in last["wrong"])
