"""The examples of deepagents, as `contrib/bench/deepagents/examples` has them: same files and todos, no more lines."""

from __future__ import annotations

import pytest
from contrib.bench.deepagents.examples.__main__ import HERE
from contrib.bench.deepagents.examples.cases import EXAMPLES
from contrib.bench.deepagents.examples.ours.run import run_example
from contrib.bench.side_by_side import as_json, count_code


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_leaves_the_files_and_todos_that_it_leaves_with_deepagents(name: str) -> None:
    assert as_json(run_example(name)) == as_json(EXAMPLES[name].wanted)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_takes_at_most_as_many_lines_as_with_deepagents(name: str) -> None:
    assert count_code(HERE / "ours" / f"{name}.py")[0] <= count_code(HERE / "peer" / f"{name}.py")[0]


def test_every_file_is_an_example_of_both() -> None:
    sides = {side: {path.stem for path in (HERE / side).glob("[!_]*.py")} - {"run"} for side in ("ours", "peer")}
    assert sides == {"ours": set(EXAMPLES), "peer": set(EXAMPLES)}
