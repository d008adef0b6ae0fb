"""``python -m contrib.bench.graph.examples --peer PYTHON``: each example on both sides, and how long it is.

PYTHON is that of an environment with ``langgraph``. Both sides must come to what `cases.EXAMPLES` says.
"""

from __future__ import annotations

from pathlib import Path

from contrib.bench.graph.examples.cases import EXAMPLES
from contrib.bench.graph.examples.ours.run import run_example
from contrib.bench.side_by_side import compare

__all__ = ["HERE"]

HERE = Path(__file__).parent

if __name__ == "__main__":
    compare(HERE, EXAMPLES, run_example, "LangGraph")
