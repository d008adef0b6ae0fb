"""Frozen values: containers that are frozen all the way down, and the decorator that makes the kernel's classes.

What an event or a state shows cannot be changed by the code that reads it. A `FrozenDict` is still a dict: it
serialises, unpacks and compares as one; only its mutators refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import attrs

__all__ = ["EMPTY", "FrozenDict", "freeze", "frozen", "thaw"]

K = TypeVar("K")
V = TypeVar("V")

if TYPE_CHECKING:
    from attrs import frozen
else:

    def frozen(cls=None, **options):
        """`attrs.frozen`, made cheaply: one ``__eq__``, ``__hash__`` and ``__repr__`` for all classes.

        attrs writes and compiles these for each class, which is more than half of what making a class costs, and the
        kernel has more than a hundred of them: it was the largest part of the start of a process. Compared, hashed
        and shown is the same as with attrs; options that change that are left to attrs.
        """
        if cls is None:
            return lambda decorated: frozen(decorated, **options)
        if options.keys() & _LEFT_TO_ATTRS or issubclass(cls, BaseException):
            return attrs.frozen(cls, **options)
        own = vars(cls)
        methods = {"__repr__": _repr} if options.get("repr", True) and "__repr__" not in own else {}
        if options.get("eq", True) and "__eq__" not in own:
            methods |= {"__eq__": _eq} if "__hash__" in own else {"__eq__": _eq, "__hash__": _hash}
        made = attrs.frozen(cls, **{**options, "eq": False, "repr": False})
        for name, method in methods.items():
            setattr(made, name, method)
        return made


_LEFT_TO_ATTRS = frozenset({"cache_hash", "cmp", "hash", "order", "str", "unsafe_hash"})

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

    __slots__ = ()

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

_ATOMS = frozenset({str, int, float, bool, type(None), bytes, datetime, date})

#: Classes with a form of their own (`register_value`), which `freeze` leaves as they are.
VALUES: set[type] = set()


def freeze(value: Any) -> Any:
    """A deep-frozen equal of plain data: dict -> FrozenDict, list -> tuple, set -> frozenset.

    Anything else is returned as it is: it is either immutable already or not ours to copy.
    """
    kind = type(value)
    if kind in _ATOMS or kind in VALUES:
        return value
    if kind is FrozenDict:
        if not value:
            return value
        # Somebody may have made it by hand around a list.
        for item in value.values():
            if type(item) not in _ATOMS:
                return FrozenDict({k: freeze(v) for k, v in value.items()})
        return value
    if kind is dict or isinstance(value, Mapping):
        return FrozenDict({k: v if type(v) in _ATOMS else freeze(v) for k, v in value.items()})
    if kind is tuple:
        for item in value:
            if type(item) not in _ATOMS:
                return tuple(map(freeze, value))
        return value
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
