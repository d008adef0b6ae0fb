"""And, Or and Not: frozen trees that short-circuit and say which leaves decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, final

from attrs import field

from locus.core._answers import Bounds, Explanation, Satisfied, all_of, any_of
from locus.core._condition import OPERATORS, TerminationCondition, condition_from_json, register_condition
from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = ["AndCondition", "NotCondition", "OrCondition"]

Ask = Callable[[TerminationCondition], Satisfied | None]


def _checked(given: Any) -> TerminationCondition:
    if isinstance(given, TerminationCondition):
        return given
    if isinstance(given, type) and issubclass(given, TerminationCondition):
        hint = f"call it: {given.__name__}(...)"
    elif callable(given):
        hint = "wrap a function in CustomCondition(...)"
    else:
        hint = "conditions combine with conditions only, such as MaxIterations(10)"
    raise TypeError(f"{given!r} is not a termination condition; {hint}")


def _enclosed(condition: TerminationCondition, text: str) -> str:
    return f"({text})" if isinstance(condition, _Composite) else text


class _Composite(TerminationCondition):
    __slots__ = ()

    conditions: tuple[TerminationCondition, ...]
    _sign: ClassVar[str]
    _word: ClassVar[str]
    #: The answer of a branch that decides the whole: no further branch is asked.
    _decides: ClassVar[bool]

    @property
    def name(self) -> str:
        """The names of the branches, joined."""
        return f" {self._word} ".join(_enclosed(c, c.name) for c in self.conditions)

    def __repr__(self) -> str:
        return f" {self._sign} ".join(_enclosed(c, repr(c)) for c in self.conditions)

    @classmethod
    def _spliced(cls, given: tuple[Any, ...]) -> tuple[TerminationCondition, ...]:
        """The branches, those of branches of the same kind in their place: ``(a & b) & c == a & (b & c)``."""
        if len(given) < 2:
            raise ValueError(f"{cls.__name__} got {len(given)} conditions; it joins two or more")
        found: list[TerminationCondition] = []
        for each in given:
            found += each.conditions if isinstance(each, cls) else (_checked(each),)
        return tuple(found)

    def check(self, state: AgentState) -> bool:
        """Whether the run is to stop in this state."""
        return self.evaluate(state) is not None

    def _first(self, ask: Ask) -> Satisfied | None:
        for condition in self.conditions:
            found = ask(condition)
            if found is not None:
                return found
        return None

    def _every(self, ask: Ask) -> Satisfied | None:
        parts = []
        for condition in self.conditions:
            found = ask(condition)
            if found is None:
                return None
            parts.append(found)
        return Satisfied(
            " AND ".join(p.reason for p in parts),
            tuple(leaf for p in parts for leaf in p.leaves),
            "; ".join(p.detail for p in parts if p.detail),
        )

    def explain(self, state: AgentState) -> Explanation:
        """The whole tree below this node, every branch, whatever `check` would have skipped."""
        children = tuple(c.explain(state) for c in self.conditions)
        goes_on = not self._decides
        # The first branch that decides, or that raises, is the last one that `check` asks.
        holds = next((c.satisfied for c in children if c.satisfied is not goes_on), goes_on)
        return Explanation(self._word, holds, children=children)

    def leaves(self) -> Iterator[TerminationCondition]:
        """The leaves, in tree order."""
        for condition in self.conditions:
            yield from condition.leaves()

    def to_args(self) -> dict[str, Any]:
        """The JSON forms of the branches."""
        return {"conditions": [c.to_json() for c in self.conditions]}

    @classmethod
    def from_args(cls, args: Mapping[str, Any]) -> TerminationCondition:
        """The inverse of `to_args`."""
        return cls(*map(condition_from_json, args["conditions"]))


@final
@register_condition
@frozen(init=False, repr=False)
class AndCondition(_Composite):
    """Stop when all branches hold; the first that does not is the last one asked. Written ``a & b``."""

    conditions: tuple[TerminationCondition, ...]
    _sign: ClassVar[str] = "&"
    _word: ClassVar[str] = "AND"
    _decides: ClassVar[bool] = False

    def __init__(self, *conditions: TerminationCondition) -> None:
        self.__attrs_init__(self._spliced(conditions))

    def evaluate(self, state: AgentState) -> Satisfied | None:
        """All branches' reasons, joined by ``" AND "`` in tree order, or None."""
        return self._every(lambda c: c.evaluate(state))

    def refute(self, state: AgentState) -> Satisfied | None:
        """The first branch that does not hold, or None."""
        return self._first(lambda c: c.refute(state))

    def bounds(self) -> Bounds:
        """What all branches guarantee."""
        return all_of(c.bounds() for c in self.conditions)

    def negated_bounds(self) -> Bounds:
        """What the negation guarantees: it is an Or of negations."""
        return any_of(c.negated_bounds() for c in self.conditions)


@final
@register_condition
@frozen(init=False, repr=False)
class OrCondition(_Composite):
    """Stop when any branch holds; the first that does is the last one asked. Written ``a | b``."""

    conditions: tuple[TerminationCondition, ...]
    _sign: ClassVar[str] = "|"
    _word: ClassVar[str] = "OR"
    _decides: ClassVar[bool] = True

    def __init__(self, *conditions: TerminationCondition) -> None:
        self.__attrs_init__(self._spliced(conditions))

    def evaluate(self, state: AgentState) -> Satisfied | None:
        """The reason of the first branch that holds, or None."""
        # Written out: the loop asks this after every node.
        for condition in self.conditions:
            found = condition.evaluate(state)
            if found is not None:
                return found
        return None

    def refute(self, state: AgentState) -> Satisfied | None:
        """Why no branch holds, or None."""
        return self._every(lambda c: c.refute(state))

    def bounds(self) -> Bounds:
        """What any branch guarantees."""
        return any_of(c.bounds() for c in self.conditions)

    def negated_bounds(self) -> Bounds:
        """What the negation guarantees: it is an And of negations."""
        return all_of(c.negated_bounds() for c in self.conditions)


@final
@register_condition
@frozen(repr=False)
class NotCondition(TerminationCondition):
    """Stop when the condition does not hold. Written ``~a``; ``~~a`` is ``a``."""

    condition: TerminationCondition = field(converter=_checked)

    @property
    def name(self) -> str:
        """``"NOT <name>"``."""
        return f"NOT {_enclosed(self.condition, self.condition.name)}"

    def check(self, state: AgentState) -> bool:
        """Whether the run is to stop in this state."""
        return self.evaluate(state) is not None

    def evaluate(self, state: AgentState) -> Satisfied | None:
        """``"NOT <name>"`` with the leaves that made it so, or None."""
        found = self.condition.refute(state)
        return None if found is None else Satisfied(self.name, found.leaves, found.detail)

    def refute(self, state: AgentState) -> Satisfied | None:
        """Why the negated condition holds, or None."""
        return self.condition.evaluate(state)

    def explain(self, state: AgentState) -> Explanation:
        """The whole tree below this node."""
        child = self.condition.explain(state)
        return Explanation("NOT", None if child.satisfied is None else not child.satisfied, children=(child,))

    def bounds(self) -> Bounds:
        """What the negated condition guarantees by not holding."""
        return self.condition.negated_bounds()

    def negated_bounds(self) -> Bounds:
        """What the negated condition guarantees."""
        return self.condition.bounds()

    def leaves(self) -> Iterator[TerminationCondition]:
        """The leaves, in tree order."""
        yield from self.condition.leaves()

    def __invert__(self) -> TerminationCondition:
        return self.condition

    def __repr__(self) -> str:
        inner = repr(self.condition)
        if isinstance(self.condition, NotCondition):  # `~~x` would read back as x
            return f"NotCondition({inner})"
        return f"~{_enclosed(self.condition, inner)}"

    def to_args(self) -> dict[str, Any]:
        """The JSON form of the negated condition."""
        return {"condition": self.condition.to_json()}

    @classmethod
    def from_args(cls, args: Mapping[str, Any]) -> TerminationCondition:
        """The inverse of `to_args`."""
        return cls(condition_from_json(args["condition"]))


OPERATORS.update({"&": AndCondition, "|": OrCondition, "~": NotCondition})
