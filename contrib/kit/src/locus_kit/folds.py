"""What a journal store remembers of threads that it gave back, so that its next claim need not read them whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Folds"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Folds(Generic[K, T]):
    """A bounded number of them by thread; those that were kept last stay. For one thread of a program at a time.

    Args:
        most: how many; a state is as large as its conversation.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: dict[K, T] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, key: K, fold: T) -> None:
        """Keep one in the place of the one before, and forget the oldest where there are too many."""
        self._kept.pop(key, None)
        self._kept[key] = fold
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    def find(self, key: K, fits: Callable[[T], bool]) -> T | None:
        """The one of a thread, or None; one that does not fit what is stored of its thread is forgotten.

        Args:
            key: the thread.
            fits: whether the thread still ends as it did when this was kept.
        """
        found = self._kept.get(key)
        if found is not None and not fits(found):
            found = None
            del self._kept[key]
        return found
