"""Programs of these proofs as processes: started by a test, waited for, and read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["side_by_side"]

ROOT = Path(__file__).resolve().parents[2]


def side_by_side(module: str, orders: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run a program once an order, all at the same time; gives the lines of JSON that they print."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"tests.durability.{module}", json.dumps(order)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for order in orders
    ]
    lines: list[dict[str, Any]] = []
    for process in started:
        out, err = process.communicate()
        assert process.returncode == 0, err
        lines += map(json.loads, out.splitlines())
    return lines
