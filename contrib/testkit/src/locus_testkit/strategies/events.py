"""Events of every registered class, plugins' own included, and values by type annotation."""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from locus.core import FrozenDict, freeze
from locus.core.events import Event, event_types
from locus.core.messages import Message, ToolCall, Usage
from locus_testkit.strategies.data import arguments, data, moments, texts
from locus_testkit.strategies.messages import messages, tool_calls, usages

__all__ = ["events", "of_type"]

_KNOWN: dict[Any, SearchStrategy[Any]] = {
    Any: data(),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    datetime: moments(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(0, 10_000),
    str: texts(),
    type(None): st.none(),
    FrozenDict: arguments(),
    Message: messages(),
    ToolCall: tool_calls(),
    Usage: usages(),
}


def of_type(annotation: Any) -> SearchStrategy[Any]:
    """Values of an annotation as the fields of events use them.

    Args:
        annotation: a class of the kernel, a primitive, an attrs class, an enum, or a Literal, optional,
            tuple, frozenset or `FrozenDict` of such.

    Raises:
        TypeError: no strategy is known for it; pass one for that field instead.
    """
    if annotation in _KNOWN:
        return _KNOWN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(each) for each in args])
    if origin is tuple and args[1:] == (...,):
        return st.lists(of_type(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(of_type, args))
    if origin is frozenset:
        return st.frozensets(of_type(args[0]), max_size=3)
    if origin in (FrozenDict, dict, Mapping):
        return st.dictionaries(of_type(args[0]), of_type(args[1]), max_size=3).map(freeze)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if isinstance(annotation, type) and attrs.has(annotation):
        return _of_class(annotation, {})
    raise TypeError(f"no strategy for {annotation!r}; pass one: events(MyEvent, my_field=...)")


def _of_class(cls: type, given: dict[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    hints = get_type_hints(cls)
    fields = [a for a in attrs.fields(cls) if a.init]
    unknown = given.keys() - {a.alias for a in fields}
    if unknown:
        raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
    drawn = {str(a.alias): of_type(hints[a.name]) for a in fields if a.alias not in given}
    return st.builds(cls, **drawn, **given)


def events(cls: type[Event] | None = None, **fields: SearchStrategy[Any]) -> SearchStrategy[Event]:
    """Events, envelope included.

    Args:
        cls: an event class; None = every class that is registered when an example is drawn.
        fields: strategies for fields of ``cls`` that are narrower than their annotations.
    """
    if cls is not None:
        return _of_class(cls, fields)
    if fields:
        raise TypeError("fields can only be given together with an event class")

    def registered_events() -> SearchStrategy[Event]:
        return st.one_of([_of_class(each, {}) for each in event_types().values()])

    return st.deferred(registered_events)
