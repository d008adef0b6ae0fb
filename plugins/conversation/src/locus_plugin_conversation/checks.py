"""Validators for the numbers that conversation managers take: wrong ones are refused where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attrs import Attribute

__all__ = ["share", "whole"]

Validator = Callable[[Any, "Attribute[Any]", Any], None]


def whole(least: int) -> Validator:
    """An integer, ``least`` or more."""

    def check(_: Any, attribute: Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{attribute.name} is {value!r}; it is an integer, {least} or more")

    return check


def share(_: Any, attribute: Attribute[Any], value: Any) -> None:
    """A part of the window: more than 0, at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"{attribute.name} is {value!r}; it is a share, more than 0.0 and at most 1.0")
