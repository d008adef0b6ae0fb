"""The one converter between values and JSON: lossless, or a typed error that names the place.

Typed values go through cattrs. Free-form data (metadata, arguments, extras) has no type to go by, so what
JSON cannot express (an integer key, a set, bytes, a date, NaN) is tagged: ``{"$": tag, "v": form}``.
Sequences are frozen to tuples when data enters a state, therefore a JSON array always reads back as one.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, TypeVar, get_args

from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn

from locus.core.errors import CheckpointError, NotSerialisable
from locus.core.frozen import FrozenDict
from locus.core.messages import (
    Block,
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
)

__all__ = [
    "converter",
    "decode",
    "decode_data",
    "encode",
    "encode_data",
    "register_union",
    "register_value",
]

T = TypeVar("T")

converter = Converter(omit_if_default=True)

_VALUES: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {}
_TAGS: dict[str, Callable[[Any], Any]] = {}


def register_value(cls: type[T], tag: str, to_data: Callable[[T], Any], from_data: Callable[[Any], T]) -> None:
    """Let values of a class stand in ``metadata`` and other free-form data.

    Args:
        cls: the exact class; subclasses are registered on their own.
        tag: its name in the JSON form, unique and kept for ever (``"mypackage.Money"``).
        to_data: to plain data (which may hold other registered values).
        from_data: back.

    Raises:
        ValueError: another class has the tag.
    """
    if tag in _TAGS and (cls not in _VALUES or _VALUES[cls][0] != tag):
        raise ValueError(f"the tag {tag!r} is taken; choose one that starts with your package's name")
    _VALUES[cls] = (tag, to_data, from_data)
    _TAGS[tag] = from_data


register_value(frozenset, "set", lambda v: sorted(v, key=repr), frozenset)
register_value(bytes, "bytes", lambda v: base64.b64encode(v).decode(), base64.b64decode)
register_value(datetime, "datetime", datetime.isoformat, datetime.fromisoformat)
register_value(date, "date", date.isoformat, date.fromisoformat)

_ATOMS = frozenset({str, int, bool, type(None)})


def encode_data(value: Any, path: str = "") -> Any:
    """The JSON form of free-form data.

    Raises:
        NotSerialisable: a value has none; the message names the path and the way out.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
    if kind is tuple or kind is list:
        return [encode_data(v, f"{path}[{i}]") for i, v in enumerate(value)]
    if kind is FrozenDict or kind is dict:
        if "$" not in value and all(type(k) is str for k in value):
            return {k: encode_data(v, f"{path}[{k!r}]") for k, v in value.items()}
        pairs = [[encode_data(k, f"{path} key"), encode_data(v, f"{path}[{k!r}]")] for k, v in value.items()]
        return {"$": "map", "v": pairs}
    if kind in _VALUES:
        tag, to_data, _ = _VALUES[kind]
        return {"$": tag, "v": encode_data(to_data(value), path)}
    raise NotSerialisable(
        path,
        f"a value of type {kind.__module__}.{kind.__qualname__} has no JSON form; store plain data, or "
        "register the class once with locus.core.codec.register_value(cls, tag, to_data, from_data)",
    )


def decode_data(form: Any) -> Any:
    """Free-form data from its JSON form, deep-frozen.

    Raises:
        CheckpointError: a tag is not registered here.
    """
    if isinstance(form, list):
        return tuple(map(decode_data, form))
    if isinstance(form, dict):
        if "$" not in form:
            return FrozenDict((k, decode_data(v)) for k, v in form.items())
        tag, inner = form["$"], form.get("v")
        if tag == "map" and isinstance(inner, list):
            return FrozenDict((decode_data(k), decode_data(v)) for k, v in inner)
        if tag == "float":
            return float(str(inner))
        if tag in _TAGS:
            return _TAGS[tag](decode_data(inner))
        raise CheckpointError("", f"the tag {tag!r} is not registered; import the package that registers it first")
    return form


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
        key: the name under which the tag stands in the JSON object.
    """
    for tag, cls in tags.items():
        register_tagged(cls, tag, key)

    def structure(form: Any, _: Any) -> Any:
        tag = form.get(key) if isinstance(form, dict) else None
        if not isinstance(tag, str) or tag not in tags:
            raise CheckpointError(key, f"unknown {key} {tag!r}; known: {', '.join(sorted(tags))}")
        return converter.structure({k: v for k, v in form.items() if k != key}, tags[tag])

    converter.register_structure_hook_func(lambda t: t == union, structure)
    converter.register_unstructure_hook_func(lambda t: t == union, lambda v: converter.unstructure(v, type(v)))


def register_tagged(cls: type, tag: str, key: str = "type") -> None:
    """Let the JSON form of one class carry its tag."""

    # A factory: generating the functions takes a millisecond a class, paid at the first use, not at import.
    def unstructure(_: Any) -> Callable[[Any], Any]:
        plain: Callable[[Any], Any] = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True)
        return lambda v: {key: tag, **plain(v)}

    converter.register_unstructure_hook_factory(lambda t: t is cls, unstructure)


def register_whole(cls: type) -> None:
    """Let the JSON form of one class spell out its defaults, so that a later default cannot change its meaning."""
    converter.register_unstructure_hook_factory(
        lambda t: t is cls, lambda _: make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=False)
    )


def _is_data(t: Any) -> bool:
    return t is Any or t is FrozenDict or getattr(t, "__origin__", None) is FrozenDict


converter.register_unstructure_hook_func(_is_data, encode_data)
converter.register_structure_hook_func(_is_data, lambda form, _: decode_data(form))
converter.register_unstructure_hook_func(lambda t: getattr(t, "__origin__", None) is frozenset, sorted)
converter.register_unstructure_hook(datetime, datetime.isoformat)
converter.register_structure_hook(datetime, lambda form, _: datetime.fromisoformat(form))
converter.register_unstructure_hook(bytes, lambda v: base64.b64encode(v).decode())
converter.register_structure_hook(bytes, lambda form, _: base64.b64decode(form))


def _unstructure_float(value: float) -> Any:
    return value if math.isfinite(value) else repr(value)


converter.register_unstructure_hook(float, _unstructure_float)

_CONTENT = str | tuple[Block, ...]
converter.register_structure_hook_func(
    lambda t: t == _CONTENT,
    lambda form, _: form if isinstance(form, str) else tuple(converter.structure(b, Block) for b in form),  # type: ignore[arg-type]
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
