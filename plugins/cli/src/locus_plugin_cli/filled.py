"""Kinds of values that options take, beyond those of click. Imports nothing of the kernel."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["FILLED", "Amount"]


class _Filled(click.ParamType[str]):
    """Text with something in it: what is empty is most likely a variable of a script that nobody set."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip():
            self.fail("it is empty; leave the option out, or give it a value", param, ctx)
        return text


FILLED = _Filled()


class Amount(click.FloatRange):
    """A number in a range; neither infinite nor "not a number", which every range of click lets pass."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: it is none.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number
