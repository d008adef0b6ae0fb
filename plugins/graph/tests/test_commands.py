"""``locus graph``: drawing, running and checking a graph in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]

FLOW = """
import operator
from locus.multiagent.graph import END, START, NodeContext, StateGraph

def double(values):
    return {"n": values.get("n", 1) * 2}

def ask(values, ctx: NodeContext):
    return {"said": ctx.interrupt("<b>Go on?</b>", options=["yes", "no"])}

graph = StateGraph(effect="pure").add_node("double", double).add_node("ask", ask)
graph.add_edge(START, "double").add_edge("double", "ask").add_edge("ask", END)
app = graph.compile(checkpointer="sqlite:flow.db", max_steps=7)
bad = StateGraph().add_node("a", double).add_edge(START, "a")

def shuffled(left, right):
    return sorted([*left, *right], key=lambda item: next(numbers) % 3)

def picky(left, right):
    return left + right if left != 2 else left + next(numbers)

numbers = iter(range(100_000))
impure = StateGraph(reducers={"log": shuffled, "sum": operator.add}).add_node("a", double).add_edge(START, "a", END)
hidden = StateGraph(reducers={"n": picky}).add_node("a", double).add_edge(START, "a", END)
hidden = hidden.compile(checkpointer="sqlite:flow.db")
"""


@pytest.fixture
def flow(here: Path) -> Path:
    path = here / "flow.py"
    path.write_text(FLOW, encoding="utf-8")
    return path


def test_a_graph_is_drawn(locus: Locus, flow: Path) -> None:
    done = locus("-p", "graph", "graph", "draw", "flow.py:app")

    assert (done.status, done.err) == (0, "")
    assert 'n0["double"]' in done.out
    assert "start --> n0" in done.out


def test_a_graph_is_checked(locus: Locus, flow: Path) -> None:
    assert locus("-p", "graph", "graph", "check", "flow.py:graph").out == (
        "double: function, pure -> ask\nask: function, pure -> __end__\nat most 100 super-steps\n"
    )
    bad = locus("-p", "graph", "graph", "check", "flow.py:bad")
    assert bad.status == 2
    assert "'a': no way to END" in bad.err


def test_a_reducer_that_is_not_pure_is_found(locus: Locus, flow: Path) -> None:
    done = locus("-p", "graph", "graph", "check", "flow.py:impure")
    assert done.status == 1
    assert "the reducer of 'log' is not pure" in done.err
    assert "'sum'" not in done.err


def test_a_reducer_is_tried_with_the_values_of_a_thread(locus: Locus, flow: Path) -> None:
    assert locus("-p", "graph", "graph", "check", "flow.py:hidden").status == 0
    assert locus("-p", "graph", "graph", "run", "flow.py:hidden", "{}", "--thread", "h").status == 0
    done = locus("-p", "graph", "graph", "check", "flow.py:hidden", "--thread", "h")
    assert done.status == 1
    assert "the reducer of 'n' is not pure" in done.err


def test_a_graph_is_run_asks_and_is_resumed(locus: Locus, flow: Path) -> None:
    asked = locus("-p", "graph", "graph", "run", "flow.py:app", '{"n": 4}', "--thread", "t")
    assert (asked.status, json.loads(asked.out)) == (1, {"n": 8})
    assert "asks: <b>Go on?</b> [yes | no]" in asked.err

    drawn = locus("-p", "graph", "graph", "draw", "flow.py:app", "--thread", "t")
    assert "class n0 ran" in drawn.out
    assert "class n1 next" in drawn.out

    done = locus("-p", "graph", "graph", "run", "flow.py:app", "--thread", "t", "--answer", "yes")
    assert (done.status, json.loads(done.out)) == (0, {"n": 8, "said": "yes"})


def test_the_page_of_a_thread_loads_nothing_and_shows_steps_values_and_questions(locus: Locus, flow: Path) -> None:
    locus("-p", "graph", "graph", "run", "flow.py:app", '{"n": 4}', "--thread", "t")

    assert locus("-p", "graph", "graph", "draw", "flow.py:app", "--thread", "t", "--html", "flow.html").status == 0

    page = (flow.parent / "flow.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;Go on?&lt;/b&gt; yes | no" in page
    assert "<b>" not in page
    assert "double -&gt; ask" in page
    assert "<pre>n: 8</pre>" in page
    assert "<svg" in page
    assert "http" not in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("flow.py:ap", "did you mean 'app'?"),
        ("flow.py", "expected FILE:NAME"),
        ("gone.py:app", "'gone.py' is not a file"),
        ("broken.py:app", "broken.py cannot be loaded: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_loaded_is_said(locus: Locus, flow: Path, source: str, problem: str) -> None:
    (flow.parent / "broken.py").write_text("1 / 0", encoding="utf-8")
    done = locus("-p", "graph", "graph", "check", source)

    assert done.status == 2
    assert problem in done.err


def test_values_that_are_not_json_are_refused(locus: Locus, flow: Path) -> None:
    assert "expected a JSON object of values, got '{n'" in locus("-p", "graph", "graph", "run", "flow.py:app", "{n").err
