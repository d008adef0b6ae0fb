"""Free-form data (metadata, arguments, extras) as JSON: lossless, or a typed error that names the place.

It has no type to go by, so what JSON cannot express (an integer key, a set, bytes, a date, NaN) is tagged:
``{"$": tag, "v": form}``. Sequences are frozen to tuples when data enters a state, therefore a JSON array always
reads back as one.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from locus.core.errors import CheckpointError, NotSerialisable
from locus.core.frozen import VALUES, FrozenDict

T = TypeVar("T")

_VALUES: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any], bool]] = {}
_TAGS: dict[str, tuple[Callable[[Any], Any], bool]] = {}

#: Where the kernel registers values of its own: a program that only reads a journal has imported none of that.
_HOMES = {
    "locus.call": "locus.tools.outcome",
    "locus.called": "locus.models.call",
    "locus.cancel": "locus.core.directives",
    "locus.revise": "locus.core.directives",
    "locus.spent": "locus.models.call",
}


def register_value(
    cls: type[T], tag: str, to_data: Callable[[T], Any], from_data: Callable[[Any], T], *, plain: bool = False
) -> None:
    """Allow values of a class in ``metadata`` and other free-form data.

    Args:
        cls: the exact class; subclasses are registered on their own.
        tag: its name in the JSON form, unique and kept for ever (``"mypackage.Money"``).
        to_data: to plain data (which may hold other registered values).
        from_data: back.
        plain: what ``to_data`` gives, and ``from_data`` takes, is JSON such as `locus.core.codec.encode` makes.

    Raises:
        ValueError: another class has the tag.
    """
    if tag in _TAGS and (cls not in _VALUES or _VALUES[cls][0] != tag):
        raise ValueError(f"the tag {tag!r} is taken; choose one that starts with your package's name")
    _VALUES[cls] = (tag, to_data, from_data, plain)
    _TAGS[tag] = from_data, plain
    if not issubclass(cls, Mapping | list | set):
        VALUES.add(cls)


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
        return [v if type(v) in _ATOMS else encode_data(v, f"{path}[{i}]") for i, v in enumerate(value)]
    if kind is FrozenDict or kind is dict:
        if "$" not in value and all(type(k) is str for k in value):
            # Most are atoms: neither a call nor a path is made for one.
            return {k: v if type(v) in _ATOMS else encode_data(v, f"{path}[{k!r}]") for k, v in value.items()}
        pairs = [[encode_data(k, f"{path} key"), encode_data(v, f"{path}[{k!r}]")] for k, v in value.items()]
        return {"$": "map", "v": pairs}
    if kind in _VALUES:
        tag, to_data, _, plain = _VALUES[kind]
        return {"$": tag, "v": to_data(value) if plain else encode_data(to_data(value), path)}
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
        return tuple([v if type(v) in _ATOMS else decode_data(v) for v in form])
    if isinstance(form, dict):
        if "$" not in form:
            return FrozenDict({k: v if type(v) in _ATOMS else decode_data(v) for k, v in form.items()})
        tag, inner = form["$"], form.get("v")
        if tag == "map" and isinstance(inner, list):
            return FrozenDict((decode_data(k), decode_data(v)) for k, v in inner)
        if tag == "float":
            return float(str(inner))
        if tag not in _TAGS and tag in _HOMES:
            import_module(_HOMES[tag])
        if tag in _TAGS:
            from_data, plain = _TAGS[tag]
            return from_data(inner if plain else decode_data(inner))
        raise CheckpointError("", f"the tag {tag!r} is not registered; import the package that registers it first")
    return form


# -- typed values -----------------------------------------------------------------------------------------------------
# Their converter is loaded when something is first encoded. What a module has to say of the forms of its classes waits
# for it here, so that the converter needs none of the modules that need it.

_waiting: list[Callable[[ModuleType], None]] = []
_converters: list[ModuleType] = []


def declare_forms(declare: Callable[[ModuleType], None]) -> None:
    """Have the JSON forms of some classes declared to the converter, now or when it is loaded.

    Args:
        declare: gets `locus.core.codec`.
    """
    _waiting.append(declare)
    for codec in _converters:
        declare(codec)


def take_forms(codec: ModuleType) -> None:
    """Let all forms be declared to a converter; for that module alone."""
    _converters.append(codec)
    for declare in _waiting:
        declare(codec)


def tag_of(cls: type, suffix: str = "") -> str:
    """The name of a class in snake case, less a suffix: its tag in JSON."""
    name = cls.__name__.removesuffix(suffix)
    return "".join(f"_{c}" if at and "A" <= c <= "Z" else c for at, c in enumerate(name)).lower()
