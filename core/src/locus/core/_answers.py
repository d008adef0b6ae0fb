"""What conditions answer: why one holds, how far it is from holding, and what it guarantees.

The ceiling that it guarantees is the one beyond which a run never starts another model call.

A promise is pointwise: "every state at or beyond the limit satisfies the condition". That is what makes the
arithmetic sound without knowing which other leaves stay satisfied: an Or keeps the first promise of its
branches, an And only what all of them promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import asdict

from locus.core.frozen import frozen


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
        return {**asdict(self, recurse=False), "children": [child.to_json() for child in self.children]}

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        mark = {True: "x", False: " ", None: "!"}[self.satisfied]
        yield f"{'    ' * depth}[{mark}] {self.name}{': ' if self.text else ''}{self.text}"
        for child in self.children:
            yield from child._lines(depth + 1)


@frozen(order=True)
class Bound:
    """A ceiling that is looked at between calls, not within one.

    Args:
        limit: no model call starts once the total is beyond it; of `Bounds.tool_calls`: no tool call once it is reached
        overshoot: what may still be spent on top, in words: calls under way are not torn out.
    """

    limit: float
    overshoot: str


@frozen(kw_only=True)
class Bounds:
    """The hard ceiling that a condition guarantees; None where it guarantees none.

    Args:
        iterations: at most so many iterations, exactly. Children have iterations of their own; the other three bound
            a run with all children below it.
        tokens: prompt and completion tokens, as far as the provider reports them.
        seconds: time at work (`AgentState.active_seconds`).
        dollars: cost of the calls whose price is known or assumed.
        tool_calls: calls of tools that are started. As with iterations, children have calls of their own.
        guarantees_halt: the run ends even when the model never stops by itself. Iterations, time at work and
            a deadline guarantee it; tokens and dollars do not, because a provider may report none.
    """

    iterations: int | None = None
    tokens: Bound | None = None
    seconds: Bound | None = None
    dollars: Bound | None = None
    tool_calls: Bound | None = None
    guarantees_halt: bool = False

    def find_reached(self, *, tokens: int, seconds: float, dollars: float) -> str | None:
        """The ceiling beyond which nothing is started any more, by the name of its condition, or None.

        Args:
            tokens: prompt and completion tokens of the run.
            seconds: its time at work.
            dollars: its cost.
        """
        if self.tokens is not None and tokens > self.tokens.limit:
            return "TokenLimit"
        if self.seconds is not None and seconds >= self.seconds.limit:
            return "TimeLimit"
        if self.dollars is not None and dollars >= self.dollars.limit:
            return "CostLimit"
        return None

    def to_json(self) -> dict[str, Any]:
        """A plain, JSON-safe dict."""
        return asdict(self)


def any_of(branches: Iterable[Bounds]) -> Bounds:
    """What an Or promises: the least of what its branches do."""
    return _combine(tuple(branches), _least, any)


def all_of(branches: Iterable[Bounds]) -> Bounds:
    """What an And promises: the greatest, and only where every branch promises something.

    Halting needs no common unit: in a run that goes on for ever each halting branch is satisfied from some
    point on, so all of them are.
    """
    return _combine(tuple(branches), _greatest, all)


_CEILINGS = ("iterations", "tokens", "seconds", "dollars", "tool_calls")


def _combine(
    given: tuple[Bounds, ...], pick: Callable[[Sequence[Any]], Any], quantify: Callable[[Iterable[bool]], bool]
) -> Bounds:
    ceilings = {name: pick([getattr(b, name) for b in given]) for name in _CEILINGS}
    return Bounds(**ceilings, guarantees_halt=quantify(b.guarantees_halt for b in given))


def _least(given: Sequence[Any]) -> Any:
    return min((g for g in given if g is not None), default=None)


def _greatest(given: Sequence[Any]) -> Any:
    known = [g for g in given if g is not None]
    return max(known) if len(known) == len(given) else None
