"""Why a run stopped, or how far it is from stopping, as values that print as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from locus.core.frozen import frozen

__all__ = ["Explanation", "Reading", "Satisfied"]


@frozen
class Satisfied:
    """Which part of a condition holds.

    Args:
        reason: the leaf's name for an Or, the leaves' names joined by ``" AND "`` for an And,
            ``"NOT <name>"`` for a negation.
        leaves: the names of the leaves that decided, in tree order.
        detail: the numbers behind it, for people.
    """

    reason: str
    leaves: tuple[str, ...]
    detail: str = ""


@frozen
class Reading:
    """What one leaf reads from a state.

    Args:
        value: what the state has, as plain data.
        threshold: what it is compared with, as plain data; None where there is nothing to compare.
        distance: how far the value is from satisfying the leaf, in the leaf's unit: 0 once it does, None
            where it cannot be measured.
        text: one line for people.
    """

    value: Any = None
    threshold: Any = None
    distance: float | None = None
    text: str = ""


@frozen
class Explanation:
    """One node of the explained tree; ``str()`` prints it with everything below, indented.

    Args:
        name: the condition's name; ``"AND"``, ``"OR"`` or ``"NOT"`` for a composite.
        satisfied: whether it holds; None when finding out raised (the text says what).
        value, threshold, distance, text: see `Reading`.
        children: the explained branches, in tree order, all of them: nothing is short-circuited.
    """

    name: str
    satisfied: bool | None
    value: Any = None
    threshold: Any = None
    distance: float | None = None
    text: str = ""
    children: tuple[Explanation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A plain, JSON-safe dict, children included."""
        return {
            "name": self.name,
            "satisfied": self.satisfied,
            "value": self.value,
            "threshold": self.threshold,
            "distance": self.distance,
            "text": self.text,
            "children": [child.to_json() for child in self.children],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        mark = {True: "x", False: " ", None: "!"}[self.satisfied]
        yield f"{'    ' * depth}[{mark}] {self.name}{': ' if self.text else ''}{self.text}"
        for child in self.children:
            yield from child._lines(depth + 1)
