"""Typed per-run storage for plugins, instead of attributes poked onto a shared object."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

__all__ = ["Stash", "StashKey"]

T = TypeVar("T")
D = TypeVar("D")


class StashKey(Generic[T]):
    """The key of one value; make it once, at module level. Two keys are never equal."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StashKey({self.name!r})"


class Stash:
    """What plugins keep for one run: lives and dies with the run, is never saved."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def __setitem__(self, key: StashKey[T], value: T) -> None:
        self._values[key] = value

    def __getitem__(self, key: StashKey[T]) -> T:
        return cast("T", self._values[key])

    def __delitem__(self, key: StashKey[T]) -> None:
        del self._values[key]

    def __contains__(self, key: StashKey[T]) -> bool:
        return key in self._values

    def get(self, key: StashKey[T], default: D) -> T | D:
        """The value, or a default."""
        return cast("T | D", self._values.get(key, default))

    def setdefault(self, key: StashKey[T], default: T) -> T:
        """The value; the default is stored when there is none."""
        return cast("T", self._values.setdefault(key, default))
