"""Functions inside conditions: their dotted names, and asking them so that a mistake is a named error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import reduce
from importlib import import_module
from inspect import iscoroutine, iscoroutinefunction
from typing import Any

from locus.core.errors import ConditionError, ConfigError
from locus.core.frozen import frozen

__all__ = ["ArgsTest", "ask", "dotted_name", "function"]


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
        raise TypeError(f"{given!r} is no function; give one that returns True or False, or its dotted name")
    if iscoroutinefunction(fn):
        raise TypeError(f"{given!r} is a coroutine function; conditions are pure, use a plain function")
    try:
        hash(fn)
    except TypeError:
        raise TypeError(f"{given!r} cannot be hashed, as a condition must be; use a plain function") from None
    return fn


def _parts(name: str) -> list[str]:
    """The parts of a dotted name; empty when it is none."""
    parts = name.split(".")
    return parts if len(parts) > 1 and all(map(str.isidentifier, parts)) else []


def _imported(name: str) -> Any:
    parts = _parts(name)
    if not parts:
        raise ConfigError(f"{name!r} is no dotted name of a function; write 'package.module.function'")
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
    raise ConfigError(f"cannot find the function {name!r}: there is no module {parts[0]!r}; is it installed?")


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
