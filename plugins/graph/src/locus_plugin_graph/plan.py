"""A graph as a value: its nodes, and the one table by which tasks follow tasks, which is routed and drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutine
from typing import Any

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.errors import closest
from locus_plugin_graph.errors import NodeError
from locus_plugin_graph.values import Reducer, freeze_update

__all__ = ["END", "START", "Branch", "Command", "Join", "Node", "Plan", "Send", "Task"]

#: Where a run begins, and where each of its paths ends.
START, END = "__start__", "__end__"

#: A node's name and, for a `Send`, the values that the node gets in place of the state.
Task = tuple[str, FrozenDict[str, Any] | None]


@frozen
class Send:
    """One more task for a node, with values of its own; a router returns any number of them.

    Args:
        node: the node.
        values: what it gets in place of the state.
    """

    node: str
    values: Mapping[str, Any] = field(default=EMPTY, converter=freeze)


@frozen(kw_only=True)
class Command:
    """What a node may return in place of a dict: its update, and where to go besides its edges.

    Args:
        update: the keys that it writes.
        goto: nodes or `Send`s; each must be named in the node's ``goto=``.
    """

    update: Mapping[str, Any] = EMPTY
    goto: str | Send | Sequence[str | Send] = ()


@frozen(kw_only=True)
class Node:
    """A node.

    Args:
        name: its name.
        run: ``async (values, context) -> update``.
        kind: ``"function"``, ``"agent"`` or ``"graph"``.
        effect: what may happen after a crash in it.
        timeout: seconds that one attempt may take, or None.
        retries: how often it is tried again in one segment.
        writes: the keys that it writes, where that is known.
        reads: the keys that it gets; None = all.
        goto: the nodes to which it may send a `Command`.
        inner: the agent or the graph that it runs, or None.
        outputs: of a graph, which of its keys go back, key here -> key there; None = what its nodes wrote.
    """

    name: str
    run: Callable[..., Any]
    takes_context: bool = False
    is_async: bool = True
    kind: str = "function"
    effect: str = "once"
    timeout: float | None = None
    retries: int = 0
    writes: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None
    goto: tuple[str, ...] = ()
    inner: Any = None
    outputs: Mapping[str, str] | None = None


@frozen
class Branch:
    """A conditional edge.

    Args:
        router: ``(values) -> key, name, Send, or several``; pure.
        mapping: from what the router says to names of nodes; None = it says the names.
    """

    router: Callable[[dict[str, Any]], Any]
    mapping: FrozenDict[Any, str] | None = None


@frozen
class Join:
    """An edge that waits until all of its sources have run."""

    sources: tuple[str, ...]
    target: str

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{'+'.join(self.sources)}>{self.target}"


@frozen(kw_only=True)
class Plan:
    """A compiled graph.

    Args:
        nodes: by name.
        edges: source -> the nodes that always follow.
        branches: source -> its conditional edges.
        joins: the edges that wait.
        reducers: key -> what merges its values.
        keys: those of the schema; None = any.
        fallbacks: node -> the node that follows where it has failed.
        max_tasks: how many tasks a super-step may have.
        at_once: how many of them may be under way; None = all.
    """

    nodes: Mapping[str, Node]
    edges: Mapping[str, tuple[str, ...]]
    branches: Mapping[str, tuple[Branch, ...]]
    joins: tuple[Join, ...] = ()
    reducers: Mapping[str, Reducer] = EMPTY
    keys: frozenset[str] | None = None
    fallbacks: Mapping[str, str] = EMPTY
    max_tasks: int = 1000
    at_once: int | None = None

    def targets(self, source: str) -> tuple[str, ...]:
        """Every node that may follow a node by itself, END included; a join's are not among them."""
        found = list(self.edges.get(source, ()))
        for branch in self.branches.get(source, ()):
            found += (*self.nodes, END) if branch.mapping is None else branch.mapping.values()
        if source in self.nodes:
            found += self.nodes[source].goto
        if source in self.fallbacks:
            found.append(self.fallbacks[source])
        return tuple(dict.fromkeys(found))

    def follow(
        self,
        done: Iterable[tuple[str, tuple[Task, ...], bool]],
        waits: Mapping[str, tuple[str, ...]],
        values: Callable[[], dict[str, Any]],
    ) -> tuple[tuple[Task, ...], dict[str, tuple[str, ...]]]:
        """The tasks that follow a super-step, and which sources each join has seen.

        Args:
            done: of each task its node, where it sends to, and whether its edges count; in order.
            waits: which sources each join had seen before.
            values: gives a router its own copy of the values.

        Raises:
            NodeError: a router raised, or named what it may not.
        """
        found: dict[Any, Task] = {}
        seen: list[str] = []

        def add(task: Task) -> None:
            # Nodes that are reached on several paths run once; each Send is a task of its own.
            if task[0] != END:
                found.setdefault(task[0] if task[1] is None else len(found), task)

        for name, goto, has_edges in done:
            for task in goto:
                add(task)
            if not has_edges or name in seen:
                continue
            seen.append(name)
            for target in self.edges.get(name, ()):
                add((target, None))
            for branch in self.branches.get(name, ()):
                for task in self._ask(name, branch, values()):
                    add(task)
        left: dict[str, tuple[str, ...]] = {}
        for join in self.joins:
            arrived = (*waits.get(join.key, ()), *(name for name in seen if name in join.sources))
            if set(join.sources) <= set(arrived):
                add((join.target, None))
            elif arrived:
                left[join.key] = tuple(dict.fromkeys(arrived))
        if len(found) > self.max_tasks:
            raise NodeError(seen[-1], f"{len(found):,} tasks would follow, and max_tasks is {self.max_tasks:,}")
        return tuple(found.values()), left

    def _ask(self, source: str, branch: Branch, values: dict[str, Any]) -> list[Task]:
        try:
            said = branch.router(values)
        except Exception as e:
            raise NodeError(source, f"its router raised {type(e).__name__}: {e}") from e
        if iscoroutine(said):
            said.close()
            raise NodeError(source, "its router is a coroutine function; a router is a plain function of the values")
        mapping = branch.mapping
        names = (*self.nodes, END) if mapping is None else tuple(mapping.values())
        tasks: list[Task] = []
        for each in said if isinstance(said, list | tuple) else (said,):
            if isinstance(each, Send):
                tasks.append(self.task(source, each, names, "its router sends to"))
            elif mapping is not None:
                if not _is_hashable(each) or each not in mapping:
                    valid = ", ".join(map(repr, mapping))
                    raise NodeError(source, f"its router answered {each!r:.80}, which is not in its mapping: {valid}")
                tasks.append((mapping[each], None))
            else:
                tasks.append(self.task(source, each, names, "its router answered"))
        return tasks

    def task(self, source: str, target: Any, valid: Sequence[str], what: str) -> Task:
        """The task that a router or a node asks for.

        Raises:
            NodeError: it is not one of the valid nodes.
        """
        name, given = (target.node, target.values) if isinstance(target, Send) else (target, None)
        if name not in valid and not valid:
            raise NodeError(source, f"{what} {name!r:.80}, and has no goto=; say where it may go: goto=({name!r:.80},)")
        if name not in valid:
            near = closest(str(name), valid)
            hint = f"; did you mean {near!r}?" if near else ""
            raise NodeError(source, f"{what} {name!r:.80}; expected one of {', '.join(map(repr, valid))}{hint}")
        if given is not None and not isinstance(given, (dict, Mapping)):
            raise NodeError(source, f"sends {given!r:.80} to {name!r}; expected a dict of values")
        return name, None if given is None else freeze_update(source, given, None)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
