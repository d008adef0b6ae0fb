"""The cases, and how each is measured: the same for both sides."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["CASES", "Script", "measure"]

#: What is measured, and how often in one process.
CASES = {
    "factory, default": 15,
    "factory, 3 subagents and all layers": 15,
    "iteration, layers of both, n = 10": 9,
    "iteration, layers of both, n = 100": 5,
    "iteration, layers of both, n = 500": 3,
    "iteration, all of ours, n = 10": 9,
    "iteration, all of ours, n = 100": 5,
    "iteration, all of ours, n = 500": 3,
}


class Script:
    """What the model does: it looks up so many keys, one a turn, then answers."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, n: int) -> None:
        """Another run."""
        self._left, self.looked_up = n, 0

    def next_key(self) -> str | None:
        """The key of the next turn; None = the answer."""
        if not self._left:
            return None
        self._left -= 1
        return f"item-{self._left}"

    def look_up(self, key: str) -> str:
        """100 characters that are new each time."""
        self.looked_up += 1
        return f"{key:0>100}"


def measure(case: str, build: Callable[..., Any], run: Callable[[int], Callable[[], object]]) -> None:
    """Print the first, the median and the least of a case, in microseconds of CPU of one agent or one iteration.

    Args:
        case: one of `CASES`.
        build: makes an agent; ``layers=True``: with files, todos, summaries and three subagents.
        run: gives a function that makes a run of so many iterations; what it takes to build the agent does not count.
    """
    *_, size = case.split(" = ")
    taken = []
    for _ in range(CASES[case]):
        n = int(size) if size.isdigit() else 1
        step: Callable[[], object]
        if size.isdigit():
            step = run(n)
        else:
            step = build if case.endswith("default") else lambda: build(layers=True)
        gc.collect()
        started = time.process_time()
        step()
        taken.append((time.process_time() - started) * 1e6 / n)
    json.dump({"first": taken[0], "median": statistics.median(taken), "least": min(taken)}, sys.stdout)
