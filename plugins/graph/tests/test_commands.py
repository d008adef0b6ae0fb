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
def one(values, ctx: NodeContext):
    return {"one": ctx.interrupt("One?")}

def two(values, ctx: NodeContext):
    return {"two": ctx.interrupt("Two?")}

both = StateGraph(effect="pure").add_node(one).add_node(two).add_edge(START, "one", END).add_edge(START, "two", END)
both = both.compile(checkpointer="sqlite:flow.db")
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


def test_several_questions_are_answered_by_their_ids(locus: Locus, flow: Path) -> None:
    asked = locus("-p", "graph", "graph", "run", "flow.py:both", "--thread", "t")
    assert "asks: One? (--answer '0/node/0:one?0=TEXT')" in asked.err

    start = ("-p", "graph", "graph", "run", "flow.py:both", "--thread", "t")
    assert (
        "expected ID=TEXT for each answer; open: 0/node/0:one?0, 0/node/1:two?0" in locus(*start, "--answer", "x").err
    )
    assert locus(*start, "--answer", "0/node/1:two?0=b=c").status == 1
    done = locus(*start, "--answer", "0/node/0:one?0=a")
    assert (done.status, json.loads(done.out)) == (0, {"one": "a", "two": "b=c"})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run", "flow.py:app", "[1]"), "expected a JSON object of values, got '[1]'"),
        (("run", "flow.py:app", "null"), "expected a JSON object of values, got 'null'"),
        (("run", "flow.py:app", '{"n": NaN}'), "the input of the graph: the value of 'n' cannot be saved"),
        (("run", "flow.py:app", "{}", "--resume", "--thread", "t"), "a run that is resumed takes no values, got '{}'"),
        (("run", "flow.py:app", "--resume"), "give --thread ID"),
        (("draw", "flow.py:app", "--html", "gone/x.html"), "gone/x.html cannot be written: No such file or directory"),
        (("draw", "flow.py:app", "--thread", "gone"), "thread 'gone' does not exist"),
        (("draw", "flow.py:app", "--thread", "gone", "--html", "x.html"), "thread 'gone' does not exist"),
        (("check", "flow.py:app", "--thread", "gone"), "thread 'gone' does not exist"),
        (("chek", "flow.py:app"), "Did you mean 'check'?"),
    ],
)
def test_a_mistake_is_explained(locus: Locus, flow: Path, arguments: tuple[str, ...], problem: str) -> None:
    done = locus("-p", "graph", "graph", *arguments)

    assert (done.status, done.out) == (2, "")
    assert problem in done.err
    assert "Traceback" not in done.err


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
