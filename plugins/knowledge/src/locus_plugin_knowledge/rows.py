"""Rows from their JSON form, and into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from attrs import field, fields, make_class, resolve_types

from locus.core import decode, encode, encode_data, thaw
from locus_plugin_knowledge.protocol import KnowledgeRow

__all__ = ["read_row", "write_row"]

#: What is taken for a value of a plain type: what is read back as one.
_PLAIN: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    bool: (bool,),
    float: (float, int),
    NoneType: (NoneType,),
}


def write_row(row: KnowledgeRow) -> dict[str, Any]:
    """The JSON form of a row.

    Raises:
        TypeError: a field has a value of another type than it is annotated with, or one without a JSON form.
    """
    try:
        annotated = fields(resolve_types(type(row)))
    except NameError:
        annotated = ()  # a class within a function, whose annotations name what is not found from here
    for each in annotated:
        _check_value(f"field {each.name!r}", getattr(row, each.name), each.type)
    try:
        form: dict[str, Any] = encode(row)
        json.dumps(encode_data(form))
    except Exception as e:
        for each in annotated:
            _check_form(f"field {each.name!r}", getattr(row, each.name), each.type)
        raise TypeError(f"the row has no JSON form: {e}") from e
    return form


def _check_form(where: str, value: Any, wanted: Any) -> None:
    alone = make_class("Alone", {"value": field(type=wanted)})  # its form is that of the annotation
    try:
        json.dumps(encode_data(encode(alone(value))))
    except Exception as e:
        raise TypeError(f"{where}: expected what has a JSON form, got {_show_value(value)}: {e}") from e


def _check_value(where: str, value: Any, wanted: Any) -> None:
    """Refuse a value that is not of a plain type, or of a tuple of such; of other types the JSON form is the proof."""
    parts = get_args(wanted)
    kinds = parts if get_origin(wanted) in (Union, UnionType) else (wanted,)
    if all(isinstance(kind, type) and kind in _PLAIN for kind in kinds):
        # A text may be of a derived class, such as a member of an enum: its form is that of a text.
        if type(value) in {each for kind in kinds for each in _PLAIN[kind]} or (
            str in kinds and isinstance(value, str)
        ):
            return
        names = " or ".join("None" if kind is NoneType else f"a{'n' * (kind is int)} {kind.__name__}" for kind in kinds)
        raise TypeError(f"{where}: expected {names}, got {_show_value(value)}")
    if len(kinds) == 2 and NoneType in kinds:
        if value is not None:
            _check_value(where, value, next(kind for kind in kinds if kind is not NoneType))
    elif get_origin(wanted) is tuple and parts[1:] == (...,):
        if not isinstance(value, list | tuple):
            raise TypeError(f"{where}: expected a list or a tuple, got {_show_value(value)}")
        for at, item in enumerate(value):
            _check_value(f"{where}, item {at}", item, parts[0])


def _show_value(value: Any) -> str:
    try:
        shown = f"{value!r:.80} "
    except ValueError:
        shown = ""  # an int of thousands of digits is not shown
    return f"{shown}({type(value).__name__})"


def read_row(form: Mapping[str, Any], kind: type[KnowledgeRow]) -> KnowledgeRow:
    """A row of its JSON form; where that is not the class's, what `KnowledgeRow` knows of it.

    Raises:
        Exception: it is not the form of a row at all.
    """
    try:
        return _decode(form, kind)
    except Exception:  # whatever a class of a provider raises; the base is its own proof
        if kind is KnowledgeRow:
            raise
        return _decode(form, KnowledgeRow)


def _decode(form: Mapping[str, Any], kind: type[KnowledgeRow]) -> KnowledgeRow:
    known = {each.name for each in fields(kind)}
    # What a run has on record is frozen: its lists are tuples, which `decode` does not look into for data.
    return decode(thaw({name: value for name, value in form.items() if name in known}), kind)
