"""Types that msgspec does not take as they are, made known to it.

msgspec gives the schema and the conversion, and it is fast. It refuses unions of two classes, also within its own
classes and TypedDicts, it fills attrs classes without their converters, and it knows neither pydantic nor `pathlib`.
For each such type there is a *stand-in*: a class that msgspec meets as "custom" and hands back to us, with a schema and
a loader of its own. pydantic is never imported: its models are recognised by their methods and served through them.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
from collections.abc import Callable, Iterable
from datetime import datetime, time
from enum import Enum
from pathlib import Path, PurePath
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    Required,
    TypedDict,
    Union,
    get_args,
    get_origin,
    is_typeddict,
    runtime_checkable,
)

import attrs
import msgspec

from locus.schema.annotations import class_hints
from locus.schema.lenient import plain

__all__ = [
    "Loadable",
    "SchemaOf",
    "constraints",
    "convert",
    "describe_foreign",
    "load_foreign",
    "portable",
    "portable_within",
]

#: Gives the JSON Schema of a type as a part of the schema that is being made.
SchemaOf = Callable[[Any], dict[str, Any]]


@runtime_checkable
class Loadable(Protocol):
    """A class that describes and checks itself, as pydantic models do. These two methods are all that is used."""

    def model_json_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `model_validate` takes."""
        ...

    def model_validate(self, data: Any, /) -> Any:
        """An instance from plain data; raises when the data does not fit."""
        ...


class StandIn(type):
    """The class of stand-ins. What a stand-in loads is no instance of it, so it calls everything one."""

    describe: Callable[[SchemaOf], dict[str, Any]]
    load: Callable[[Any], Any]
    names: frozenset[str] | None

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def stand_in(
    name: str,
    describe: Callable[[SchemaOf], dict[str, Any]],
    load: Callable[[Any], Any],
    names: frozenset[str] | None = None,
) -> StandIn:
    """A new stand-in.

    Args:
        name: for error messages.
        describe: gives the JSON Schema.
        load: gives the value from plain data; raises when the data does not fit.
        names: the keys it takes, when it takes an object.
    """
    members = {"describe": staticmethod(describe), "load": staticmethod(load), "names": names}
    return StandIn(name, (), members)


def convert(data: Any, annotation: Any) -> Any:
    """Strict conversion of plain data to a portable type."""
    return msgspec.convert(data, annotation, dec_hook=load_foreign)


def load_foreign(cls: Any, data: Any) -> Any:
    """The ``dec_hook`` of msgspec: whatever goes wrong is a ValueError, so that msgspec adds the path to it."""
    try:
        if isinstance(cls, StandIn):
            return cls.load(data)
        return cls.model_validate(plain(data))
    except Exception as e:
        raise ValueError(_complaint(e)) from e


def _complaint(error: Exception) -> str:
    listing = getattr(error, "errors", None)
    if callable(listing):  # pydantic: one line a problem instead of its page
        try:
            return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in listing())
        except Exception:  # noqa: BLE001  it was not pydantic's `errors` after all
            return str(error)
    return str(error) or type(error).__name__


def describe_foreign(cls: Any) -> Callable[[SchemaOf], dict[str, Any]] | None:
    """What gives the schema of a type that is custom to msgspec, or None when nothing does."""
    if isinstance(cls, StandIn):
        return cls.describe
    if isinstance(cls, type) and isinstance(cls, Loadable):
        return lambda _: cls.model_json_schema()
    return None


# --- annotations -----------------------------------------------------------------------------------


def _path(cls: Callable[[str], Any]) -> StandIn:
    return stand_in("path", lambda of: {**of(str), "format": "path"}, lambda data: cls(convert(data, str)))


_PATHS: dict[Any, StandIn] = {cls: _path(cls) for cls in (Path, PurePath)}
# Told to the model, not enforced: msgspec also takes a time without a zone, which RFC 3339 does not.
_HINTED: dict[Any, Any] = {
    datetime: Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})],
    time: Annotated[time, msgspec.Meta(extra_json_schema={"format": "time"})],
}
_LISTS = (collections.abc.Iterable, collections.abc.Reversible)
# Factories whose result a schema can show as the default.
_EMPTY = (list, dict, set)
_AttrsFactory: Any = attrs.Factory
_UNIONS = (Union, types.UnionType)


#: Among the classes looked at: each gets a stand-in before it is looked at.
_AHEAD = "ahead"


def portable_within(annotation: Any) -> Any:
    """As `portable`, for classes that msgspec does not take and that hold themselves: they do so by their stand-ins."""
    return portable(annotation, {_AHEAD: True})


def portable(annotation: Any, seen: dict[Any, Any] | None = None) -> Any:
    """The annotation with a stand-in for whatever msgspec does not take; an equal one when it takes all.

    Args:
        annotation: a resolved annotation.
        seen: the classes looked at so far, with what stands for them; one that is being looked at stands for
            itself, so that a recursive class ends.
    """
    seen = {} if seen is None else seen
    if annotation is object:
        return Any
    if annotation in _LISTS:
        return list
    origin = get_origin(annotation)
    if origin is Annotated:
        return _annotated(annotation, seen)
    if origin in _UNIONS:
        return _union([portable(arm, seen) for arm in get_args(annotation)])
    if origin is None:
        return _class(annotation, seen) if isinstance(annotation, type) else annotation
    given = get_args(annotation)
    if origin is Literal or any(isinstance(a, list) for a in given):
        return annotation
    args = tuple(a if a is Ellipsis else portable(a, seen) for a in given)
    if origin in _LISTS:
        return types.GenericAlias(list, args)
    return annotation if args == given else origin[args]


def _annotated(annotation: Any, seen: dict[Any, Any]) -> Any:
    base, facts = portable(annotation.__origin__, seen), constraints(annotation.__metadata__)
    about = {name: facts.pop(name) for name in ("description", "examples", "title") if name in facts}
    arms = [arm for arm in get_args(base) if arm is not type(None)]
    if facts and get_origin(base) in _UNIONS and len(arms) == 1:
        # A limit on an optional value is a limit on the value.
        base, facts = Annotated[arms[0], msgspec.Meta(**facts)] | None, {}
    return Annotated[base, msgspec.Meta(**about, **facts)] if about or facts else base


_LIMITS: dict[str, tuple[type, ...]] = {
    "gt": (int, float),
    "ge": (int, float),
    "lt": (int, float),
    "le": (int, float),
    "multiple_of": (int, float),
    "min_length": (int,),
    "max_length": (int,),
    "pattern": (str,),
    "description": (str,),
    "documentation": (str,),
}
_OF_META = (*_LIMITS, "tz", "title", "examples", "extra_json_schema", "extra")


def constraints(metadata: Iterable[Any]) -> dict[str, Any]:
    """What the metadata of an `Annotated` says, as arguments of `msgspec.Meta`.

    A plain string is a description. Beside `msgspec.Meta`, whatever carries attributes of the usual names is
    understood: annotated-types, `typing_extensions.Doc`, pydantic's `Field`.
    """
    found: dict[str, Any] = {}
    for each in metadata:
        if isinstance(each, str):
            found["description"] = each
        elif isinstance(each, msgspec.Meta):
            found.update({name: v for name in _OF_META if (v := getattr(each, name, None)) is not None})
        elif not isinstance(each, type):
            nested = getattr(each, "metadata", None)
            if isinstance(nested, list | tuple):
                found.update(constraints(nested))
            for name, kinds in _LIMITS.items():
                value = getattr(each, name, None)
                if isinstance(value, kinds) and not isinstance(value, bool):
                    found["description" if name == "documentation" else name] = value
    return found


# --- unions ----------------------------------------------------------------------------------------


def _union(arms: list[Any]) -> Any:
    union: Any = Union[tuple(arms)]  # noqa: UP007  the arms are known only here
    try:
        msgspec.json.Decoder(union)
    except TypeError as e:
        if not str(e).startswith(("Type unions", "If a type union")):
            return union  # another fault, which is named where it is met
    else:
        return union
    choices = [arm for arm in arms if arm is not type(None)]
    either = stand_in(
        " | ".join(_called(arm) for arm in choices),
        lambda of: {"anyOf": [of(arm) for arm in choices]},
        lambda data: _first_that_fits(choices, data),
    )
    return Union[either, None] if len(choices) < len(arms) else either  # noqa: UP007


def _called(arm: Any) -> str:
    return str(getattr(arm, "__name__", arm))


def _first_that_fits(arms: list[Any], data: Any) -> Any:
    complaints = []
    for arm in sorted(arms, key=lambda arm: _surplus(arm, data)):
        try:
            return convert(data, arm)
        except Exception as e:  # noqa: BLE001  a class's own check may raise anything
            complaints.append(f"not {_called(arm)}: {e}")
    raise ValueError("; ".join(complaints))


def _surplus(arm: Any, data: Any) -> int:
    """How many keys an arm would drop: of two classes that both fit, the one that takes more of the data is meant."""
    names = _keys(arm) if isinstance(data, dict) and isinstance(arm, type) else None
    return 0 if names is None else len(data.keys() - names)


def _keys(cls: Any) -> Iterable[str] | None:
    if isinstance(cls, StandIn):
        return cls.names
    if attrs.has(cls) or dataclasses.is_dataclass(cls):
        return {f.name for f in _fields(cls)}
    if is_typeddict(cls):
        return frozenset(cls.__required_keys__ | cls.__optional_keys__)
    found: Iterable[str] | None = getattr(cls, "model_fields", None) or getattr(cls, "__struct_encode_fields__", None)
    return found


# --- classes ---------------------------------------------------------------------------------------


def _class(cls: Any, seen: dict[Any, Any]) -> Any:
    if cls in _PATHS or cls in _HINTED:
        return _PATHS.get(cls) or _HINTED[cls]
    if attrs.has(cls) or dataclasses.is_dataclass(cls):
        own = _own_class
    elif is_typeddict(cls):
        own = _typed_dict
    elif issubclass(cls, msgspec.Struct):
        own = _struct
    else:
        return cls
    if cls not in seen:
        if _AHEAD in seen:
            seen[cls] = _ahead(cls, own, seen)
        else:
            seen[cls] = cls
            seen[cls] = own(cls, seen)
    return seen[cls]


def _ahead(cls: Any, own: Callable[[Any, dict[Any, Any]], Any], seen: dict[Any, Any]) -> Any:
    """What stands for a class, also where the class stands in itself."""
    done: list[Any] = []
    ahead = stand_in(
        cls.__name__,
        lambda of: done[0].describe(of) if isinstance(done[0], StandIn) else dict(of(done[0])),
        lambda data: convert(data, done[0]),
    )
    seen[cls] = ahead
    done.append(own(cls, seen))
    names = _keys(done[0])
    ahead.names = None if names is None else frozenset(names)
    return cls if done[0] is cls else ahead


def _typed_dict(cls: Any, seen: dict[Any, Any]) -> Any:
    """The class, or another one whose fields are portable: both give plain dicts."""
    try:
        hints, local = class_hints(cls)
    except Exception:  # noqa: BLE001  msgspec meets the same fault and names it
        return cls
    fields = {}
    for name, hint in hints.items():
        needed, origin = name in cls.__required_keys__, get_origin(hint)
        if origin in (Required, NotRequired):  # what the class says of its keys is wrong where annotations are texts
            needed, hint = origin is Required, get_args(hint)[0]
        carried = portable(hint, seen)
        fields[name] = (hint, carried, carried if needed else NotRequired[carried])
    if not local and all(hint == carried for hint, carried, _ in fields.values()):
        return cls
    make: Any = TypedDict
    made = make(cls.__name__, {name: field for name, (_, _, field) in fields.items()})
    made.__doc__ = cls.__doc__
    return made


def _struct(cls: Any, seen: dict[Any, Any]) -> Any:
    """The class, or a stand-in whose fields are portable."""
    config = cls.__struct_config__
    try:
        hints, local = class_hints(cls)
    except Exception:  # noqa: BLE001  msgspec meets the same fault and names it
        return cls
    carried = {name: portable(hints[name], seen) for name in cls.__struct_fields__}
    # One of a tagged union is told by its tag, which a stand-in has not; an array has no names.
    if config.tag is not None or config.array_like:
        return cls
    if not local and all(hints[name] == each for name, each in carried.items()):
        return cls
    # Not by `msgspec.structs.fields`, which does not know the names of a running function.
    defaults = (msgspec.NODEFAULT,) * (len(carried) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
    members = [
        (name, each, *(() if default is msgspec.NODEFAULT else (_struct_default(default),)))
        for (name, each), default in zip(carried.items(), defaults, strict=True)
    ]
    names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    mirror: Any = msgspec.defstruct(
        f"{cls.__name__}_",
        members,
        kw_only=True,
        rename=names,
        forbid_unknown_fields=config.forbid_unknown_fields,
        namespace={"__doc__": cls.__doc__},
    )

    def load(data: Any) -> Any:
        filled = convert(data, mirror)
        given = {name: getattr(filled, name) for name in carried}
        return cls(**{name: value for name, value in given.items() if value is not msgspec.UNSET})

    return stand_in(cls.__name__, lambda of: of(mirror), load, frozenset(names.values()))


def _struct_default(default: Any) -> Any:
    factory = getattr(default, "factory", None)
    if factory in _EMPTY:
        return msgspec.field(default_factory=factory)
    if default is None or isinstance(default, str | int | float | Enum):
        return default
    return msgspec.field(default_factory=lambda: msgspec.UNSET)


def _own_class(cls: Any, seen: dict[Any, Any]) -> Any:
    try:
        hints, local = class_hints(cls)
    except Exception:  # noqa: BLE001  msgspec meets the same fault and names it
        return cls
    if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
        raise TypeError(f"{cls.__qualname__} has an InitVar, which is no field; make it a field")
    fields = _fields(cls)
    carried = {f.name: portable(hints.get(f.name, Any), seen) for f in fields if f.init}
    if not local and not _needs_its_init(cls, fields) and all(t == hints.get(n) for n, t in carried.items()):
        return cls
    return _through_init(cls, fields, carried)


def _fields(cls: Any) -> tuple[Any, ...]:
    return attrs.fields(cls) if attrs.has(cls) else dataclasses.fields(cls)


def _needs_its_init(cls: Any, fields: tuple[Any, ...]) -> bool:
    """Whether filling the fields, which is what msgspec does, differs from ``cls(...)``, or hides a default."""
    return hasattr(cls, "__pydantic_validator__") or any(
        not f.init or getattr(f, "converter", None) is not None or _factory(f) in _EMPTY for f in fields
    )


def _factory(field: Any) -> Any:
    # attrs keeps a factory as the default, dataclass beside it.
    if isinstance(field.default, _AttrsFactory):
        return field.default.factory
    return getattr(field, "default_factory", None)


def _through_init(cls: Any, fields: tuple[Any, ...], carried: dict[str, Any]) -> StandIn:
    members = [
        (f.name, carried[f.name], *(() if _required(f) else (_default(f),))) for f in fields if f.name in carried
    ]
    doc = cls.__doc__ or ""
    described = {} if doc.startswith(f"{cls.__name__}(") else {"__doc__": doc}  # what dataclass writes says nothing new
    mirror: Any = msgspec.defstruct(f"{cls.__name__}_", members, kw_only=True, namespace=described)
    arguments = [(f.name, getattr(f, "alias", None) or f.name) for f in fields if f.name in carried]

    def load(data: Any) -> Any:
        filled = convert(data, mirror)
        given = {alias: getattr(filled, name) for name, alias in arguments}
        return cls(**{alias: value for alias, value in given.items() if value is not msgspec.UNSET})

    return stand_in(cls.__name__, lambda of: of(mirror), load, frozenset(carried))


def _required(field: Any) -> bool:
    if isinstance(field, attrs.Attribute):
        return field.default is attrs.NOTHING
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: Any) -> Any:
    """A default that the schema can show, or one that leaves the field to the class."""
    default = field.default
    if default is None or (type(default) is tuple and not default) or isinstance(default, str | int | float | Enum):
        return default
    if _factory(field) in _EMPTY:
        return msgspec.field(default_factory=_factory(field))
    return msgspec.field(default_factory=lambda: msgspec.UNSET)
