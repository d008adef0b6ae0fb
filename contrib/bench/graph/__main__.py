"""``python contrib/bench/graph --peer PYTHON``: the table, each case in a process of its own, the two in turns.

PYTHON is that of an environment with ``langgraph`` and ``langgraph-checkpoint-sqlite``; this framework and its plugins
graph and sqlite are in the one that runs this. LangGraph's saver sets by itself what sqlite syncs, and is
compared with both of our settings.
"""

from __future__ import annotations

import argparse
import json
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
    parser.add_argument("--peer", required=True, help="the Python that has langgraph")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        "| case | CPU us, LangGraph | CPU us, Locus | ratio | wall us, LangGraph | wall us, Locus | ratio | kB, both |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        rounds = [
            (ask(options.peer, "peer.py", case), ask(sys.executable, "ours.py", case)) for _ in range(options.rounds)
        ]
        theirs, ours = ({key: min(each[side][key] for each in rounds) for key in rounds[0][side]} for side in (0, 1))
        cells = [case]
        for key in ("cpu", "wall"):
            cells += [f"{theirs[key]:,.0f}", f"{ours[key]:,.0f}", f"{ours[key] / theirs[key]:.2f}"]
        cells.append(f"{theirs['bytes'] / 1000:,.0f} / {ours['bytes'] / 1000:,.0f}")
        print(f"| {' | '.join(cells)} |", flush=True)


main()
