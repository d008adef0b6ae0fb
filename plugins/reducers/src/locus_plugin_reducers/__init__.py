"""Reducers: how a graph merges what two parallel branches made of one field; also as ``locus.core.reducers``.

Each is a pure function of two values in which None means "this branch has nothing to say", so ``f(None, x)`` and
``f(x, None)`` are ``x``. Each is associative, so it does not matter how branches are grouped (the exceptions are in
the docstrings); most are not commutative: the order of branches matters. A plain run uses none of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Protocol, TypeVar

from locus.core import FrozenDict
from locus.core.messages import Message

__all__ = [
    "Reducer",
    "add_messages",
    "add_numbers",
    "append_list",
    "deep_merge_dict",
    "first_value",
    "last_value",
    "max_value",
    "merge_dict",
    "min_value",
    "set_union",
    "unique_append_list",
]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
N = TypeVar("N", int, float)


class _Ordered(Protocol):
    """A value with an order."""

    def __lt__(self, other: Any, /) -> bool: ...


O = TypeVar("O", bound=_Ordered)  # noqa: E741 - an order


class Reducer(Protocol):
    """What a graph declares for a field: from the values of two branches to the merged one."""

    def __call__(self, left: Any, right: Any, /) -> Any:
        """The merged value; neither argument is changed."""
        ...


def add_messages(
    left: Iterable[Message] | Message | None, right: Iterable[Message] | Message | None
) -> tuple[Message, ...]:
    """The messages of both, those of the left branch first, as the tuple that `AgentState.messages` is.

    Args:
        left: messages, or one, or None.
        right: what follows them.
    """
    return _messages(left) + _messages(right)


def _messages(value: Iterable[Message] | Message | None) -> tuple[Message, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Message) else tuple(value)


def merge_dict(left: Mapping[K, T] | None, right: Mapping[K, T] | None) -> Mapping[K, T] | None:
    """The entries of both; for a key in both, the right one. Frozen when the left one is."""
    if left is None or right is None:
        return right if left is None else left
    return _like(left, {**left, **right})


def deep_merge_dict(left: Mapping[K, Any] | None, right: Mapping[K, Any] | None) -> Mapping[K, Any] | None:
    """`merge_dict`, with mappings under the same key on both sides merged in turn.

    Associative as long as a key holds mappings in all branches or in none: a plain value takes the place of a
    mapping, and what was in the mapping is lost.
    """
    if left is None or right is None:
        return right if left is None else left
    merged = dict(left)
    for key, value in right.items():
        here = merged.get(key)
        both = isinstance(here, Mapping) and isinstance(value, Mapping)
        merged[key] = deep_merge_dict(here, value) if both else value
    return _like(left, merged)


def _like(model: Mapping[K, Any], made: dict[K, T]) -> Mapping[K, T]:
    return FrozenDict(made) if isinstance(model, FrozenDict) else made


def append_list(left: Sequence[T] | None, right: Sequence[T] | None) -> Sequence[T] | None:
    """The items of both, those of the left branch first; a tuple when the left one is a tuple, else a list."""
    if left is None or right is None:
        return right if left is None else left
    return (*left, *right) if isinstance(left, tuple) else [*left, *right]


def unique_append_list(left: Sequence[T] | None, right: Sequence[T] | None) -> Sequence[T] | None:
    """`append_list` without the right items that are there already; items are compared with ``==``."""
    if left is None or right is None:
        return right if left is None else left
    seen: set[Any] = set()
    unhashable: list[Any] = []
    for item in left:
        _is_new(item, seen, unhashable)
    added = [item for item in right if _is_new(item, seen, unhashable)]
    return append_list(left, added)


def _is_new(item: Any, seen: set[Any], unhashable: list[Any]) -> bool:
    try:
        new = item not in seen and item not in unhashable
        seen.add(item)
    except TypeError:
        new = item not in unhashable
        unhashable.append(item)
    return new


def add_numbers(left: N | None, right: N | None) -> N | None:
    """The sum. Associative for integers; floats round."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def max_value(left: O | None, right: O | None) -> O | None:
    """The larger one; the left one of equals. NaN has no order: keep it out."""
    if left is None or right is None:
        return right if left is None else left
    return right if left < right else left


def min_value(left: O | None, right: O | None) -> O | None:
    """The smaller one; the left one of equals. NaN has no order: keep it out."""
    if left is None or right is None:
        return right if left is None else left
    return right if right < left else left


def first_value(left: T | None, right: T | None) -> T | None:
    """The left branch's value, unless it has none."""
    return right if left is None else left


def last_value(left: T | None, right: T | None) -> T | None:
    """The right branch's value, unless it has none."""
    return left if right is None else right


def set_union(left: Set[T] | None, right: Set[T] | None) -> frozenset[T] | None:
    """The members of both."""
    if left is None and right is None:
        return None
    return frozenset(left or ()) | frozenset(right or ())
