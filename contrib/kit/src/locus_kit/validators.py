"""Validators of settings: attrs validators whose errors name the setting, what it must be, and what it was.

A boolean is not accepted as a number, although
Python counts it as one: ``retries = true`` in a file is a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from attrs import Attribute

from locus.models import Model

__all__ = [
    "Validator",
    "integer",
    "model_or_name",
    "not_blank",
    "number",
    "optional",
    "seconds",
    "strings",
    "to_tuple",
    "zero_to_none",
]

#: What attrs calls with the instance, the attribute and the value.
Validator = Callable[[Any, "Attribute[Any]", Any], None]


def integer(low: int | None = None, high: int | None = None) -> Validator:
    """Make a validator of ints: ``max_calls must be an int of 1 or more, got 0``.

    Args:
        low: the smallest value allowed.
        high: the largest value allowed.
    """
    expected = f"an int{_range(low, high, None, ' of')}"

    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not _within(value, low, high, None):
            raise _error(attribute, expected, value)

    return check


def number(
    low: float | None = None, high: float | None = None, *, above: float | None = None, unit: str = ""
) -> Validator:
    """Make a validator of finite numbers, ints or floats: ``timeout must be a number of seconds above 0, got -1``.

    Args:
        low: the smallest value allowed.
        high: the largest value allowed.
        above: a bound that is not allowed itself.
        unit: what the number counts, as in ``"seconds"``.
    """
    noun = f"a number of {unit}" if unit else "a number"
    expected = f"{noun}{_range(low, high, above, ',' if unit else ' of')}"

    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not _within(value, low, high, above):
            raise _error(attribute, expected, value)
        if not math.isfinite(value):
            raise _error(attribute, f"a finite number{f' of {unit}' if unit else ''}", value)

    return check


def optional(validator: Validator) -> Validator:
    """Make a validator that accepts None and whatever another one accepts.

    The types of `attrs.validators.optional` fit a field whose default is None only.
    """

    def check(instance: object, attribute: Attribute[Any], value: Any) -> None:
        if value is not None:
            validator(instance, attribute, value)

    return check


def model_or_name(_: object, attribute: Attribute[Any], value: Any) -> None:
    """Validate a model, or the name of one: ``judge must be 'provider:model' or a Model, got 3``."""
    if isinstance(value, type) or not isinstance(value, str | Model):
        raise _error(attribute, "'provider:model' or a Model", value)


def not_blank(_: object, attribute: Attribute[Any], value: str) -> None:
    """Validate a string with something else than white space in it: ``policy must not be empty, got ''``."""
    if not isinstance(value, str):
        raise _error(attribute, "a str", value)
    if not value.strip():
        raise ValueError(f"{attribute.name} must not be empty, got {value!r:.80}")


def strings(_: object, attribute: Attribute[Any], value: Any) -> None:
    """Validate a tuple of strings; a lone string, which is a sequence of strings too, is a forgotten bracket."""
    if isinstance(value, str):
        raise ValueError(f"{attribute.name} must be a list of strings, got {value!r:.80}; write [{value!r:.80}]")
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise _error(attribute, "a list of strings", value)


def to_tuple(value: Any) -> Any:
    """Convert a list or a set to a tuple, and a lone string to a tuple of one; `strings` can check the result."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) else value


def zero_to_none(value: Any) -> Any:
    """Convert 0 to None: TOML has no null, so a file writes 0 for "never"."""
    return None if value == 0 and not isinstance(value, bool) else value


def _within(value: float, low: float | None, high: float | None, above: float | None) -> bool:
    # Every comparison with NaN is false: it meets no bound.
    return (low is None or value >= low) and (high is None or value <= high) and (above is None or value > above)


def _range(low: float | None, high: float | None, above: float | None, joint: str) -> str:
    if above is not None:
        return f" above {above}" if high is None else f" above {above} and at most {high}"
    if low is not None:
        return f"{joint} {low} or more" if high is None else f" from {low} to {high}"
    return "" if high is None else f"{joint} {high} or less"


def _error(attribute: Attribute[Any], expected: str, value: Any) -> ValueError:
    return ValueError(f"{attribute.name} must be {expected}, got {value!r:.80}")


#: A validator of a time: a finite number of seconds above 0.
seconds = number(above=0, unit="seconds")
