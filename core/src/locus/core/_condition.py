"""The base of all termination conditions, their operators, and their JSON form.

Every question has two sides, `evaluate` (does it hold, and why) and `refute` (does it not hold, and why), so
that a negation can name the leaves that decided and De Morgan's laws hold for reasons as well as outcomes.

Functions inside conditions are kept by their dotted names, and called so that a mistake is a named error.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import reduce
from importlib import import_module
from inspect import iscoroutine, iscoroutinefunction
from typing import Any, ClassVar, NoReturn, TypeVar

from attrs import NOTHING, Attribute, fields, has

from locus.core._answers import Bounds, Explanation, Reading, Satisfied
from locus.core.data import decode_data, encode_data
from locus.core.errors import ConditionError, ConfigError, LocusError, NotSerialisable, UnknownName
from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = [
    "OPERATORS",
    "ArgsTest",
    "TerminationCondition",
    "ask",
    "condition_from_json",
    "condition_types",
    "dotted_name",
    "function",
    "register_condition",
]


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
    return name if found is fn and _parts(name) else None


def function(given: Any) -> Any:
    """A function from itself or from its dotted name.

    Raises:
        ConfigError: nothing can be imported under that name.
        TypeError: it cannot be called, is a coroutine function, or cannot be hashed.
    """
    fn = _imported(given) if isinstance(given, str) else given
    if not callable(fn):
        raise TypeError(f"{given!r} is not a function; give one that returns True or False, or its dotted name")
    if iscoroutinefunction(fn):
        raise TypeError(f"{given!r} is a coroutine function; conditions are pure, use a plain function")
    try:
        hash(fn)
    except TypeError:
        raise TypeError(f"{given!r} cannot be hashed, as a condition must be; use a plain function") from None
    return fn


def _parts(name: str) -> list[str]:
    """The parts of a dotted name; empty when it is not a dotted name."""
    parts = name.split(".")
    return parts if len(parts) > 1 and all(map(str.isidentifier, parts)) else []


def _imported(name: str) -> Any:
    parts = _parts(name)
    if not parts:
        raise ConfigError(f"{name!r} is not a dotted name of a function; write 'package.module.function'")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as e:
            if e.name is not None and f"{name}.".startswith(f"{e.name}."):
                continue
            raise
        try:
            return reduce(getattr, parts[end:], module)
        except AttributeError as e:
            raise ConfigError(f"cannot find the function {name!r}: {e}") from e
    raise ConfigError(f"cannot find the function {name!r}: the module {parts[0]!r} was not found; is it installed?")


def ask(name: str, fn: Callable[[Any], bool], about: Any) -> bool:
    """The answer of a predicate.

    Raises:
        ConditionError: it raised, or answered with something else than True or False.
    """
    try:
        answer = fn(about)
    except Exception as e:
        raise ConditionError(name, e) from e
    if answer is True or answer is False:
        return answer
    shown = repr(answer)
    if iscoroutine(answer):
        answer.close()
    cause = TypeError(f"it returned {shown}; a predicate returns True or False (wrap the value in bool(...))")
    raise ConditionError(name, cause) from cause


@frozen
class ArgsTest:
    """A predicate on a call's arguments, asked through `ask`; equal predicates share their answers."""

    name: str
    predicate: Callable[[Mapping[str, Any]], bool]

    def __call__(self, arguments: Mapping[str, Any]) -> bool:
        return ask(self.name, self.predicate, arguments)


R = TypeVar("R")

#: What ``&``, ``|`` and ``~`` build: the composites derive from the base class, so they enter themselves.
OPERATORS: dict[str, Callable[..., TerminationCondition]] = {}


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
        except ConditionError:
            raise
        except Exception as e:
            raise ConditionError(self.name, e) from e
        return Satisfied(self.name, (self.name,), self._guarded(self.reading, state).text)

    def refute(self, state: AgentState) -> Satisfied | None:
        """What makes the negation hold, or None when the condition holds itself.

        Raises:
            ConditionError: a predicate raised.
        """
        if self._guarded(self.check, state):
            return None
        name = f"NOT {self.name}"
        return Satisfied(name, (name,), self._guarded(self.reading, state).text)

    def reading(self, state: AgentState) -> Reading:
        """What this leaf sees in a state, for `explain`."""
        return Reading()

    def explain(self, state: AgentState) -> Explanation:
        """The whole tree with each leaf's value, threshold, and how far it is from being satisfied.

        A predicate that raises is shown in its place (``satisfied=None``); nothing is raised.
        """
        try:
            holds, seen = self._guarded(self.check, state), self._guarded(self.reading, state)
        except ConditionError as e:
            return Explanation(self.name, None, text=str(e))
        return Explanation(self.name, holds, seen.value, seen.threshold, seen.distance, seen.text)

    def _guarded(self, ask: Callable[[AgentState], R], state: AgentState) -> R:
        try:
            return ask(state)
        except ConditionError:
            raise
        except Exception as e:
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
        return OPERATORS["&"](self, other)

    def __or__(self, other: TerminationCondition) -> TerminationCondition:
        return OPERATORS["|"](self, other)

    # Only reached when the left operand is not a condition, which the composite refuses in words.
    def __rand__(self, other: object) -> TerminationCondition:
        return OPERATORS["&"](other, self)

    def __ror__(self, other: object) -> TerminationCondition:
        return OPERATORS["|"](other, self)

    def __invert__(self) -> TerminationCondition:
        return OPERATORS["~"](self)

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
                shown.append(keyword + _shown(value))
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


def _shown(value: Any) -> str:
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
    made: bool = isinstance(cls, type) and issubclass(cls, TerminationCondition) and has(cls)
    if not made:
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
        ConfigError: an argument is missing or wrong, or a function cannot be found.
    """
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
