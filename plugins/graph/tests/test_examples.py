"""LangGraph's own examples, as `contrib/bench/graph/examples` has them: same values, in at most as many lines."""

from __future__ import annotations

import pytest
from contrib.bench.graph.examples.__main__ import HERE
from contrib.bench.graph.examples.cases import EXAMPLES
from contrib.bench.graph.examples.ours.run import run_example
from contrib.bench.side_by_side import as_json, count_code


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_comes_to_what_it_comes_to_with_langgraph(name: str) -> None:
    assert as_json(run_example(name)) == as_json(EXAMPLES[name].wanted)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_takes_at_most_as_many_lines_as_with_langgraph(name: str) -> None:
    assert count_code(HERE / "ours" / f"{name}.py")[0] <= count_code(HERE / "peer" / f"{name}.py")[0]


def test_every_file_is_an_example_of_both() -> None:
    sides = {side: {path.stem for path in (HERE / side).glob("[!_]*.py")} - {"run"} for side in ("ours", "peer")}
    assert sides == {"ours": set(EXAMPLES), "peer": set(EXAMPLES)}
