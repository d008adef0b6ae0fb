"""``python contrib/bench/deepagents --peer PYTHON``: the table, each case in a process of its own, the two in turns.

PYTHON is that of an environment with ``deepagents``; the distribution `deepagent` and the test kit are in the one that
runs this. CPU time of all threads, no network, a scripted model. Figures are medians of the rounds' medians; the first
agent of a process, which also imports, is not among them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from cases import CASES

HERE = Path(__file__).parent


def ask(python: str, script: str, case: str) -> Any:
    """What a process of one side measures."""
    done = subprocess.run([python, HERE / script, case], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="the Python that has deepagents")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    print("| CPU us | deepagents | Locus | ratio |")
    print("|---|---|---|---|")
    for case in CASES:
        rounds = [
            (ask(options.peer, "peer.py", case), ask(sys.executable, "ours.py", case)) for _ in range(options.rounds)
        ]
        theirs, ours = (statistics.median(each[side]["median"] for each in rounds) for side in (0, 1))
        print(f"| {case} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs:.3f} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


main()
