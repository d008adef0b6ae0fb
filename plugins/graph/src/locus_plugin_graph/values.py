"""The values of a graph: frozen in the agent's state, a private copy in a node, merged by reducers.

Each key is an entry of its own in ``state.metadata``, so a transition writes the keys that changed, and of a list that
grew what was added. What a node gets are copies that it may change; what a reducer gets are a new list, dict or set
around frozen items, so that the items of a list that grows stay the same objects from step to step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

from locus.core import EMPTY, FrozenDict, decode, decode_data, encode, encode_data, freeze, register_value
from locus.core.errors import InputError, NotSerialisable
from locus.core.messages import Message
from locus.core.state import AgentState
from locus_plugin_graph.errors import NodeError

__all__ = [
    "PREFIX",
    "RECORD",
    "copy_value",
    "copy_values",
    "freeze_update",
    "from_prompt",
    "own_writes",
    "reduce_value",
    "to_prompt",
    "values_of",
]

#: The entry of the metadata that says which tasks are due, and what the entries of the values begin with.
RECORD, PREFIX = "graph", "graph."
#: What the entries begin with that hold what a child's own nodes added to what it was given.
ADDED = "graph+"

Reducer = Callable[[Any, Any], Any]

register_value(Message, "graph.message", encode, partial(decode, cls=Message), plain=True)

_ATOMS = frozenset({str, int, float, bool, type(None), bytes, datetime, date})
#: What needs no look to be known to have a JSON form.
_PLAIN = frozenset({str, int, bool, type(None)})
_PROBE = AgentState(run_id="")


def copy_value(value: Any) -> Any:
    """A copy that may be changed: lists for tuples, dicts and sets for frozen ones."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple:
        return list(value) if _ATOMS.issuperset(map(type, value)) else [copy_value(item) for item in value]
    if kind is FrozenDict or isinstance(value, Mapping):
        return {key: item if type(item) in _ATOMS else copy_value(item) for key, item in value.items()}
    return set(value) if kind is frozenset else value


def copy_values(metadata: Mapping[str, Any], keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    """A node's own copy of the values.

    Args:
        metadata: of the state.
        keys: what it reads; None = all.
    """
    if keys is not None:
        return {key: copy_value(metadata[PREFIX + key]) for key in keys if PREFIX + key in metadata}
    size = len(PREFIX)
    return {key[size:]: copy_value(value) for key, value in metadata.items() if key.startswith(PREFIX)}


def values_of(state: AgentState) -> dict[str, Any]:
    """The values that a state holds, as a copy."""
    return copy_values(state.metadata)


def own_writes(state: AgentState) -> dict[str, Any]:
    """What the nodes of a child run wrote, frozen; of a key with a reducer, what they added to what it was given."""
    metadata = state.metadata
    return {key: metadata.get(ADDED + key, metadata.get(PREFIX + key)) for key in metadata[RECORD]["wrote"]}


def freeze_update(node: str, update: Any, keys: frozenset[str] | None) -> FrozenDict[str, Any]:
    """What a node returned, frozen and known to have a JSON form.

    Args:
        node: its name.
        update: what it returned; None for nothing.
        keys: those of the schema; None = any.

    Raises:
        NodeError: it is not a mapping of names to data, or a key is not in the schema.
    """
    if update is None:
        return EMPTY
    if not isinstance(update, dict) and not isinstance(update, Mapping):
        raise NodeError(node, f"expected a dict of the keys that it writes, got {update!r:.80}")
    try:
        frozen: FrozenDict[str, Any] = freeze(update)
    except RecursionError:
        raise NodeError(node, "a value contains itself, or is nested too deeply") from None
    for key, value in frozen.items():
        if not isinstance(key, str) or (keys is not None and key not in keys):
            known = "" if keys is None else f"; the schema has {', '.join(sorted(keys))}"
            raise NodeError(node, f"the key {key!r:.80} is not {'a str' if keys is None else 'known'}{known}")
        kind = type(value)
        if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, value))):
            continue
        try:
            _PROBE.with_metadata(key, value)
        except NotSerialisable as e:
            raise NodeError(node, f"the value of {key!r} cannot be saved: {e}") from e
    return frozen


def reduce_value(node: str, key: str, reducer: Reducer, left: Any, right: Any) -> Any:
    """What a reducer makes of the value so far and of what a task wrote.

    Raises:
        NodeError: the reducer raised.
    """
    try:
        return reducer(_open(left), _open(right))
    except Exception as e:
        raise NodeError(node, f"the reducer of {key!r} raised {type(e).__name__}: {e}") from e


def _open(value: Any) -> Any:
    """A new container around the same items."""
    kind = type(value)
    if kind is list or kind in _ATOMS:
        return value
    if kind is tuple:
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return set(value) if kind is frozenset else value


def to_prompt(values: Mapping[str, Any] | None, keys: frozenset[str] | None = None) -> str:
    """The input of a run as the user's message.

    Args:
        values: the input.
        keys: those of the schema; None = any.

    Raises:
        InputError: it is not a mapping, a value has no JSON form, or a key is not in the schema.
    """
    if not isinstance(values, Mapping | None):
        raise InputError(f"a graph is run on a dict of values, got {values!r:.80}")
    try:
        return json.dumps(encode_data(freeze_update("START", values, keys), "input"), ensure_ascii=False)
    except (NodeError, NotSerialisable) as e:
        raise InputError(f"the input of the graph: {getattr(e, 'problem', e)}") from e


def from_prompt(text: str) -> Any:
    """The input of a run, from the user's message.

    Raises:
        InputError: a guard made something else than JSON of it.
    """
    try:
        return decode_data(json.loads(text))
    except ValueError as e:
        raise InputError(f"the input of a graph must be JSON, got {text!r:.80}") from e
