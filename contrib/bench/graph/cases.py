"""The cases, and what measures one: each side gives a function that makes a run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

#: Name -> (kind, steps, store): ``"count"`` adds one a step, ``"append"`` 2 kB a step to one key, ``"fan"`` 100 Sends.
CASES: dict[str, tuple[str, int, str]] = {
    "10 steps": ("count", 10, ""),
    "100 steps": ("count", 100, ""),
    "1,000 steps": ("count", 1000, ""),
    "sqlite full, 10": ("count", 10, "full"),
    "sqlite full, 100": ("count", 100, "full"),
    "sqlite full, 300": ("count", 300, "full"),
    "sqlite normal, 100": ("count", 100, "normal"),
    "sqlite normal, 300": ("count", 300, "normal"),
    "sqlite normal, 400 x 2 kB": ("append", 400, "normal"),
    "100 Sends": ("fan", 1, ""),
}


async def measure(case: str, run: Callable[[str, int, str, Path], Awaitable[None]]) -> dict[str, float]:
    """The least CPU and wall time of a super-step, in microseconds, of some runs; and the bytes of the store.

    Args:
        case: one of `CASES`.
        run: makes one run, given the kind, the steps, the store and a file that does not exist.
    """
    kind, steps, store = CASES[case]
    best_cpu = best_wall = float("inf")
    size = 0
    for _ in range(max(3, 300 // steps if kind == "count" else 5)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.db"
            cpu, wall = time.process_time(), time.perf_counter()
            await run(kind, steps, store, path)
            best_cpu = min(best_cpu, time.process_time() - cpu)
            best_wall = min(best_wall, time.perf_counter() - wall)
            size = sum(entry.stat().st_size for entry in os.scandir(folder))
    return {"cpu": best_cpu / steps * 1e6, "wall": best_wall / steps * 1e6, "bytes": size}


def report(found: Any) -> None:
    """Print what was measured, for the process that asked."""
    json.dump(found, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # what is left of threads is of no interest
