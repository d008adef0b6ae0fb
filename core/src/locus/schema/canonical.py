"""Canonical forms: the JSON that says what a value is, and the dedup key of a call, a hash of canonical bytes.

Two calls that mean the same have the same key, whatever the order of their arguments; two that differ never do.
It is computed for every call, so the common case is one pass of msgspec, and it cannot fail. The bytes are MessagePack
and not JSON because JSON has no NaN and no infinity: there they would need a second look at every float.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import attrs
import msgspec
from msgspec import UNSET


def call_key(name: str, arguments: Any) -> str:
    """The key of a call: 32 hex digits.

    Args:
        name: of the tool.
        arguments: plain data, or a msgspec Struct of it.
    """
    return _hash(_begin(name) + canonical(arguments))


def exact_key(name: str, arguments: Any) -> str:
    """The same where 1 and 1.0 are different; only zero is the same with either sign.

    That is enough, and quicker, where each number has one type: under annotations that say which, or to find out
    whether data was changed.
    """
    try:
        data = _encode(arguments)
        if _FLOAT in data and _NEGATIVE_ZERO in data:
            data = _encode(_with_floats(arguments, lambda n: n or 0.0))
    except Exception:  # noqa: BLE001  as in `canonical`
        data = _tokens(arguments)
    return _hash(_begin(name) + data)


@lru_cache(maxsize=256)
def _begin(name: str) -> bytes:
    tool = name.encode("utf-8", "surrogatepass")
    return b"%d:%s" % (len(tool), tool)


@lru_cache(maxsize=2)  # of a call as the model made it, and with the defaults filled in: mostly the same
def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _by_type(value: Any) -> str:
    # Only a parameter's default can be an object without a JSON form; no argument of a model equals it.
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


_encode = msgspec.msgpack.Encoder(order="sorted", enc_hook=_by_type).encode
# What begins a float, and what -0.0 is.
_FLOAT, _NEGATIVE_ZERO = 0xCB, b"\xcb\x80\0\0\0\0\0\0\0"


def canonical(value: Any) -> bytes:
    """Bytes that are equal exactly when the values are: 1 and 1.0 are, True and 1 are not.

    Args:
        value: plain data, or a msgspec Struct of it.
    """
    try:
        data = _encode(value)
        # The mark may be a part of something else: then there is nothing to change, and the bytes are the same.
        return data if _FLOAT not in data else _encode(_with_floats(value, lambda n: int(n) if n.is_integer() else n))
    except Exception:  # noqa: BLE001  lone surrogates, huge integers, keys that are not strings, great depth
        return _tokens(value)


def _with_floats(value: Any, change: Callable[[float], float]) -> Any:
    if type(value) is float:
        return change(value)
    if isinstance(value, msgspec.Struct):
        return {name: _with_floats(getattr(value, name), change) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {name: _with_floats(each, change) for name, each in value.items()}
    if isinstance(value, Set):
        return {_with_floats(each, change) for each in value}
    return [_with_floats(each, change) for each in value] if isinstance(value, list | tuple) else value


def _tokens(value: Any) -> bytes:
    """The same for what msgspec cannot write: type, length and content of each value, without recursion."""
    digest, todo = blake2b(digest_size=32), [value]
    while todo:
        it = todo.pop()
        if isinstance(it, msgspec.Struct):
            it = msgspec.structs.asdict(it)
        if isinstance(it, Mapping):
            items = sorted(((_atom(k), v) for k, v in it.items()), key=itemgetter(0))
            text = b"{%d" % len(items) + b"".join(k for k, _ in items)
            todo += [v for _, v in items]
        elif isinstance(it, list | tuple):
            text = b"[%d" % len(it)
            todo += it
        elif isinstance(it, Set):
            members = sorted(map(_tokens, it))
            text = b"(%d" % len(members) + b"".join(members)
        else:
            text = _atom(it)
        digest.update(text)
    return digest.digest()


def _atom(value: Any) -> bytes:
    if type(value) is float and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
    elif value is None or isinstance(value, int | float):
        text = hex(value).encode() if type(value) is int else repr(value).encode()
    else:
        try:
            text = _encode(value)
        except Exception:  # noqa: BLE001  as in `canonical`
            text = _by_type(value).encode()
    return b"%s:%d:%s" % (type(value).__name__.encode(), len(text), text)


# --- values as JSON ----------------------------------------------------------------------------------

_MINUTE = timedelta(minutes=1)

#: No data was given for a value.
MISSING: Any = object()

_ATOMS = frozenset((str, int, bool, type(None)))
#: Factories of defaults that give the same each time, and the marks of a default without a factory.
_CONSTANT = (None, dataclasses.MISSING, msgspec.NODEFAULT, list, dict, set, frozenset, tuple)


def json_form(value: Any, given: Any = MISSING) -> Any:
    """The canonical JSON of a value: equal values have equal forms, and converting the form gives an equal value.

    An instant is in UTC, a decimal without needless zeros, a set sorted, a class an object with its fields. What a
    class generates by itself (an id, the time) is left out unless it was given: the same call would differ each time.

    Args:
        value: what arguments were converted to.
        given: the data that it was made from. It is the form of an object of another kind, such as a secret.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is float:
        return value or 0.0  # -0.0 is 0.0
    make = _FORMS.get(kind)
    if make is not None:
        return make(value)
    if isinstance(value, Enum):
        return json_form(value.value)
    if isinstance(value, Mapping):
        inner = given if isinstance(given, Mapping) else {}
        named = ((_key_text(key), each) for key, each in value.items())
        return {key: json_form(each, inner.get(key, MISSING)) for key, each in named}
    if isinstance(value, list | tuple):
        parallel = isinstance(given, list | tuple) and len(given) == len(value)
        return [json_form(each, given[i] if parallel else MISSING) for i, each in enumerate(value)]
    if isinstance(value, Set):
        return sorted(map(json_form, value), key=canonical)
    fields = _fields_of(value)
    if fields is not None:
        inner = given if isinstance(given, Mapping) else {}
        return {
            name: json_form(each, inner.get(name, MISSING))
            for name, each, factory in fields
            if name in inner or factory in _CONSTANT
        }
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        return msgspec.to_builtins(value)
    except Exception:  # noqa: BLE001  an object of any class
        return _by_type(value) if given is MISSING else given


def plain_form(values: msgspec.Struct) -> dict[str, Any]:
    """The same for values of which each type has one form, all of them at once."""
    form: dict[str, Any] = msgspec.structs.asdict(values)
    if _ATOMS.issuperset(map(type, form.values())):
        return form
    try:
        form = msgspec.to_builtins(values, order="deterministic", str_keys=True, enc_hook=_by_type)
    except Exception:  # noqa: BLE001  as in `canonical`
        form = {name: json_form(getattr(values, name)) for name in values.__struct_fields__}
    return form


def _key_text(key: Any) -> str:
    form = json_form(key)
    return form if isinstance(form, str) else msgspec.json.encode(form).decode()


def _datetime(value: datetime) -> str:
    with contextlib.suppress(OverflowError):  # the first and the last day of all
        value = value if value.tzinfo is None else value.astimezone(UTC)
    return str(msgspec.to_builtins(value))


def _time(value: time) -> str:
    offset = value.utcoffset()
    if offset is None:
        return value.isoformat()
    # Of equal times the one with the least offset: in UTC unless that is another day.
    minutes = value.hour * 60 + value.minute - offset // _MINUTE
    shown = min(max(minutes, 0), 24 * 60 - 1)
    sign, east = ("-", minutes - shown) if minutes > shown else ("+", shown - minutes)
    text = value.replace(hour=shown // 60, minute=shown % 60, tzinfo=None).isoformat()
    return f"{text}{sign}{east // 60:02}:{east % 60:02}"


#: Rounds nothing, however many digits there are.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return str(value)
    least = value.normalize(_EXACT)
    if not least:
        return "0"
    return format(least, "f") if -30 < least.adjusted() < 30 else str(least)


_FORMS: dict[type, Callable[[Any], Any]] = {datetime: _datetime, time: _time, Decimal: _decimal}


def _fields_of(value: Any) -> Iterable[tuple[str, Any, Any]] | None:
    """The fields of an instance by their names in JSON, each with the factory of its default; None without fields."""
    kind: Any = type(value)
    if isinstance(value, msgspec.Struct) and not kind.__struct_config__.array_like:
        config, names, defaults = kind.__struct_config__, kind.__struct_fields__, kind.__struct_defaults__
        factories = [None] * (len(names) - len(defaults)) + [getattr(each, "factory", None) for each in defaults]
        values = (getattr(value, name) for name in names)
        found = [
            each for each in zip(kind.__struct_encode_fields__, values, factories, strict=True) if each[1] is not UNSET
        ]
        return found if config.tag is None else [(config.tag_field, config.tag, None), *found]
    if attrs.has(kind):
        return [
            (f.name, getattr(value, f.name), getattr(f.default, "factory", None)) for f in attrs.fields(kind) if f.init
        ]
    if dataclasses.is_dataclass(kind):
        return [(f.name, getattr(value, f.name), f.default_factory) for f in dataclasses.fields(kind) if f.init]
    model = getattr(kind, "model_fields", None)  # pydantic
    if not isinstance(model, Mapping):
        return None
    named = {name: f.validation_alias or f.alias for name, f in model.items()}
    own = [
        (named[name] if isinstance(named[name], str) else name, getattr(value, name), f.default_factory)
        for name, f in model.items()
    ]
    return own + [(name, each, None) for name, each in (getattr(value, "model_extra", None) or {}).items()]
