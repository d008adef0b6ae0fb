"""Frozen values: containers that are frozen all the way down, and the decorator that makes the kernel's classes.

What an event or a state shows cannot be changed by the code that reads it. A `FrozenDict` is still a dict: it
serialises, unpacks and compares as one; only its mutators refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import attrs

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
Class = TypeVar("Class", bound=type)

if TYPE_CHECKING:
    from attrs import frozen as frozen
else:

    def frozen(cls=None, **options):
        """`attrs.frozen`, made cheaply: attrs finishes a class when it is first used.

        attrs writes and compiles the methods of each class and describes each of its fields, which is most of what
        making a class costs; the kernel has more than a hundred, and a program uses some of them: it was the largest
        part of the start of a process. Here a class gets its slots and one ``__eq__``, ``__hash__`` and ``__repr__``
        that all classes share; its ``__init__`` is written for the first instance, and what else attrs makes appears
        when it is asked for. Compared, hashed, shown, made and described is the same as with attrs; what that cannot
        be said of is left to attrs.
        """
        if cls is None:
            return lambda decorated: frozen(decorated, **options)
        own = vars(cls)
        for each in own.values():
            if type(each) is _FIELD:  # `tuple[str, ...]` is for type checkers: `tuple` does the same ten times as fast
                each.converter = getattr(each.converter, "__origin__", each.converter)
        if options.keys() & _LEFT_TO_ATTRS or issubclass(cls, BaseException) or "__slots__" in own:
            return attrs.frozen(cls, **options)
        methods = {"__repr__": _repr} if options.pop("repr", True) and "__repr__" not in own else {}
        if options.pop("eq", True) and "__eq__" not in own:
            methods |= {"__eq__": _eq} if "__hash__" in own else {"__eq__": _eq, "__hash__": _hash}
        options |= {"eq": False, "repr": False}
        if options.get("slots", True) and not any(map(_names_its_class, own.values())):
            return _Unfinished(cls, methods, options).cls
        made = attrs.frozen(cls, **options)
        for name, method in methods.items():
            setattr(made, name, method)
        return made


_LEFT_TO_ATTRS = frozenset({"cache_hash", "cmp", "hash", "order", "str", "unsafe_hash"})

#: What attrs adds to a class that it makes, but for what is shared here.
_ADDED = ("__init__", "__attrs_attrs__", "__match_args__", "__getstate__", "__setstate__")


class _Unfinished:
    """A class with its slots, and what attrs needs to make the rest of it."""

    __slots__ = ("_body", "_options", "cls")

    def __init__(self, cls: Any, methods: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self._options = options
        self._body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        fields = {
            name: (annotation, self._body.get(name, attrs.NOTHING), options.get("kw_only", False))
            for name, annotation in self._body.get("__annotations__", {}).items()
            if not str(annotation).startswith(_CLASS_VAR)
        }
        taken: set[str] = {"__weakref__"} if hasattr(cls.__base__, "__weakref__") else set()
        for base in cls.__mro__[1:-1]:
            taken.update(getattr(base, "__slots__", ()))
        body = {k: v for k, v in self._body.items() if k not in fields} | {**_FROZEN, **methods}
        body["__slots__"] = tuple([name for name in (*fields, "__weakref__") if name not in taken])
        for name in _ADDED:
            if name == "__init__" and (name in body or options.get("init") is False):
                name = "__attrs_init__"
            body.setdefault(name, _Added(self, name))
        body["__qualname__"] = cls.__qualname__
        self.cls = type(cls)(cls.__name__, cls.__bases__, body)
        _OWN_FIELDS[self.cls] = fields

    def initialise(self) -> None:
        """Give the class an ``__init__``, and no more than that where it can be written here."""
        written = _written_init(self.cls)
        if written is None:
            self.finish()
        else:
            self.cls.__init__ = written

    def finish(self) -> None:
        """Have attrs make a class of the same body, and take from it what this one lacks.

        Two threads that come here at once do the same.
        """
        cls = self.cls
        made = attrs.frozen(type(cls)(cls.__name__, cls.__bases__, dict(self._body)), **self._options)
        for name, value in vars(made).items():
            if isinstance(vars(cls).get(name), _Added):
                setattr(cls, name, value)


class _Added:
    """Takes the place of an attribute of a class until that is asked for, which finishes the class."""

    __slots__ = ("_name", "_unfinished")

    def __init__(self, unfinished: _Unfinished, name: str) -> None:
        self._unfinished, self._name = unfinished, name

    def __get__(self, value: Any, cls: type | None = None) -> Any:
        if value is None or self._name != "__init__":
            self._unfinished.finish()
        else:
            self._unfinished.initialise()
        found = vars(self._unfinished.cls)[self._name]
        return found.__get__(value, cls) if hasattr(found, "__get__") else found


#: The fields that each class adds to those of its bases, by name: annotation, default or `attrs.field`, keyword-only.
_OWN_FIELDS: dict[type, dict[str, tuple[Any, Any, bool]]] = {}

_NOTHING = attrs.NOTHING
_FIELD: Any = type(attrs.field())
_FACTORY: Any = type(attrs.Factory(list))


#: The classes with a fast ``__init__``, and what makes their instances, which is written with it.
_MAKERS: dict[Any, Any] = {}


def fast_init(cls: Class) -> Class:
    """Give a frozen class an ``__init__`` that costs a third: for the values that every iteration makes several of.

    The one that attrs writes has to go around the ``__setattr__`` of the class for each field. This one lets the new
    object be one of a twin class that is not frozen, sets its fields like those of any object, and freezes it by giving
    it its class. The default of a field is converted once.

    Raises:
        TypeError: `frozen` did not make the class, or its ``__init__`` does more than set fields: it has validators
            or ``__attrs_post_init__``.
    """
    if cls not in _OWN_FIELDS or _plain_fields(cls) is None or hasattr(cls, "__attrs_post_init__"):
        raise TypeError(f"making a {cls.__qualname__} is more than setting fields; leave its __init__ to attrs")
    _MAKERS[cls] = None
    return cls


def maker(cls: Callable[P, V]) -> Callable[P, V]:
    """A function that makes what a `fast_init` class makes, with the same arguments, in half the time.

    A call of a class carries its arguments through a tuple and a dict; that of a function does not. Of another class it
    is the class itself.
    """
    if _MAKERS.get(cls, cls) is None:
        cls.__init__ = _written_init(cls)  # type: ignore[method-assign]
    made: Callable[P, V] = _MAKERS.get(cls, cls)
    return made


def _plain_fields(cls: Any) -> list[tuple[Any, ...]] | None:
    """The fields of a class, in order; None where more is asked of one than to be set, converted or made.

    Returns:
        Of each its name, annotation, default, factory, converter, whether ``__init__`` takes it, and only by keyword.
    """
    fields: dict[str, tuple[Any, Any, bool]] = {}
    for base in reversed(cls.__mro__):
        for name, own in _OWN_FIELDS.get(base, {}).items():
            fields.pop(name, None)  # a field that is defined again comes where that is
            fields[name] = own
        if "__attrs_attrs__" in vars(base) and base not in _OWN_FIELDS:
            return None
    found = []
    for name, (annotation, default, kw_only) in fields.items():
        factory, converter, is_taken = None, None, True
        if type(default) is _FIELD:
            given = default
            default, converter, is_taken = given._default, given.converter, given.init
            kw_only = kw_only if given.kw_only is None else given.kw_only
            if given._validator is not None or given.alias is not None or isinstance(converter, attrs.Converter):
                return None
        if isinstance(default, _FACTORY):
            if default.takes_self:
                return None
            factory, default = default.factory, _NOTHING
        if converter is not None:
            hints = {k: v for k, v in getattr(converter, "__annotations__", {}).items() if k != "return"}
            annotation = next(iter(hints.values()), None)
        found.append((name, annotation, default, factory, converter, is_taken, kw_only))
    return found


def _written_init(cls: Any) -> Any:
    """The ``__init__`` that attrs would write, or the faster one; None for a class that is left to attrs."""
    fields = _plain_fields(cls)
    if fields is None:
        return None
    known: dict[str, Any] = {"_bound": object.__setattr__.__get__, "_NOTHING": _NOTHING}
    known |= {"_Dict": FrozenDict, "_VALUES": VALUES}
    values: dict[str, str] = {}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    annotations: dict[str, Any] = {"return": None}
    for name, annotation, default, factory, converter, is_taken, kw_only in fields:
        alias = name.lstrip("_")
        value = alias if is_taken else f"_default_{name}"
        known |= {f"_default_{name}": default, f"_make_{name}": factory, f"_convert_{name}": converter}
        if factory is not None:
            value = f"_make_{name}() if {alias} is _NOTHING else {alias}" if is_taken else f"_make_{name}()"
        if converter is not None:
            value = f"_convert_{name}({value})"
            if converter is freeze and is_taken and factory is None:  # mostly frozen already, and a call costs more
                value = f"{alias} if {_IS_FROZEN.format(alias)} else {value}"
            if is_taken and cls in _MAKERS and default is not _NOTHING:
                known[f"_converted_{name}"] = converter(default)
                value = f"_converted_{name} if {alias} is _default_{name} else {value}"
        if is_taken:
            is_needed = default is _NOTHING and factory is None
            parameters[kw_only].append(alias if is_needed else f"{alias}=_default_{name}")
            annotations |= {} if annotation is None else {alias: annotation}
        if is_taken or default is not _NOTHING or factory is not None:
            values[name] = value
    body = ["_set = _bound(self)", *(f"_set({name!r}, {value})" for name, value in values.items())]
    if hasattr(cls, "__attrs_post_init__"):
        body.append("self.__attrs_post_init__()")
    takes = ", ".join([*parameters[False], *(["*", *parameters[True]] if parameters[True] else [])])
    source = [f"def __init__(self, {takes}):", *body]
    if cls in _MAKERS:
        thawed = {"__slots__": (), **{name: vars(object)[name] for name in ("__init__", "__setattr__", "__delattr__")}}
        known |= {"_cls": cls, "_twin": type(cls.__name__, (cls,), thawed)}
        known["_become"] = vars(object)["__class__"].__set__  # past the class's own `__setattr__`
        fast = [*(f"self.{name} = {value}" for name, value in values.items()), "self.__class__ = _cls"]
        slow = "; ".join([*body, "return"])
        source = [source[0], f"if type(self) is not _cls: {slow}", "_become(self, _twin)", *fast]
        make = [f"def make({takes}):", "self = _twin()", *fast, "return self"]
        exec("\n    ".join(make), known)  # noqa: S102 - made of the names of fields, as in attrs
        _MAKERS[cls] = known["make"]
    exec("\n    ".join(source), known)  # noqa: S102 - see above
    made = known["__init__"]
    made.__annotations__ = annotations
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _names_its_class(value: Any) -> bool:
    """Whether a function uses ``super()`` or ``__class__``, which mean the class that it was written in."""
    function = getattr(value, "__func__", getattr(value, "fget", value))
    return "__class__" in getattr(getattr(function, "__code__", None), "co_freevars", ())


_CLASS_VAR = ("ClassVar", "typing.ClassVar")


@attrs.frozen
class _Empty: ...


#: What makes an instance frozen; attrs knows frozen classes by it.
_FROZEN = {name: vars(_Empty)[name] for name in ("__setattr__", "__delattr__")}

#: What is compared and hashed of a class, made when it is first needed.
_KEYS: dict[type, tuple[Callable[[Any], tuple[Any, ...]], Callable[[Any], tuple[Any, ...]]]] = {}


def _keys(cls: Any) -> tuple[Callable[[Any], tuple[Any, ...]], Callable[[Any], tuple[Any, ...]]]:
    compared = [a for a in attrs.fields(cls) if a.eq]
    hashed = [a for a in attrs.fields(cls) if (a.eq if a.hash is None else a.hash)]
    _KEYS[cls] = found = _key(compared), _key(hashed)
    return found


def _key(chosen: list[Any]) -> Callable[[Any], tuple[Any, ...]]:
    if len(chosen) > 1 and not any(a.eq_key for a in chosen):
        return attrgetter(*(a.name for a in chosen))
    plain: Callable[[Any], Any] = lambda value: value  # noqa: E731
    pairs = [(a.name, a.eq_key or plain) for a in chosen]
    return lambda value: tuple([key(getattr(value, name)) for name, key in pairs])


def _eq(self: Any, other: object) -> Any:
    cls = self.__class__
    if other.__class__ is not cls:
        return NotImplemented
    key = (_KEYS.get(cls) or _keys(cls))[0]
    return key(self) == key(other)


def _hash(self: Any) -> int:
    cls = self.__class__
    return hash((cls, (_KEYS.get(cls) or _keys(cls))[1](self)))


def _repr(self: Any) -> str:
    cls = type(self)
    shown = ((a.name, getattr(self, a.name), a.repr) for a in attrs.fields(cls) if a.repr)
    listed = ", ".join(f"{name}={repr(value) if how is True else how(value)}" for name, value, how in shown)
    return f"{cls.__qualname__.rpartition('>.')[2]}({listed})"


class FrozenDict(dict[K, V]):
    """A dict that refuses to be changed; ``{**frozen, key: value}`` makes a changed copy."""

    #: Whether all of it is frozen; set by `freeze`, which need not look again then.
    __slots__ = ("_is_deep",)
    _is_deep: bool

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is frozen; build a changed copy with {**mapping, key: value}")

    __setitem__ = __delitem__ = _refuse
    __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict[K, V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict[K, V]:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (FrozenDict, (dict(self),))

    def __repr__(self) -> str:
        return dict.__repr__(self)


EMPTY: FrozenDict[str, Any] = FrozenDict()
EMPTY._is_deep = True

_ATOMS = frozenset({str, int, float, bool, type(None), bytes, datetime, date})

#: What is true of most values that `freeze` returns as they are, as an expression for an ``__init__`` that is written.
_IS_FROZEN = "type({0}) in _VALUES or (type({0}) is _Dict and getattr({0}, '_is_deep', False))"

#: Classes with a form of their own (`register_value`), which `freeze` leaves as they are.
VALUES: set[type] = set()


def freeze(value: Any) -> Any:
    """A deep-frozen equal of plain data: dict -> FrozenDict, list -> tuple, set -> frozenset.

    Anything else is returned as it is: it is either immutable already or not ours to copy.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict or (kind is FrozenDict and not getattr(value, "_is_deep", False)):
        # A `FrozenDict` may have been made by hand around a list.
        if not _ATOMS.issuperset(map(type, value.values())):
            value = {k: v if type(v) in _ATOMS else freeze(v) for k, v in value.items()}
        made = FrozenDict(value)
        made._is_deep = True
        return made
    if kind is FrozenDict or kind in VALUES:
        return value
    if kind is tuple:
        return value if _ATOMS.issuperset(map(type, value)) else tuple(map(freeze, value))
    if kind is list:  # before the look for a mapping, which costs more than all of this
        return tuple(value if _ATOMS.issuperset(map(type, value)) else map(freeze, value))
    if isinstance(value, Mapping):
        return freeze(dict(value))
    if isinstance(value, list):
        return tuple(map(freeze, value))
    if kind is set:
        return frozenset(map(freeze, value))
    return value


def thaw(value: Any) -> Any:
    """The inverse for callers that need to change data: a mutable deep copy of the containers."""
    if isinstance(value, Mapping):
        return {k: thaw(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return [thaw(v) for v in value]
    return value
