"""What is refused before a graph runs, with the name of the node or the key."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from locus import Agent
from locus.core.messages import Message
from locus_plugin_graph import END, START, GraphError, Send, StateGraph
from locus_testkit import ScriptedModel


def nothing(values: dict[str, Any]) -> None:
    return None


def graph(*edges: tuple[Any, str], nodes: str = "ab", **options: Any) -> StateGraph:
    made = StateGraph(**options)
    for name in nodes:
        made.add_node(name, nothing)
    for source, target in edges:
        made.add_edge(source, target)
    return made


class Typed(TypedDict):
    n: int
    messages: Annotated[list[Message], operator.add]


class Untyped(TypedDict):
    f: Callable[[], int]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an unknown target": (lambda: graph((START, "a"), ("a", "bb"), ("b", END)).compile(), "did you mean 'b'"),
    "an unknown source": (lambda: graph((START, "a"), ("x", "a"), ("a", END), nodes="a").compile(), "'x'"),
    "an unknown node in a mapping": (
        lambda: graph((START, "a"), nodes="a").add_conditional_edges("a", len, {1: "zz", 2: END}).compile(),
        "'zz'",
    ),
    "a node that nobody reaches": (lambda: graph((START, "a"), ("a", END), ("b", END)).compile(), "leads to 'b'"),
    "no way to the end": (lambda: graph((START, "a"), ("a", "b"), ("b", "a")).compile(), "no way to END"),
    "a node without an edge": (lambda: graph((START, "a"), ("a", "b")).compile(), "add_edge('b', END)"),
    "no start": (lambda: graph(("a", "b"), ("b", END)).compile(), "START has no edge"),
    "a name twice": (lambda: graph().add_node("a", nothing), "has a node 'a' already"),
    "a node named like the end": (lambda: graph().add_node(END, nothing), "other than START and END"),
    "START as a target": (lambda: graph(("a", START)), "START cannot be the target"),
    "a key without a JSON form": (lambda: StateGraph(Untyped), "Untyped.f"),
    "a reducer for an unknown key": (lambda: StateGraph(Typed, reducers={"m": operator.add}), "no key 'm'"),
    "writes of an unknown key": (lambda: StateGraph(Typed).add_node("a", nothing, writes=("nn",)), "did you mean 'n'"),
    "an unknown effect": (lambda: graph().add_node("c", nothing, effect="twice"), "'twice'"),
    "an agent without a prompt": (lambda: graph().add_node("c", Agent(ScriptedModel())), "prompt="),
    "a router that is a coroutine": (lambda: graph().add_conditional_edges("a", _async), "plain function"),
    "a node that is not callable": (lambda: graph().add_node("c", 3), "must be a function"),
    "a node of three parameters": (lambda: graph().add_node("c", lambda a, b, c: None), "NodeContext"),
}


def several(values: dict[str, Any]) -> list[Send]:
    return [Send("work", {"n": n}) for n in range(2)]


def one_or_other(values: dict[str, Any]) -> Send | str:
    return Send("work", {"n": 1})


def fan_out(router: Any, **options: Any) -> StateGraph:
    """A router that sends tasks to a node which writes one key."""
    made = StateGraph(**options).add_node("work", nothing, writes=("x",)).add_edge("work", END)
    return made.add_conditional_edges(START, router, ["work", END])


def nested(*, inner: Any = None, **options: Any) -> StateGraph:
    """A graph in a graph that reduces a key which the inner one writes as a whole."""
    child = StateGraph(reducers=inner).add_node("a", nothing, writes=("log",)).add_edge(START, "a", END)
    made = StateGraph(reducers={"log": operator.add}).add_node("sub", child.compile(), **options)
    return made.add_edge(START, "sub", END)


def _typed() -> Any:
    return StateGraph(Typed).add_node("a", nothing).add_edge(START, "a", END).compile()


REFUSED |= {
    "Sends of one node that write one key": (
        lambda: fan_out(several).compile(),
        "the router of '__start__' sends several tasks to 'work', and each writes 'x'",
    ),
    "a key that would be merged with itself": (lambda: nested().compile(), "'sub' gets 'log'"),
    "a key that would be merged with itself, declared": (lambda: nested(writes=("log",)).compile(), "outputs="),
    "outputs of a function": (lambda: graph().add_node("c", nothing, outputs=("x",)), "outputs= and budget= are for"),
    "outputs of an agent": (
        lambda: graph().add_node("c", Agent(ScriptedModel()), prompt="x", outputs=("x",)),
        "use into=",
    ),
    "outputs that are not known here": (
        lambda: StateGraph(Typed).add_node("c", _typed(), outputs=("nn",)),
        "did you mean 'n'",
    ),
    "outputs that are not known there": (
        lambda: graph().add_node("c", _typed(), outputs={"x": "message"}),
        "its graph has no key 'message'; did you mean 'messages'",
    ),
}


def generates(values: dict[str, Any]) -> Any:
    yield {}


class Unreadable:
    n: Undefined  # type: ignore[name-defined]  # noqa: F821 - it does not exist


def whole(**options: Any) -> Any:
    return graph((START, "a"), ("a", END), nodes="a").compile(**options)


odd: Any = 3
text: Any = "3"
NUMBERS = "must be an integer, 1 or more, got"
REFUSED |= {
    "a generator": (lambda: graph().add_node("c", generates), "is a generator function"),
    "a timeout that is a text": (lambda: graph().add_node("c", nothing, timeout=text), "more than 0, got '3'"),
    "an endless timeout": (lambda: graph().add_node("c", nothing, timeout=float("inf")), "more than 0, got inf"),
    "a timeout that is true": (lambda: graph().add_node("c", nothing, timeout=True), "more than 0, got True"),
    "retries that are a text": (lambda: graph().add_node("c", nothing, retries=text), "0 or more, got '3'"),
    "goto of a number": (lambda: graph().add_node("c", nothing, goto=odd), "goto of node 'c' must be a name or"),
    "writes of a number": (lambda: graph().add_node("c", nothing, writes=odd), "must be a collection of keys, got 3"),
    "writes of a text": (lambda: graph().add_node("c", nothing, writes="n"), "write ('n',)"),
    "an effect of an agent": (
        lambda: graph().add_node("c", Agent(ScriptedModel()), prompt="x", effect="once"),
        "its effect is 'pure', got 'once'",
    ),
    "a budget that is a number": (
        lambda: graph().add_node("c", Agent(ScriptedModel()), prompt="x", budget=odd),
        "must be a Budget, got 3",
    ),
    "an unknown key as a prompt": (
        lambda: StateGraph(Typed).add_node("c", Agent(ScriptedModel()), prompt="message", into="n"),
        "did you mean 'messages'",
    ),
    "a schema that is not a class": (lambda: StateGraph(odd), "a schema is a class with annotations, got 3"),
    "annotations that cannot be read": (lambda: StateGraph(Unreadable), "name 'Undefined' is not defined"),
    "reducers that are not a dict": (lambda: StateGraph(reducers=[odd]), "reducers must be a dict"),  # type: ignore[arg-type]
    "an edge from a number": (lambda: graph((odd, "a")), "the source of 'a' must be a name or a collection"),
    "a mapping that is a name": (
        lambda: graph().add_conditional_edges("a", len, "b"),
        "must be a dict, or a list of the names that follow, got 'b'",
    ),
    "a mapping that is a number": (lambda: graph().add_conditional_edges("a", len, odd), "got 3"),
    "a mapping to a list": (lambda: graph().add_conditional_edges("a", len, {1: odd}), "the names of nodes, got 3"),
    "no tasks": (lambda: whole(max_tasks=0), f"max_tasks {NUMBERS} 0"),
    "no task at a time": (lambda: whole(max_concurrency=0), f"max_concurrency {NUMBERS} 0"),
    "tasks that are a text": (lambda: whole(max_tasks=text), f"max_tasks {NUMBERS} '3'"),
    "on_error that is a name": (lambda: whole(on_error="a"), "on_error must be a dict"),
    "tools of the graph": (lambda: whole(tools=[nothing]), "tools= has no effect in a graph"),
}


async def _async(values: dict[str, Any]) -> str:
    return END


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused(case: str) -> None:
    make, text = REFUSED[case]
    with pytest.raises(GraphError) as refused:
        make()
    assert text in str(refused.value)


def parallel(*, join: bool) -> StateGraph:
    made = StateGraph()
    for name in ("left", "right", "after"):
        made.add_node(name, nothing, writes=("x",) if name != "after" else ())
    if join:  # in the second super-step
        made.add_node("first", nothing, writes=()).add_edge(START, "first")
    for name in ("left", "right"):
        made.add_edge("first" if join else START, name)
    return made.add_edge(["left", "right"], "after").add_edge("after", END)


@pytest.mark.parametrize("join", [False, True])
def test_two_nodes_that_run_together_and_write_one_key_are_refused(join: bool) -> None:
    with pytest.raises(GraphError, match="'left' and 'right' run in one super-step and both write 'x'"):
        parallel(join=join).compile()


def test_with_a_reducer_they_may() -> None:
    made = parallel(join=True)
    made._schema.reducers["x"] = operator.add
    assert made.compile()


def test_a_router_that_sends_one_task_or_a_key_with_a_reducer_is_not_refused() -> None:
    assert fan_out(one_or_other).compile()
    assert fan_out(several, reducers={"x": operator.add}).compile()
    assert fan_out(lambda values: []).compile()  # what it sends is not known before it runs


def test_a_sub_graph_may_say_what_goes_back_or_reduce_the_key_itself() -> None:
    assert nested(outputs=("log",)).compile()
    assert nested(reads=("other",)).compile()
    assert nested(inner={"log": operator.add}).compile()


def test_two_nodes_that_run_one_after_the_other_may_write_one_key() -> None:
    made = StateGraph().add_node("a", nothing, writes=("x",)).add_node("b", nothing, writes=("x",))
    assert made.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile()
