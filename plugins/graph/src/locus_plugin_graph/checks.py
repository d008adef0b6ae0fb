"""What is wrong with a graph, found before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, get_args, get_origin, get_type_hints

from locus.core import freeze
from locus.core.errors import closest
from locus.core.messages import Message
from locus_plugin_graph.errors import GraphError
from locus_plugin_graph.plan import END, START, Plan, Send
from locus_plugin_graph.values import copy_value

__all__ = ["check_plan", "find_impure"]


def check_plan(plan: Plan) -> None:
    """Refuse a graph that cannot run as it is meant.

    Raises:
        GraphError: the first thing that is wrong.
    """
    _check_names(plan)
    _check_reached(plan)
    _check_ends(plan)
    _check_conflicts(plan)
    _check_sends(plan)
    _check_doubled(plan)


def _check_names(plan: Plan) -> None:
    known = {*plan.nodes, END}

    def check(name: Any, where: str, among: Iterable[str]) -> None:
        if name not in among:
            near = closest(str(name), among)
            hint = f"; did you mean {near!r}?" if near else f"; its nodes are {', '.join(map(repr, plan.nodes))}"
            raise GraphError(f"{where} names {name!r:.80}, which the graph does not have{hint}")

    sources = {START, *plan.nodes}
    for source, targets in plan.edges.items():
        for target in targets:
            check(source, f"the edge {source!r} -> {target!r}", sources)
            check(target, f"the edge {source!r} -> {target!r}", known)
    for source, branches in plan.branches.items():
        check(source, "a conditional edge", sources)
        for branch in branches:
            for target in () if branch.mapping is None else branch.mapping.values():
                check(target, f"the mapping of {source!r}", known)
    for join in plan.joins:
        if not join.sources:
            raise GraphError(
                f"the join before {join.target!r} waits for no node; add_edge(['a', 'b'], {join.target!r})"
            )
        for name in join.sources:
            check(name, f"the join before {join.target!r}", plan.nodes)
        check(join.target, f"the join of {', '.join(map(repr, join.sources))}", known)
    for node in plan.nodes.values():
        for target in node.goto:
            check(target, f"goto of {node.name!r}", known)
    for name, target in plan.fallbacks.items():
        check(name, "on_error", plan.nodes)
        check(target, f"on_error of {name!r}", known)


def _check_reached(plan: Plan) -> None:
    if not plan.targets(START):
        raise GraphError("START has no edge; add_edge(START, 'the first node')")
    reached = _closure({START}, lambda name: plan.targets(name), plan)
    lost = [name for name in plan.nodes if name not in reached]
    if lost:
        raise GraphError(f"no path from START leads to {', '.join(map(repr, lost))}; add an edge to it, or remove it")


def _closure(found: set[str], targets: Any, plan: Plan) -> set[str]:
    todo = [*found]
    while todo:
        for target in targets(todo.pop()):
            if target not in found:
                found.add(target)
                todo.append(target)
        for join in plan.joins:
            if join.target not in found and found.issuperset(join.sources):
                found.add(join.target)
                todo.append(join.target)
    return found


def _check_ends(plan: Plan) -> None:
    ends, grown = {END}, True
    while grown:
        before = len(ends)
        for name in plan.nodes:
            follows = {*plan.targets(name), *(join.target for join in plan.joins if name in join.sources)}
            if follows & ends:
                ends.add(name)
        grown = len(ends) > before
    stuck = [name for name in plan.nodes if name not in ends]
    if stuck:
        raise GraphError(
            f"{', '.join(map(repr, stuck))}: no way to END; add_edge({stuck[-1]!r}, END), or a router that may end"
        )


def _check_conflicts(plan: Plan) -> None:
    """Two nodes that certainly run in one super-step and declare that they write one key without a reducer."""
    for together in _certain_steps(plan):
        for first, second in combinations(together, 2):
            one, other = plan.nodes[first], plan.nodes[second]
            shared = set(one.writes or ()) & set(other.writes or ()) - plan.reducers.keys()
            if shared:
                key = min(shared)
                raise GraphError(
                    f"{first!r} and {second!r} run in one super-step and both write {key!r}: declare a reducer for "
                    f"{key!r}, or let them write different keys"
                )


def _check_sends(plan: Plan) -> None:
    """A node that a router says it sends several tasks to, and that declares a key without a reducer."""
    for source, branches in plan.branches.items():
        for branch in branches:
            for name in branch.mapping.values() if branch.mapping is not None and _sends_several(branch.router) else ():
                alone = set(plan.nodes[name].writes or ()) - plan.reducers.keys() if name != END else ()
                if alone:
                    key = min(alone)
                    raise GraphError(
                        f"the router of {source!r} sends several tasks to {name!r}, and each writes {key!r}: declare a "
                        f"reducer for {key!r}, or let it return one Send"
                    )


def _sends_several(router: Any) -> bool:
    """Whether its annotation says that a router returns a list of Sends."""
    try:
        hint = get_type_hints(router).get("return")
    except (TypeError, NameError):
        return False
    kind = get_origin(hint)
    inner = [each for given in get_args(hint) for each in (given, *get_args(given))]
    return isinstance(kind, type) and issubclass(kind, Iterable) and Send in inner


def _check_doubled(plan: Plan) -> None:
    """A key that a sub-graph gets and gives back as a whole, and that is merged with itself here."""
    for node in plan.nodes.values():
        inner = getattr(node.inner, "plan", None)
        if inner is None or node.outputs is not None:
            continue
        for key in sorted(_find_writes(inner) & plan.reducers.keys() - inner.reducers.keys()):
            if (inner.keys is None or key in inner.keys) and (node.reads is None or key in node.reads):
                raise GraphError(
                    f"{node.name!r} gets {key!r}, writes it and gives back the whole of it, which would be merged with "
                    f"itself: give {key!r} its reducer in that graph too, or say what goes back with outputs="
                )


def _find_writes(plan: Plan) -> set[str]:
    """The keys that nodes of a graph say that they write."""
    return {key for node in plan.nodes.values() for key in node.writes or ()}


#: What reducers are tried with: the kinds of values that they usually merge.
_SAMPLES: tuple[tuple[Any, Any], ...] = (
    ([1], [2, 1]),
    ([{"id": 1}], [{"id": 1, "x": 2}]),
    ([Message("user", "a")], [Message("assistant", "b")]),
    ({"a": 1}, {"a": 2, "b": 3}),
    ({1}, {2}),
    ("a", "b"),
    (1, 2),
)


def find_impure(plan: Plan, samples: Iterable[tuple[Any, Any]] = ()) -> Iterable[str]:
    """The keys whose reducer does not come to the same twice; a replay would differ from the run.

    Args:
        plan: the graph.
        samples: pairs of values to try each reducer with, besides usual ones; what it raises for is passed over.
    """
    for key, reducer in plan.reducers.items():
        for left, right in (*_SAMPLES, *samples):
            try:
                merged = [freeze(reducer(copy_value(freeze(left)), copy_value(freeze(right)))) for _ in range(2)]
            except Exception:  # noqa: BLE001, S112 - it is for other kinds of values
                continue
            if merged[0] != merged[1]:
                yield key
                break


def _certain_steps(plan: Plan) -> Iterable[tuple[str, ...]]:
    """The super-steps that are known without running: those along plain edges and joins."""
    for source, targets in plan.edges.items():
        if source in plan.nodes or source == START:
            yield tuple(name for name in targets if name != END)
    done: list[tuple[str, tuple[Any, ...], bool]] = [(START, (), True)]
    waits: dict[str, tuple[str, ...]] = {}
    seen: set[Any] = set()
    while not any(plan.branches.get(name) or (name in plan.nodes and plan.nodes[name].goto) for name, _, _ in done):
        tasks, waits = plan.follow(done, waits, dict)
        names = tuple(name for name, _ in tasks)
        at = (names, tuple(sorted(waits.items())))
        if not names or at in seen:
            return
        seen.add(at)
        yield names
        done = [(name, (), True) for name in names]
