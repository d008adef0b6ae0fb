"""Four workers share thirty threads of one file, and are killed and stopped as a seed says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.durability.effort import THOROUGH
from tests.durability.programs import side_by_side

#: On two cores two of them run side by side.
QUICK: list[list[dict[str, Any]]] = [
    [{"seed": 1}, {"seed": 2, "skew": 30}],
    [{"seed": 3, "backend": "trio"}, {"seed": 4, "subject": "files"}],
]
MORE: list[list[dict[str, Any]]] = [
    [{"seed": seed}, {"seed": seed + 1, "skew": 30, "backend": "trio" if seed % 4 else "asyncio"}]
    for seed in range(5, 105, 2)
]


@pytest.mark.parametrize("orders", QUICK + (MORE if THOROUGH else []), ids=str)
def test_every_thread_ends_like_the_one_that_nothing_happened_to(orders: list[dict[str, Any]], tmp_path: Path) -> None:
    lines = side_by_side("chaos", [{"folder": str(tmp_path / f"{o['seed']}"), **o} for o in orders])
    wrong = [line for line in lines if line.get("wrong")]
    # The seed makes it happen again: python -m tests.durability.chaos '{"seed": ..., "folder": "..."}'
    assert wrong == [], orders
    assert len(lines) == len(orders) * 31
    for about in (line for line in lines if "seed" in line):
        assert about["killed"] >= 5, about
        assert about["stopped"] >= 1, about
