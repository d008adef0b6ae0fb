"""What may be given for a node, an edge or a whole graph; each check names what it was given for."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Hashable, Iterable, Mapping
from math import inf
from typing import Any

from locus.core import FrozenDict
from locus_plugin_graph.errors import GraphError
from locus_plugin_graph.plan import END, START

__all__ = [
    "as_mapping",
    "check_agent_options",
    "check_count",
    "check_effect",
    "check_function",
    "check_name",
    "check_seconds",
    "names_in",
]

_EFFECTS = ("once", "keyed", "pure")

#: Options of `Agent` that nothing of a graph would use: its Think is a super-step, and asks no model by itself.
_OF_AGENTS = ("output_schema", "stop_on_text", "system_prompt", "terminal_tools", "tools")


def check_name(name: Any) -> str:
    """The name of a node."""
    if not isinstance(name, str) or not name or name in (START, END):
        raise GraphError(f"a node needs a name other than START and END, got {name!r:.80}")
    return name


def check_effect(what: str, effect: Any) -> str:
    """What may happen to a node after a crash in it."""
    if effect not in _EFFECTS:
        raise GraphError(f"effect of {what} must be one of {', '.join(map(repr, _EFFECTS))}, got {effect!r:.80}")
    return str(effect)


def check_count(what: str, value: Any, least: int) -> int:
    """A number of something."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise GraphError(f"{what} must be an integer, {least} or more, got {value!r:.80}")
    return value


def check_seconds(what: str, value: Any) -> float | None:
    """A time, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        raise GraphError(f"{what} must be seconds, more than 0, got {value!r:.80}")
    return value


def names_in(what: str, given: Any) -> tuple[str, ...]:
    """One name, or several."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Collection):
        raise GraphError(f"{what} must be a name or a collection of names, got {given!r:.80}")
    return tuple(given)


def as_mapping(what: str, given: Any) -> FrozenDict[Any, str]:
    """From what a router answers to the node that follows; of a collection, each name is its own answer."""
    if not isinstance(given, Mapping):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise GraphError(f"{what} must be a dict, or a list of the names that follow, got {given!r:.80}")
        given = [*given]
        if not all(isinstance(name, Hashable) for name in given):
            raise GraphError(f"{what} must name nodes, got {given!r:.80}")
        given = {name: name for name in given}
    odd = [name for name in given.values() if not isinstance(name, str)]
    if odd:
        raise GraphError(f"{what} must lead to the names of nodes, got {odd[0]!r:.80}")
    return FrozenDict(given)


def check_function(name: str, fn: Any) -> None:
    """Refuse what cannot be the body of a node."""
    if not callable(fn):
        raise GraphError(f"node {name!r} must be a function, an Agent or a compiled graph, got {fn!r:.80}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise GraphError(
            f"node {name!r} is a generator function; let it return a dict, and call ctx.emit(...) meanwhile"
        )


def check_agent_options(options: Mapping[str, Any]) -> None:
    """Refuse what would have no effect in a graph."""
    for name in _OF_AGENTS:
        if name in options:
            raise GraphError(f"{name}= has no effect in a graph: give it to an Agent that is a node of it")
