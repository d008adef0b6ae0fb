"""Functions inside conditions: kept by their dotted names, and called so that a mistake is a named error."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from inspect import iscoroutine, iscoroutinefunction
from typing import Any

from locus.core._condition import NO_FAILURES, split_dotted_name
from locus.core.errors import ConditionError, ConfigError
from locus.core.frozen import frozen


def function(given: Any) -> Any:
    """A function from itself or from its dotted name.

    Raises:
        ConfigError: nothing can be imported under that name.
        TypeError: it cannot be called, is a coroutine function, or cannot be hashed.
    """
    fn = _import(given) if isinstance(given, str) else given
    if not callable(fn):
        raise TypeError(f"{given!r} is not a function; give one that returns True or False, or its dotted name")
    if iscoroutinefunction(fn):
        raise TypeError(f"{given!r} is a coroutine function; conditions are pure, use a plain function")
    try:
        hash(fn)
    except TypeError:
        raise TypeError(f"{given!r} cannot be hashed, as a condition must be; use a plain function") from None
    return fn


def _import(name: str) -> Any:
    parts = split_dotted_name(name)
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
    except NO_FAILURES:
        raise
    except BaseException as e:
        raise ConditionError(name, e) from e
    if answer is True or answer is False:
        return answer
    shown = repr(answer)
    if iscoroutine(answer):
        answer.close()
    cause = TypeError(f"it returned {shown}; a predicate returns True or False (wrap the value in bool(...))")
    raise ConditionError(name, cause) from cause


@frozen
class Predicate:
    """A predicate on a state or on a call's arguments, asked through `ask`; equal predicates share their answers."""

    name: str
    predicate: Callable[[Any], bool]

    def __call__(self, about: Any) -> bool:
        return ask(self.name, self.predicate, about)
