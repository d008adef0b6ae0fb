"""The order of plugins: what a manifest says it comes after, then what the user configured, then the name."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from locus.core.errors import PluginError

__all__ = ["in_order"]


def in_order(after: Mapping[str, Iterable[str]], configured: Sequence[str] = ()) -> tuple[str, ...]:
    """The names in the order in which their hooks are called.

    Args:
        after: for each name the names that come before it; those that are not among the keys do not count.
        configured: the order the user wrote down; what is not in it follows, by name.

    Raises:
        PluginError: the names are in a circle; the message shows it.
    """
    place = {name: i for i, name in reversed(list(enumerate(configured)))}
    waiting = {name: {a for a in wanted if a in after} for name, wanted in after.items()}
    followers: dict[str, list[str]] = {name: [] for name in after}
    for name, before in waiting.items():
        for earlier in before:
            followers[earlier].append(name)
    ready = [(place.get(name, len(place)), name) for name, before in waiting.items() if not before]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for follower in followers[name]:
            waiting[follower].discard(name)
            if not waiting[follower]:
                heapq.heappush(ready, (place.get(follower, len(place)), follower))
    if len(order) < len(after):
        circle = _circle({name: before for name, before in waiting.items() if before})
        shown = " after ".join((*circle, circle[0]))
        raise PluginError(circle[0], f"the order of plugins is circular: {shown}; disable one of them")
    return tuple(order)


def _circle(waiting: Mapping[str, set[str]]) -> list[str]:
    """One circle among names each of which waits for another of them."""
    seen: list[str] = []
    name = min(waiting)
    while name not in seen:
        seen.append(name)
        name = min(n for n in waiting[name] if n in waiting)
    return seen[seen.index(name) :]
