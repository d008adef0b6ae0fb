"""Examples written for two frameworks: both are run, their values are compared, their code is counted.

Lines are those with code, docstrings and comments apart, as ``ruff format`` breaks them; tokens are Python's, which no
layout changes.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["as_json", "compare", "count_code"]

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


def compare(here: Path, examples: Mapping[str, Any], run_example: Callable[[str], Any], peer: str) -> None:
    """Run each on both sides and print the table; ``--peer PYTHON`` is the Python of the other side.

    Args:
        here: the folder with a folder of each side, ``peer`` and ``ours``.
        examples: by name, each with what it must come to, ``wanted``.
        run_example: what an example comes to with this framework.
        peer: the name of the other framework.

    Raises:
        SystemExit: a side failed, the values differ, or an example takes more lines here.
    """
    parser = argparse.ArgumentParser(description=f"The examples of {peer}, on both sides.")
    parser.add_argument("--peer", required=True, help=f"the Python that has {peer}")
    options = parser.parse_args()
    done = subprocess.run([options.peer, here / "peer"], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(done.stderr)
    theirs = json.loads(done.stdout)
    print(f"| example | lines, {peer} | lines, Locus | tokens, {peer} | tokens, Locus | values |")
    print("|---|---|---|---|---|---|")
    longer = []
    for name, example in examples.items():
        wanted, ours = as_json(example.wanted), as_json(run_example(name))
        if theirs[name] != wanted or ours != wanted:
            raise SystemExit(f"{name}: expected {wanted}, got {theirs[name]} and {ours}")
        (lines, tokens), (our_lines, our_tokens) = (count_code(here / side / f"{name}.py") for side in ("peer", "ours"))
        print(f"| {name} | {lines} | **{our_lines}** | {tokens} | {our_tokens} | equal |")
        if our_lines > lines:
            longer.append(name)
    if longer:
        raise SystemExit(f"longer here: {', '.join(longer)}")
