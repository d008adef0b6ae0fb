"""Questions about directed graphs, answered without recursion: a chain may have a hundred thousand nodes in a row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

__all__ = ["Graph", "components", "ring", "shortest", "simple_paths"]

#: Node -> the nodes that it leads to.
Graph = Mapping[str, Sequence[str]]


def shortest(
    graph: Graph, start: Iterable[str], goal: str, *, within: frozenset[str] | None = None, most: int = -1
) -> tuple[str, ...] | None:
    """A shortest path to a node, breadth first: the ids from a start to the goal, or None.

    Args:
        graph: the graph.
        start: where a path may begin; a path of one node counts.
        goal: where it must end.
        within: the nodes that it may go through, or None for all.
        most: how many nodes are looked at, -1 for all; what is not found by then counts as not there.
    """
    came: dict[str, str | None] = {}
    todo: deque[str] = deque()
    for node in start:
        if node not in came and (within is None or node in within):
            came[node] = None
            todo.append(node)
    while todo and most != 0:
        most -= 1
        node = todo.popleft()
        if node == goal:
            path = [node]
            while (before := came[path[-1]]) is not None:
                path.append(before)
            return tuple(reversed(path))
        for after in graph.get(node, ()):
            if after not in came and (within is None or after in within):
                came[after] = node
                todo.append(after)
    return None


def ring(graph: Graph, node: str, *, within: frozenset[str] | None = None, most: int = -1) -> tuple[str, ...] | None:
    """A shortest cycle through a node, beginning with it, or None."""
    found = shortest(graph, graph.get(node, ()), node, within=within, most=most)
    return None if found is None else (node, *found[:-1])


def components(nodes: Iterable[str], graph: Graph) -> Iterator[list[str]]:
    """The strongly connected components of which there is a way round: Tarjan's algorithm with a stack of its own."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    is_open: set[str] = set()
    for first in nodes:
        if first in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _enter(first, graph, index, low, open_, is_open, work)
        while work:
            node, rest = work[-1]
            for after in rest:
                if after not in index:
                    _enter(after, graph, index, low, open_, is_open, work)
                    break
                if after in is_open:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    component = _close(node, open_, is_open)
                    if len(component) > 1 or node in graph.get(node, ()):
                        yield component


def _enter(
    node: str,
    graph: Graph,
    index: dict[str, int],
    low: dict[str, int],
    open_: list[str],
    is_open: set[str],
    work: list[tuple[str, Iterator[str]]],
) -> None:
    index[node] = low[node] = len(index)
    open_.append(node)
    is_open.add(node)
    work.append((node, iter(graph.get(node, ()))))


def _close(node: str, open_: list[str], is_open: set[str]) -> list[str]:
    at = len(open_) - 1
    while open_[at] != node:
        at -= 1
    component = open_[at:]
    del open_[at:]
    is_open.difference_update(component)
    return component


def simple_paths(graph: Graph, start: str, goal: str, *, steps: int) -> Iterator[tuple[str, ...]]:
    """The paths between two nodes that visit no node twice, depth first.

    Args:
        graph: the graph.
        start: where they begin.
        goal: where they end; where it is the start, the one path is that node.
        steps: how many edges are followed at most: there may be exponentially many paths.
    """
    if start == goal:
        yield (start,)
        return
    path, on_path = [start], {start}
    work = [iter(graph.get(start, ()))]
    left = iter(range(steps))
    while work:
        after = next(work[-1], None)
        if after is None:
            work.pop()
            on_path.discard(path.pop())
        elif not tuple(islice(left, 1)):
            return
        elif after == goal:
            yield (*path, goal)
        elif after not in on_path:
            path.append(after)
            on_path.add(after)
            work.append(iter(graph.get(after, ())))
