"""Deep-frozen containers, so that what an event or a state shows cannot be changed by who looks at it.

A `FrozenDict` is still a dict: it serialises, unpacks and compares as one; only its mutators refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, NoReturn, TypeVar

__all__ = ["EMPTY", "FrozenDict", "freeze", "thaw"]

K = TypeVar("K")
V = TypeVar("V")


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
