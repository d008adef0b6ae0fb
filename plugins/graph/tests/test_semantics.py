"""Generated graphs come to what a reference interpreter says, on every event loop, through failures and resumes too."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from plugins.graph.tests.reference import Conflict, Program, interpret

from locus.journal import MemoryStore
from locus_plugin_graph import END, START, Send, StateGraph

STEPS = 9

KEYS = ("left", "right")


@st.composite
def programs(draw: st.DrawFn, depth: int = 1) -> Program:
    """Graphs with branches, joins, cycles, Sends and graphs in nodes; every node is reached and may come to END."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5 if depth else 3)))]
    nodes: dict[str, Any] = {}
    edges: dict[str, list[str]] = {}
    routes: dict[str, Any] = {}
    for i, name in enumerate(names):
        nodes[name] = tuple(key for key in KEYS if draw(st.integers(0, 5)) == 0)
        if depth and draw(st.integers(0, 4)) == 0:
            nodes[name] = draw(programs(depth - 1))
        edges.setdefault(draw(st.sampled_from([START, *names[:i]])), []).append(name)
    worker = draw(st.sampled_from(["", "worker"]))
    if worker:
        nodes[worker] = ()
        edges[START] = [*edges.get(START, ()), worker]
        edges.setdefault(worker, []).append(draw(st.sampled_from([END, *names])))
    targets = [*names, END, *([1, 2, 3] if worker else ())]
    for name in [*names, *([worker] if worker else ())]:
        if name not in edges or draw(st.booleans()):
            answer = st.lists(st.sampled_from(targets), min_size=1, max_size=3, unique=True).map(tuple)
            routes[name] = (*draw(st.lists(answer, max_size=2)), (END,))
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    if len(names) > 2 and draw(st.booleans()):
        joins = ((tuple(draw(st.permutations(names[:2]))), names[2]),)
    return Program(nodes, {k: tuple(dict.fromkeys(v)) for k, v in edges.items()}, routes, worker, joins)


def build(program: Program, fails: Counter[str], entered: Counter[str], **options: Any) -> Any:
    """The same graph here; each node fails as often as it is said, before it runs."""
    graph = StateGraph(reducers={"log": lambda a, b: a + b, "sum": lambda a, b: a + b}, effect="pure")

    async def node(name: str, keys: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
        entered[name] += 1
        if "sent" in values:
            return {"log": [f"{name}{values['sent']}"], "sum": values["sent"]}
        if fails[name]:
            fails[name] -= 1
            raise OSError("not now")
        values["log"].append("nobody sees this")
        await anyio.lowlevel.checkpoint()
        return {"log": [name], **dict.fromkeys(keys, name)}

    def route(answers: Any, values: dict[str, Any]) -> Any:
        answer = answers[len(values["log"]) % len(answers)]
        return [Send(program.worker, {"sent": each}) if isinstance(each, int) else each for each in answer]

    for name, what in program.nodes.items():
        if isinstance(what, Program):
            graph.add_node(name, build(what, fails, entered))
        else:
            graph.add_node(name, partial(node, name, what), retries=1)
    for source, targets in program.edges.items():
        for target in targets:
            graph.add_edge(source, target)
    for source, answers in program.routes.items():
        graph.add_conditional_edges(source, partial(route, answers))
    for sources, target in program.joins:
        graph.add_edge(list(sources), target)
    return graph.compile(max_steps=STEPS, **options)


async def outcome(app: Any, resumes: int = 0) -> Any:
    result = await app.run({"log": ["in"]}, thread_id="t")
    while result.stop_reason == "NodeError" and resumes:
        resumes -= 1
        result = await app.resume("t")
    if result.error is not None:
        return type(result.error), str(result.error)
    return result.values, result.stop_reason == "GraphEnd"


def expected(program: Program) -> Any:
    try:
        return interpret(program, ["in"], STEPS)
    except Conflict:
        event("a conflict")
        return None


SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@SETTINGS
@given(program=programs())
def test_a_graph_comes_to_what_the_reference_says(backend: str, program: Program) -> None:
    wanted = expected(program)

    came = anyio.run(partial(outcome, build(program, Counter(), Counter())), backend=backend)

    if wanted is None:  # in a sub-graph, it is the failure of the node that runs it
        assert "both wrote" in came[1]
    else:
        assert came == wanted
        event("it ended" if wanted[1] else "max_steps")


def names_of(program: Program) -> set[str]:
    """The nodes of a graph and of those in it; graphs of other levels have nodes of the same names."""
    inner = [names_of(what) for what in program.nodes.values() if isinstance(what, Program)]
    return set(program.nodes).union(*inner)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@SETTINGS
@given(program=programs(), data=st.data())
def test_failures_change_nothing_once_the_run_is_resumed(backend: str, program: Program, data: st.DataObject) -> None:
    """Given nodes, also of sub-graphs, that fail now and then; when the run is resumed, it comes to the same values."""
    wanted = expected(program)
    fails = Counter({name: data.draw(st.integers(0, 3)) for name in sorted(names_of(program))})
    entered: Counter[str] = Counter()
    app = build(program, Counter(fails), entered, checkpointer=MemoryStore())

    came = anyio.run(partial(outcome, app, sum(fails.values())), backend=backend)

    if wanted is None:
        assert "both wrote" in came[1]
        return
    assert came == wanted
    clean: Counter[str] = Counter()
    anyio.run(partial(outcome, build(program, Counter(), clean)), backend=backend)
    for name, times in entered.items():  # what had succeeded was not entered again
        assert clean[name] <= times <= clean[name] + fails[name]
    event("with sub-graphs" if any(isinstance(what, Program) for what in program.nodes.values()) else "flat")
