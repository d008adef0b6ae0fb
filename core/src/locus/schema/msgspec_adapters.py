"""Types that msgspec does not take as they are, made known to it.

msgspec gives the schema and the conversion, and it is fast. It refuses unions of two classes, also within its own
classes and TypedDicts, it fills attrs classes without their converters, and it knows neither pydantic nor `pathlib`.
For each such type there is a `ClassAdapter`: a class that msgspec meets as a "custom type" and hands back to us, with a
schema and a loader of its own. pydantic is never imported: its models are recognised by their methods and served
through them.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping
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

from locus.core.patterns import Pattern
from locus.schema.checking import plain
from locus.schema.signatures import class_hints
from locus.schema.text import safe_repr

#: Gives the JSON Schema of a type as a part of the schema that is being made.
SchemaOf = Callable[[Any], dict[str, Any]]


@runtime_checkable
class SelfDescribing(Protocol):
    """A class that describes and checks itself, as pydantic models do. These two methods are all that is used."""

    def model_json_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `model_validate` takes."""

    def model_validate(self, data: Any, /) -> Any:
        """An instance from plain data; raises when the data does not fit."""


class ClassAdapter(type):
    """The class of adapters. What an adapter loads is not an instance of it, so it calls everything one."""

    describe: Callable[[SchemaOf], dict[str, Any]]
    load: Callable[[Any], Any]
    keys: frozenset[str] | None

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def _adapter(
    name: str,
    describe: Callable[[SchemaOf], dict[str, Any]],
    load: Callable[[Any], Any],
    keys: frozenset[str] | None = None,
) -> ClassAdapter:
    """A new adapter.

    Args:
        name: for error messages.
        describe: gives the JSON Schema.
        load: gives the value from plain data; raises when the data does not fit.
        keys: the keys it takes, when it takes an object.
    """
    return ClassAdapter(name, (), {"describe": staticmethod(describe), "load": staticmethod(load), "keys": keys})


# --- what msgspec calls ------------------------------------------------------------------------------


def convert(data: Any, annotation: Any) -> Any:
    """Strict conversion of plain data to an adapted type."""
    return msgspec.convert(data, annotation, str_keys=True, dec_hook=load_custom)


def load_custom(cls: Any, data: Any) -> Any:
    """The ``dec_hook`` of msgspec: whatever goes wrong is a ValueError, so that msgspec adds the path to it."""
    try:
        if isinstance(cls, ClassAdapter):
            return cls.load(data)
        return cls.model_validate(plain(data))
    except Exception as e:
        raise ValueError(_complaint(e)) from e


def _complaint(error: Exception) -> str:
    listing = getattr(error, "errors", None)
    if callable(listing):  # pydantic: one line per problem instead of its page
        try:
            return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in listing())
        except Exception:  # noqa: BLE001  it was not pydantic's `errors` after all
            return str(error)
    return str(error) or type(error).__name__


def schema_source(cls: Any) -> Callable[[SchemaOf], dict[str, Any]] | None:
    """What gives the schema of a type that is custom to msgspec, or None when nothing does."""
    if isinstance(cls, ClassAdapter):
        return cls.describe
    if isinstance(cls, type) and isinstance(cls, SelfDescribing):
        return lambda _: cls.model_json_schema()
    return None


def _text_like(base: Any, pattern: Pattern) -> ClassAdapter:
    """A text that matches a pattern. msgspec would ask Python's own engine, which a text can keep busy for ever."""

    def load(data: Any) -> Any:
        value = convert(data, base)
        if not pattern.matches(value):
            raise ValueError(f"expected a string that matches {pattern.expression!r}, got {safe_repr(value)}")
        return value

    return _adapter("str", lambda of: {**of(base), "pattern": pattern.expression}, load)


def _dict_of(key: ClassAdapter, value: Any) -> ClassAdapter:
    """A dict whose keys have an adapter, which msgspec does not ask about keys."""
    whole = types.GenericAlias(dict, (str, value))
    return _adapter(
        "object",
        lambda of: {**of(whole), "propertyNames": of(key)},
        lambda data: {convert(name, key): each for name, each in convert(data, whole).items()},
    )


# --- annotations -----------------------------------------------------------------------------------


def _path(cls: Callable[[str], Any]) -> ClassAdapter:
    return _adapter("path", lambda of: {**of(str), "format": "path"}, lambda data: cls(convert(data, str)))


_PATHS: dict[Any, ClassAdapter] = {cls: _path(cls) for cls in (Path, PurePath)}
# Shown to the model, not enforced: msgspec also takes a time without a zone, which RFC 3339 does not.
_HINTED: dict[Any, Any] = {
    datetime: Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})],
    time: Annotated[time, msgspec.Meta(extra_json_schema={"format": "time"})],
}
_LISTS = (collections.abc.Iterable, collections.abc.Reversible)
_UNIONS = (Union, types.UnionType)


def adapt(annotation: Any, *, cyclic: bool = False) -> Any:
    """The annotation with an adapter for whatever msgspec does not take; an equal one when it takes all.

    Args:
        annotation: a resolved annotation.
        cyclic: a class that needs an adapter and holds itself does so by its adapter; else it is left as it is
            within itself.
    """
    return _Walk(cyclic=cyclic).annotation(annotation)


class _Walk:
    """One walk through the types that an annotation is made of."""

    def __init__(self, *, cyclic: bool) -> None:
        self._cyclic = cyclic
        # The classes met so far, each with what replaces it; one that is being looked at, with itself or with the
        # adapter that it is going to have, so that a recursive class ends.
        self._seen: dict[Any, Any] = {}

    def annotation(self, annotation: Any) -> Any:
        if annotation is object:
            return Any
        if annotation in _LISTS:
            return list
        origin = get_origin(annotation)
        if origin is Annotated:
            return self._narrow(annotation)
        if origin in _UNIONS:
            return _union([self.annotation(arm) for arm in get_args(annotation)])
        if origin is None:
            return self._class(annotation) if isinstance(annotation, type) else annotation
        given = get_args(annotation)
        if origin is Literal or any(isinstance(a, list) for a in given):
            return annotation
        args = tuple(a if a is Ellipsis else self.annotation(a) for a in given)
        if origin in _LISTS:
            return types.GenericAlias(list, args)
        if origin is dict and isinstance(args[0], ClassAdapter):
            return _dict_of(args[0], args[1])
        return annotation if args == given else origin[args]

    def _narrow(self, annotation: Any) -> Any:
        base, facts = self.annotation(annotation.__origin__), constraints(annotation.__metadata__)
        pattern = facts.pop("pattern", None)
        about = {name: facts.pop(name) for name in ("description", "examples", "title") if name in facts}
        arms = [arm for arm in get_args(base) if arm is not type(None)]
        optional = (facts or pattern is not None) and get_origin(base) in _UNIONS and len(arms) == 1
        if optional:
            # A limit on an optional value is a limit on the value.
            base = arms[0]
        if facts and (optional or pattern is not None):
            base, facts = Annotated[base, msgspec.Meta(**facts)], {}
        if pattern is not None:
            base = _text_like(base, Pattern(pattern))
        if optional:
            base = Union[base, None]  # noqa: UP007  the type is known only here
        return Annotated[base, msgspec.Meta(**about, **facts)] if about or facts else base

    def _class(self, cls: Any) -> Any:
        if cls in _PATHS or cls in _HINTED:
            return _PATHS.get(cls) or _HINTED[cls]
        if cls not in self._seen:
            own = _kind_of_class(cls)
            if own is None:
                return cls
            self._seen[cls] = cls
            self._seen[cls] = self._ahead(cls, own) if self._cyclic else self._look_into(cls, own)
        return self._seen[cls]

    def _look_into(self, cls: Any, own: _Own) -> Any:
        try:
            hints, local = class_hints(cls)
        except Exception:  # noqa: BLE001  msgspec meets the same fault and names it
            return cls
        return own(cls, hints, local, self.annotation)

    def _ahead(self, cls: Any, own: _Own) -> Any:
        """The adapter of a class, in place before the class is looked into, so that the class may hold itself by it."""
        done: list[Any] = []
        ahead = _adapter(
            cls.__name__,
            lambda of: done[0].describe(of) if isinstance(done[0], ClassAdapter) else dict(of(done[0])),
            lambda data: convert(data, done[0]),
        )
        self._seen[cls] = ahead
        done.append(self._look_into(cls, own))
        keys = _keys(done[0])
        ahead.keys = None if keys is None else frozenset(keys)
        return cls if done[0] is cls else ahead


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
    either = _adapter(
        " | ".join(_name(arm) for arm in choices),
        lambda of: {"anyOf": [of(arm) for arm in choices]},
        lambda data: _first_that_fits(choices, data),
    )
    return Union[either, None] if len(choices) < len(arms) else either  # noqa: UP007


def _name(arm: Any) -> str:
    return str(getattr(arm, "__name__", arm))


def _first_that_fits(arms: list[Any], data: Any) -> Any:
    complaints = []
    for arm in sorted(arms, key=lambda arm: _surplus(arm, data)):
        try:
            return convert(data, arm)
        except Exception as e:  # noqa: BLE001  a class's own check may raise anything
            complaints.append(f"not {_name(arm)}: {e}")
    raise ValueError("; ".join(complaints))


def _surplus(arm: Any, data: Any) -> int:
    """How many keys an arm would drop: of two classes that both fit, the one that takes more of the data is meant."""
    keys = _keys(arm) if isinstance(data, dict) and isinstance(arm, type) else None
    return 0 if keys is None else len(data.keys() - keys)


def _keys(cls: Any) -> Iterable[str] | None:
    if isinstance(cls, ClassAdapter):
        return cls.keys
    if attrs.has(cls) or dataclasses.is_dataclass(cls):
        return {f.name for f in _fields(cls)}
    if is_typeddict(cls):
        return frozenset(cls.__required_keys__ | cls.__optional_keys__)
    found: Iterable[str] | None = getattr(cls, "model_fields", None) or getattr(cls, "__struct_encode_fields__", None)
    return found


# --- classes ---------------------------------------------------------------------------------------
# Each kind of class is looked into by one function, which gives the class itself where msgspec serves it well, and an
# adapter or another class where it does not. It gets the class, its type hints, whether these needed the names of a
# running function (which msgspec does not find), and what adapts an annotation.

_Own = Callable[[Any, Mapping[str, Any], bool, Callable[[Any], Any]], Any]

_AttrsFactory: Any = attrs.Factory
# Factories whose result a schema can show as the default.
_EMPTY = (list, dict, set)
_NO_DEFAULT = (attrs.NOTHING, dataclasses.MISSING, msgspec.NODEFAULT)


def _kind_of_class(cls: Any) -> _Own | None:
    if attrs.has(cls) or dataclasses.is_dataclass(cls):
        return _fields_class
    if is_typeddict(cls):
        return _typed_dict
    return _struct if issubclass(cls, msgspec.Struct) else None


def _typed_dict(cls: Any, hints: Mapping[str, Any], local: bool, adapted: Callable[[Any], Any]) -> Any:  # noqa: FBT001
    # Another TypedDict serves as well: both give plain dicts.
    fields, same = {}, True
    for name, hint in hints.items():
        needed, origin = name in cls.__required_keys__, get_origin(hint)
        if origin in (Required, NotRequired):  # what the class says of its keys is wrong where annotations are texts
            needed, hint = origin is Required, get_args(hint)[0]
        kind = adapted(hint)
        same = same and hint == kind
        fields[name] = kind if needed else NotRequired[kind]
    if same and not local:
        return cls
    make: Any = TypedDict
    made = make(cls.__name__, fields)
    made.__doc__ = cls.__doc__
    return made


def _struct(cls: Any, hints: Mapping[str, Any], local: bool, adapted: Callable[[Any], Any]) -> Any:  # noqa: FBT001
    config, names = cls.__struct_config__, cls.__struct_fields__
    kinds = {name: adapted(hints[name]) for name in names}
    # A tagged union tells its structs apart by a tag that an adapter does not have; an array has no names.
    if config.tag is not None or config.array_like:
        return cls
    if not local and all(hints[name] == kind for name, kind in kinds.items()):
        return cls
    # Not by `msgspec.structs.fields`, which does not know the names of a running function.
    defaults = (msgspec.NODEFAULT,) * (len(names) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
    members = {
        name: (kinds[name], default, getattr(default, "factory", None))
        for name, default in zip(names, defaults, strict=True)
    }
    renamed = dict(zip(names, cls.__struct_encode_fields__, strict=True))
    options = {"rename": renamed, "forbid_unknown_fields": config.forbid_unknown_fields}
    return _through_init(cls, members, {name: name for name in names}, renamed.values(), cls.__doc__, **options)


def _fields_class(cls: Any, hints: Mapping[str, Any], local: bool, adapted: Callable[[Any], Any]) -> Any:  # noqa: FBT001
    """An attrs class or a dataclass."""
    if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
        raise TypeError(f"{cls.__qualname__} has an InitVar, which is not a field; make it a field")
    every = _fields(cls)
    fields = [f for f in every if f.init]
    members = {f.name: (adapted(hints.get(f.name, Any)), f.default, _factory(f)) for f in fields}
    # Whether filling the fields, which is what msgspec does, differs from `cls(...)`, or hides a default.
    needs_init = hasattr(cls, "__pydantic_validator__") or any(
        not f.init or getattr(f, "converter", None) is not None or _factory(f) in _EMPTY for f in every
    )
    if not local and not needs_init and all(kind == hints.get(name) for name, (kind, _, _) in members.items()):
        return cls
    doc = cls.__doc__ or ""
    doc = None if doc.startswith(f"{cls.__name__}(") else doc  # what dataclass writes says nothing new
    return _through_init(cls, members, {f.name: getattr(f, "alias", None) or f.name for f in fields}, members, doc)


def _fields(cls: Any) -> tuple[Any, ...]:
    return attrs.fields(cls) if attrs.has(cls) else dataclasses.fields(cls)


def _factory(field: Any) -> Any:
    # attrs keeps a factory as the default, dataclass beside it.
    return (
        field.default.factory if isinstance(field.default, _AttrsFactory) else getattr(field, "default_factory", None)
    )


def _through_init(
    cls: Any,
    members: Mapping[str, tuple[Any, Any, Any]],
    arguments: Mapping[str, str],
    keys: Iterable[str],
    doc: str | None,
    **options: Any,
) -> ClassAdapter:
    """An adapter that fills a struct with the fields of a class, and calls the class with what that holds.

    Args:
        cls: the class.
        members: by field: its type, its default, and the factory of its default.
        arguments: by field: what the class calls it when it is made.
        keys: what the data calls the fields.
        doc: what a schema says of the class.
        options: of `msgspec.defstruct`.
    """
    fields = [(name, kind, *_default(default, factory)) for name, (kind, default, factory) in members.items()]
    namespace = {} if doc is None else {"__doc__": doc}
    mirror: Any = msgspec.defstruct(f"{cls.__name__}_", fields, kw_only=True, namespace=namespace, **options)

    def load(data: Any) -> Any:
        filled = convert(data, mirror)
        given = {argument: getattr(filled, name) for name, argument in arguments.items()}
        return cls(**{argument: value for argument, value in given.items() if value is not msgspec.UNSET})

    return _adapter(cls.__name__, lambda of: of(mirror), load, frozenset(keys))


def _default(default: Any, factory: Any) -> tuple[Any, ...]:
    """Nothing, a default that the schema can show, or one that leaves the field to the class."""
    if factory in _EMPTY:
        return (msgspec.field(default_factory=factory),)
    if any(default is each for each in _NO_DEFAULT) and factory in (None, dataclasses.MISSING):
        return ()
    if default is None or (type(default) is tuple and not default) or isinstance(default, str | int | float | Enum):
        return (default,)
    return (msgspec.field(default_factory=lambda: msgspec.UNSET),)
