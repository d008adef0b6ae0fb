"""Kinds of values that options take, beyond those of click. Imports nothing of the kernel."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

import click

__all__ = ["NAMES", "NOT_BLANK", "SPAN", "Amount"]


class _Filled(click.ParamType[str]):
    """Text with something in it: an empty text is most likely an unset variable of a script."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip():
            self.fail("it is empty; leave the option out, or give it a value", param, ctx)
        return text


NOT_BLANK = _Filled()


class _Names(click.ParamType[tuple[str, ...]]):
    """One name or several with commas between them, as in ``LOCUS_PLUGINS``."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = tuple(part.strip() for part in NOT_BLANK.convert(value, param, ctx).split(","))
        if "" in names:
            self.fail(f"{value!r} has an empty name; write NAME or NAME,NAME", param, ctx)
        return names


NAMES = _Names()


class _Span(click.ParamType[timedelta]):
    """A length of time, such as ``30d``."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = _SPAN.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is not a length of time; write 30d, 12h, 90min or 2w", param, ctx)
        try:
            return timedelta(**{_UNITS[found[2]]: float(found[1])})
        except OverflowError:
            self.fail(f"{value!r} is too long", param, ctx)


_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}

SPAN = _Span()


class Amount(click.FloatRange):
    """A number in a range; neither infinite nor "not a number", which every range of click lets pass."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: it is invalid.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number
