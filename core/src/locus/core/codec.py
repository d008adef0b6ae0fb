"""The one converter between values and JSON: lossless, or a typed error that names the place.

Typed values go through cattrs, free-form data through `locus.core.data`. Loaded when something is first encoded, and
then told the forms of the state and of the journal's entries by the modules that define them.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from attrs import NOTHING, fields, has, resolve_types
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn

from locus.core.data import decode_data as decode_data
from locus.core.data import encode_data as encode_data
from locus.core.data import register_value as register_value
from locus.core.data import take_forms
from locus.core.errors import CheckpointError, NotSerialisable
from locus.core.frozen import FrozenDict, maker
from locus.core.messages import (
    Block,
    MediaBlock,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
)
from locus.core.step_id import StepId

T = TypeVar("T")

converter = Converter(omit_if_default=True, forbid_extra_keys=True)


def encode(value: Any) -> Any:
    """The JSON form of a typed value of this package or of a plugin."""
    return converter.unstructure(value)


def decode(form: Any, cls: type[T]) -> T:
    """A typed value from its JSON form.

    Raises:
        CheckpointError: the form is not one of ``cls``; the cause is chained.
    """
    try:
        return converter.structure(form, cls)
    except NotSerialisable:
        raise
    except Exception as e:
        raise CheckpointError(getattr(cls, "__name__", str(cls)), f"cannot be read: {e!r}") from e


def register_union(union: Any, tags: Mapping[str, type], key: str = "type") -> None:
    """Give the classes of a union a tag each, so that the union reads back as what it was.

    Args:
        union: the union type as it is annotated.
        tags: tag -> class; the mapping is looked up at decoding time, so it may grow.
        key: the key of the tag in the JSON object.
    """
    for tag, cls in tags.items():
        register_tagged(cls, tag, key)

    def structure(form: Any, _: Any) -> Any:
        tag = form.get(key) if isinstance(form, dict) else None
        if not isinstance(tag, str) or tag not in tags:
            raise CheckpointError(key, f"unknown {key} {tag!r}; known: {', '.join(sorted(tags))}")
        cls = tags[tag]
        return converter.get_structure_hook(cls)(form, cls)

    converter.register_structure_hook_func(lambda t: t == union, structure)
    converter.register_unstructure_hook_func(lambda t: t == union, converter.unstructure)


def register_tagged(cls: type, tag: str, key: str = "type") -> None:
    """Let the JSON form of one class carry its tag."""

    # A factory: generating the functions takes a millisecond a class, paid at the first use, not at import.
    def unstructure(_: Any) -> Callable[[Any], Any]:
        plain: Callable[[Any], Any] = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True)
        return lambda v: {key: tag, **plain(v)}

    converter.register_unstructure_hook_factory(lambda t: t is cls, unstructure)
    converter.register_structure_hook_factory(lambda t: t is cls, lambda _: _reader(cls, key, tag))


def register_whole(cls: type) -> None:
    """Let the JSON form of one class spell out its defaults, so that a later default cannot change its meaning."""
    converter.register_unstructure_hook_factory(
        lambda t: t is cls, lambda _: make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=False)
    )


def _reader(cls: type, key: str = "", tag: str = "") -> Callable[[Any, Any], Any]:
    """What makes a value of an attrs class from its JSON form, at the cost of what the form holds.

    A function that cattrs generates asks for every field that the class has, and takes a millisecond to make. The tag
    under the key may be absent where the class is used by itself.
    """
    resolve_types(cls)
    make: Callable[..., Any] = maker(cls)
    field_of = {a.name: (a.alias, *_reading(a.type)) for a in fields(cls) if a.init}.get
    required = {a.name for a in fields(cls) if a.init and a.default is NOTHING}

    def read(form: Any, _: Any) -> Any:
        if type(form) is not dict and not isinstance(form, Mapping):
            raise CheckpointError(cls.__name__, f"expected a JSON object, got {form!r:.60}")
        given = {}
        for name, value in form.items():
            field = field_of(name)
            if field is not None:
                alias, kinds, structure, wanted = field
                given[alias] = value if type(value) in kinds else structure(value, wanted)
            elif name != key or value != tag:
                raise CheckpointError(cls.__name__, f"unknown field {name!r:.60}")
        try:
            return make(**given)
        except TypeError as e:
            if required <= form.keys():
                raise
            raise CheckpointError(cls.__name__, f"has no {', '.join(sorted(required - form.keys()))}") from e

    return read


def _reading(wanted: Any) -> tuple[frozenset[type], Callable[[Any, Any], Any], Any]:
    """How a form of a type is read: the kinds of forms that are taken as they are, and what reads any other."""
    if wanted in (str, int, bool, float):
        return frozenset({wanted}), converter.get_structure_hook(wanted), wanted
    parts = get_args(wanted)
    if get_origin(wanted) in (Union, UnionType) and len(parts) == 2 and parts[1] is NoneType:
        kinds, structure, inner = _reading(parts[0])
        return kinds | {NoneType}, structure, inner
    if get_origin(wanted) is tuple and parts[1:] == (...,):
        kinds, structure, inner = _reading(parts[0])

        def items(form: Any, _: Any) -> tuple[Any, ...]:
            if type(form) is not list and type(form) is not tuple:
                raise CheckpointError("", f"expected an array, got {form!r:.60}")
            return tuple([value if type(value) in kinds else structure(value, inner) for value in form])

        return frozenset(), items, wanted
    return frozenset(), converter.get_structure_hook(wanted), wanted


def reader_of(wanted: Any) -> Callable[[Any], Any]:
    """What makes a value of a type from its JSON form."""
    kinds, structure, inner = _reading(wanted)
    return lambda form: form if type(form) in kinds else structure(form, inner)


converter.register_structure_hook_factory(has, _reader)


def _is_data(t: Any) -> bool:
    return t is Any or t is FrozenDict or getattr(t, "__origin__", None) is FrozenDict


def _structure_data(form: Any, wanted: Any) -> Any:
    found = decode_data(form)
    if wanted is Any or type(found) is FrozenDict:
        return found
    raise CheckpointError("", f"expected a mapping, got {form!r:.60}")


converter.register_unstructure_hook_func(_is_data, encode_data)
converter.register_structure_hook_func(_is_data, _structure_data)
converter.register_unstructure_hook_func(lambda t: getattr(t, "__origin__", None) is frozenset, sorted)
converter.register_unstructure_hook(Role, lambda v: v.value)  # a StrEnum is not plain data by itself
converter.register_unstructure_hook(datetime, datetime.isoformat)
converter.register_structure_hook(datetime, lambda form, _: datetime.fromisoformat(form))
converter.register_unstructure_hook(StepId, str)
converter.register_structure_hook(StepId, lambda form, _: StepId.parse(form))
converter.register_unstructure_hook(bytes, lambda v: base64.b64encode(v).decode())
converter.register_structure_hook(bytes, lambda form, _: base64.b64decode(form))


def _is_role(t: Any) -> bool:
    return any(getattr(each, "_is_protocol", False) for each in get_args(t))


def _structure_role(form: Any, _: Any) -> Any:
    if form is None or type(form) is str:
        return form
    raise CheckpointError("", f"expected a name, got {form!r:.60}")


# What only does something has no JSON form but its name: the model of a request.
converter.register_unstructure_hook_func(_is_role, lambda v: v if v is None or isinstance(v, str) else v.name)
converter.register_structure_hook_func(_is_role, _structure_role)


def _exactly(*kinds: type) -> Callable[[Any, Any], Any]:
    # cattrs would make 7 of "7" and True of "no": what is damaged must not read as something else.
    def structure(form: Any, wanted: Any) -> Any:
        if type(form) not in kinds:
            raise CheckpointError("", f"expected {wanted.__name__}, got {form!r:.60}")
        return form

    return structure


# A node or a role is a text too, and is written as one.
converter.register_unstructure_hook(str, lambda v: v if type(v) is str else str.__str__(v))
converter.register_structure_hook(int, _exactly(int))
converter.register_structure_hook(str, _exactly(str))
converter.register_structure_hook(bool, _exactly(bool))


def _structure_float(form: Any, _: Any) -> float:
    if type(form) in (int, float) or form in ("nan", "inf", "-inf"):
        return float(form)
    raise CheckpointError("", f"expected float, got {form!r:.60}")


converter.register_structure_hook(float, _structure_float)

converter.register_unstructure_hook(float, lambda v: v if math.isfinite(v) else repr(v))

_CONTENT = str | tuple[Block, ...]


def _blocks(form: Any) -> tuple[Block, ...]:
    read = converter.get_structure_hook(Block)
    return tuple([read(block, Block) for block in form])


converter.register_structure_hook_func(
    lambda t: t == _CONTENT,
    lambda form, _: form if isinstance(form, str) else _blocks(form),
)
converter.register_unstructure_hook_func(
    lambda t: t == _CONTENT,
    lambda v: v if isinstance(v, str) else [converter.unstructure(b) for b in v],
)
_BLOCKS: dict[str, type] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "media": MediaBlock,
    "raw": RawBlock,
    "tool_call": ToolCall,
}
register_union(Block, _BLOCKS)
register_tagged(ToolResult, "tool_result")
_BLOCKS["tool_result"] = ToolResult
assert set(_BLOCKS.values()) == set(get_args(Block))

# What the modules say of their own classes, those to come included.
take_forms(sys.modules[__name__])
