"""``python -m contrib.bench.graph.examples --peer PYTHON``: each example on both sides, and how long it is.

PYTHON is that of an environment with ``langgraph``. Both sides must come to what `cases.EXAMPLES` says. Lines are those
with code, docstrings and comments apart, as ``ruff format`` breaks them; tokens are Python's, which no layout changes.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import tokenize
from pathlib import Path
from typing import Any

from contrib.bench.graph.examples.cases import EXAMPLES
from contrib.bench.graph.examples.ours.run import run_example

__all__ = ["HERE", "count_code"]

HERE = Path(__file__).parent

_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def count_code(path: Path) -> tuple[int, int]:
    """How many lines and how many tokens of a file are code."""
    text = path.read_text(encoding="utf-8")
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _LAYOUT and token.start[0] not in said
    ]
    return len({line for token in code for line in range(token.start[0], token.end[0] + 1)}), len(code)


def as_json(value: Any) -> Any:
    """A value as it comes back from the other process."""
    return json.loads(json.dumps(value, default=dict))


def main() -> None:
    """Run each on both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="the Python that has langgraph")
    options = parser.parse_args()
    done = subprocess.run([options.peer, HERE / "peer"], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(done.stderr)
    theirs = json.loads(done.stdout)
    print("| example | lines, LangGraph | lines, Locus | tokens, LangGraph | tokens, Locus | values |")
    print("|---|---|---|---|---|---|")
    longer = []
    for name, example in EXAMPLES.items():
        wanted = as_json(example.wanted)
        if theirs[name] != wanted or as_json(run_example(name)) != wanted:
            raise SystemExit(f"{name}: expected {wanted}, got {theirs[name]} and {as_json(run_example(name))}")
        (lines, tokens), (our_lines, our_tokens) = (count_code(HERE / side / f"{name}.py") for side in ("peer", "ours"))
        print(f"| {name} | {lines} | **{our_lines}** | {tokens} | {our_tokens} | equal |")
        if our_lines > lines:
            longer.append(name)
    if longer:
        raise SystemExit(f"longer here: {', '.join(longer)}")


if __name__ == "__main__":
    main()
