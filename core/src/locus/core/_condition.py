"""The base of all termination conditions, their operators, and their JSON form.

Every question has two sides, `evaluate` (does it hold, and why) and `refute` (does it not hold, and why), so
that a negation can name the leaves that decided and De Morgan's laws hold for reasons as well as outcomes.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import reduce
from typing import Any, ClassVar, NoReturn, TypeVar, final

from attrs import NOTHING, Attribute, Factory, field, fields, has

from locus.core._answers import Bounds, Explanation, Reading, Satisfied, all_of, any_of
from locus.core.data import decode_data, encode_data
from locus.core.directives import Interrupt
from locus.core.errors import ConditionError, ConfigError, LocusError, NotSerialisable, UnknownName
from locus.core.frozen import frozen
from locus.core.state import AgentState


def dotted_name(fn: Any) -> str | None:
    """The name under which a function can be imported, or None: a lambda, a local, a bound method."""
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        return None
    try:
        found = reduce(getattr, qualname.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        return None
    name = f"{module}.{qualname}"
    return name if found is fn and split_dotted_name(name) else None


def split_dotted_name(name: str) -> list[str]:
    """The parts of a dotted name; empty when it is not a dotted name."""
    parts = name.split(".")
    return parts if len(parts) > 1 and all(map(str.isidentifier, parts)) else []


R = TypeVar("R")

#: What a predicate may raise without having failed: the program ends, or the body of a tool asks a person.
NO_FAILURES = (KeyboardInterrupt, SystemExit, Interrupt)


class TerminationCondition(ABC):
    """When to stop: a frozen value, and a pure function of the state.

    A plugin's own condition is an attrs class (``@register_condition @frozen(repr=False)``) with a `check`,
    and where it can a `reading` and `bounds`. `check` reads nothing but the state: no clock, no I/O.
    """

    __slots__ = ()

    #: Whether `check` may depend on ``state.iteration``; the router asks again about the next one then.
    reads_iteration: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What a stop by this condition is reported as."""
        return type(self).__name__

    @abstractmethod
    def check(self, state: AgentState) -> bool:
        """Whether the run is to stop in this state."""

    def evaluate(self, state: AgentState) -> Satisfied | None:
        """What holds, or None.

        Raises:
            ConditionError: a predicate raised.
        """
        try:
            if not self.check(state):
                return None
        except (ConditionError, *NO_FAILURES):
            raise
        except BaseException as e:
            raise ConditionError(self.name, e) from e
        return Satisfied(self.name, (self.name,), self._ask(self.reading, state).text)

    def refute(self, state: AgentState) -> Satisfied | None:
        """What makes the negation hold, or None when the condition holds itself.

        Raises:
            ConditionError: a predicate raised.
        """
        if self._ask(self.check, state):
            return None
        name = f"NOT {self.name}"
        return Satisfied(name, (name,), self._ask(self.reading, state).text)

    def reading(self, state: AgentState) -> Reading:
        """What this leaf sees in a state, for `explain`."""
        return Reading()

    def explain(self, state: AgentState) -> Explanation:
        """The whole tree with each leaf's value, threshold, and how far it is from being satisfied.

        A predicate that raises is shown in its place (``satisfied=None``); nothing is raised.
        """
        try:
            holds, seen = self._ask(self.check, state), self._ask(self.reading, state)
        except ConditionError as e:
            return Explanation(self.name, None, text=str(e))
        return Explanation(self.name, holds, seen.value, seen.threshold, seen.distance, seen.text)

    def _ask(self, ask: Callable[[AgentState], R], state: AgentState) -> R:
        try:
            return ask(state)
        except (ConditionError, *NO_FAILURES):
            raise
        except BaseException as e:
            raise ConditionError(self.name, e) from e

    def bounds(self) -> Bounds:
        """The hard ceiling that stopping by this condition guarantees."""
        return Bounds()

    def negated_bounds(self) -> Bounds:
        """The hard ceiling that the negation guarantees."""
        return Bounds()

    def leaves(self) -> Iterator[TerminationCondition]:
        """The leaves, in tree order."""
        yield self

    # -- operators --------------------------------------------------------------------------------

    def __and__(self, other: TerminationCondition) -> TerminationCondition:
        return AndCondition(self, other)

    def __or__(self, other: TerminationCondition) -> TerminationCondition:
        return OrCondition(self, other)

    # Only reached when the left operand is not a condition, which the composite refuses in words.
    def __rand__(self, other: object) -> TerminationCondition:
        return AndCondition(_require_condition(other), self)

    def __ror__(self, other: object) -> TerminationCondition:
        return OrCondition(_require_condition(other), self)

    def __invert__(self) -> TerminationCondition:
        return NotCondition(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"a condition has no truth value, so `and`, `or`, `not` and `if` do not work on {self!r}; "
            "compose with &, | and ~, ask with .check(state), and test for absence with `is None`"
        )

    # -- forms ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown, positional = [], True
        for a in _arguments(type(self)):
            value = getattr(self, a.name)
            if a.default is not NOTHING and value == a.default:
                positional = False
            else:
                keyword = "" if positional and not a.kw_only else f"{_alias(a)}="
                shown.append(keyword + _repr_argument(value))
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_json(self) -> dict[str, Any]:
        """A plain, JSON-safe dict; `condition_from_json` gives an equal condition back.

        Raises:
            NotSerialisable: a leaf holds a function that cannot be imported by name, or its class is not
                registered.
        """
        cls = type(self)
        if _TYPES.get(cls.__name__) is not cls:
            where = f"{cls.__module__}.{cls.__qualname__}"
            raise NotSerialisable(repr(self), f"{where} is not registered; use register_condition on it")
        return {"type": cls.__name__, **self.to_args()}

    def to_args(self) -> dict[str, Any]:
        """The JSON form of the constructor's arguments, defaults spelled out."""
        return {_alias(a): self._plain(getattr(self, a.name)) for a in _arguments(type(self))}

    @classmethod
    def from_args(cls, args: Mapping[str, Any]) -> TerminationCondition:
        """The inverse of `to_args`."""
        return cls(**{name: decode_data(value) for name, value in args.items()})

    def _plain(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        if not callable(value):
            return encode_data(value, self.name)
        name = dotted_name(value)
        if name is None:
            raise NotSerialisable(
                repr(self),
                f"{value!r} cannot be imported by name; use a function defined at the top level of a module",
            )
        return name


def _arguments(cls: Any) -> list[Attribute[Any]]:
    """The fields that the constructor takes; none for a class without fields of its own."""
    return [a for a in fields(cls) if a.init] if has(cls) else []


def _alias(argument: Attribute[Any]) -> str:
    return argument.alias or argument.name


def _repr_argument(value: Any) -> str:
    if isinstance(value, datetime):
        return repr(value.isoformat())
    if not callable(value):
        return repr(value)
    name = dotted_name(value)
    if name is not None:
        return repr(name)
    return f"<{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', type(value).__qualname__)}>"


# -- JSON -----------------------------------------------------------------------------------------

_TYPES: dict[str, type[TerminationCondition]] = {}
C = TypeVar("C", bound=type[TerminationCondition])


def register_condition(cls: C) -> C:
    """Make a condition class readable from JSON under its name; usable as a decorator.

    Its JSON form is the constructor's arguments. Functions are written by dotted name and times in ISO 8601,
    so a field that holds one needs a converter that takes that form as well.

    Raises:
        TypeError: it is not an attrs class derived from `TerminationCondition`.
        ValueError: another class has the name.
    """
    made = isinstance(cls, type) and issubclass(cls, TerminationCondition)
    if not made or not any("__attrs_attrs__" in vars(base) for base in cls.__mro__):  # what `has` asks, unfinished
        raise TypeError(f"{cls!r} is not a condition; make it an attrs class derived from TerminationCondition")
    known = _TYPES.get(cls.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        owner = f"{known.__module__}.{known.__qualname__}"
        raise ValueError(f"the condition {cls.__name__!r} is taken by {owner}; choose another name")
    _TYPES[cls.__name__] = cls
    return cls


def condition_types() -> dict[str, type[TerminationCondition]]:
    """The registered condition classes by name."""
    return dict(_TYPES)


def condition_from_json(data: Any) -> TerminationCondition:
    """The condition that `TerminationCondition.to_json` was asked for.

    It imports the functions that the data names: read only what comes from a place you trust.

    Raises:
        UnknownName: no registered condition, or no argument of it, has that name.
        ConfigError: an argument is missing or wrong, a function cannot be found, or it is nested too deeply.
    """
    try:
        return _from_json(data)
    except RecursionError:
        raise ConfigError(_TOO_DEEP) from None


def _from_json(data: Any) -> TerminationCondition:
    tag = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(tag, str):
        raise ConfigError(f"{data!r} is not a condition; it looks like {{'type': 'MaxIterations', 'n': 10}}")
    cls = _TYPES.get(tag)
    if cls is None:
        raise UnknownName("termination condition", tag, _TYPES, "a plugin's conditions need the plugin")
    args = {key: value for key, value in data.items() if key != "type"}
    known = [_alias(a) for a in _arguments(cls)]
    for key in args:
        if key not in known:
            raise UnknownName(f"argument of {tag}", str(key), known)
    try:
        return cls.from_args(args)
    except LocusError:
        raise
    except KeyError as e:
        raise ConfigError(f"{tag} lacks its argument {e}") from e
    except (TypeError, ValueError) as e:
        raise ConfigError(f"{tag}: {e}") from e


# -- composites -----------------------------------------------------------------------------------

Ask = Callable[[TerminationCondition], Satisfied | None]

#: How many levels conditions may be nested. Asking, printing and comparing recurse, and so do `repr` and `json` of what
#: they return: a tree that can be built must never come to the limit of the interpreter there.
MAX_DEPTH = 64
_TOO_DEEP = (
    f"a condition may be nested {MAX_DEPTH} levels deep, and this one goes deeper; a chain of one operator, such as "
    "a | b | c, is one level, so write it flat, or as a function in CustomCondition(...)"
)


def _count_levels(condition: Any) -> int:
    branches = condition.conditions if isinstance(condition, _Composite) else (condition.condition,)
    levels: int = 1 + max(getattr(branch, "_levels", 0) for branch in branches)
    if levels > MAX_DEPTH:
        raise ConfigError(_TOO_DEEP)
    return levels


_LEVELS = Factory(_count_levels, takes_self=True)


def _require_condition(given: Any) -> TerminationCondition:
    if isinstance(given, TerminationCondition):
        return given
    if isinstance(given, type) and issubclass(given, TerminationCondition):
        hint = f"call it: {given.__name__}(...)"
    elif callable(given):
        hint = "wrap a function in CustomCondition(...)"
    else:
        hint = "conditions combine with conditions only, such as MaxIterations(10)"
    raise TypeError(f"{given!r} is not a termination condition; {hint}")


def _parenthesise(condition: TerminationCondition, text: str) -> str:
    return f"({text})" if isinstance(condition, _Composite) else text


@frozen(init=False, repr=False)
class _Composite(TerminationCondition):
    conditions: tuple[TerminationCondition, ...]
    _levels: int = field(init=False, eq=False, default=_LEVELS)
    _sign: ClassVar[str]
    _word: ClassVar[str]
    #: The answer of a branch that decides the whole: no further branch is asked.
    _decides: ClassVar[bool]

    def __init__(self, *conditions: TerminationCondition) -> None:
        self.__attrs_init__(self._flatten(conditions))

    @property
    def name(self) -> str:
        """The names of the branches, joined."""
        return f" {self._word} ".join(_parenthesise(c, c.name) for c in self.conditions)

    def __repr__(self) -> str:
        return f" {self._sign} ".join(_parenthesise(c, repr(c)) for c in self.conditions)

    @classmethod
    def _flatten(cls, given: tuple[Any, ...]) -> tuple[TerminationCondition, ...]:
        """The branches, those of branches of the same kind in their place: ``(a & b) & c == a & (b & c)``."""
        if len(given) < 2:
            raise ValueError(f"{cls.__name__} got {len(given)} conditions; it joins two or more")
        found: list[TerminationCondition] = []
        for each in given:
            found += each.conditions if isinstance(each, cls) else (_require_condition(each),)
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

    _sign: ClassVar[str] = "&"
    _word: ClassVar[str] = "AND"
    _decides: ClassVar[bool] = False

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

    _sign: ClassVar[str] = "|"
    _word: ClassVar[str] = "OR"
    _decides: ClassVar[bool] = True

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

    condition: TerminationCondition = field(converter=_require_condition)
    _levels: int = field(init=False, eq=False, default=_LEVELS)

    @property
    def name(self) -> str:
        """``"NOT <name>"``."""
        return f"NOT {_parenthesise(self.condition, self.condition.name)}"

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
        return f"~{_parenthesise(self.condition, inner)}"

    def to_args(self) -> dict[str, Any]:
        """The JSON form of the negated condition."""
        return {"condition": self.condition.to_json()}

    @classmethod
    def from_args(cls, args: Mapping[str, Any]) -> TerminationCondition:
        """The inverse of `to_args`."""
        return cls(condition_from_json(args["condition"]))
