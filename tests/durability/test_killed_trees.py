"""SIGKILL in the middle of a tree of runs, then a new process: what all of it spends stays within the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.durability.effort import THOROUGH
from tests.durability.programs import side_by_side
from tests.durability.trees import LIMIT, TOKENS, UNDER_WAY

BACKENDS = ("asyncio", "trio") if THOROUGH else ("asyncio",)


def killed(folder: Path, **order: Any) -> list[dict[str, Any]]:
    """The points that were struck, and the run that was not."""
    step = 2 if THOROUGH else 12
    orders = [{"folder": str(folder), "first": first, "step": step, **order} for first in (1, 1 + step // 2)]
    return side_by_side("trees", orders)


def handed_out(line: dict[str, Any]) -> list[int]:
    """What each call of the first run was given, by the record."""
    [reserved] = line["reserved"]  # once a turn, also where the turn was begun in several processes
    tokens, count = reserved["tokens"], len(reserved["calls"])
    return [(tokens + count - 1 - number) // count for number in range(count)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tree_that_is_killed_at_any_point_and_resumed_stays_within_its_limit(backend: str, tmp_path: Path) -> None:
    found = killed(tmp_path, backend=backend)
    struck = {str(line["hit"]) for line in found}
    if THOROUGH:
        assert {"model: before", "model: after", "append: after Outcome"} < struck
    # Which points a sample strikes depends on how the children's turns interleave.
    assert {"model", "append"} <= {each.partition(":")[0] for each in struck}
    for line in found:
        assert line["open"] is None
        assert line["ended"]["reason"] in ("TokenLimit", "ended")  # or it had ended when it was killed
        assert LIMIT < line["total"] <= LIMIT + sum(UNDER_WAY) * TOKENS, line
        # What a process had been answered and could not record is not known to the next one.
        assert line["spent"] <= line["total"] + sum(UNDER_WAY) * TOKENS, line
        for part, given, at_once in zip(line["parts"], handed_out(line), UNDER_WAY, strict=True):
            assert part <= given + at_once * TOKENS, line


def test_a_kernel_that_forgets_what_children_had_spent_is_found(tmp_path: Path) -> None:
    found = killed(tmp_path, forget=True)
    assert any(
        part > given + at_once * TOKENS
        for line in found
        for part, given, at_once in zip(line["parts"], handed_out(line), UNDER_WAY, strict=True)
    )
