"""Values of a file that JSON does not have: no answer and no call of a tool can ever be equal to one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from typing import Any, TypeAlias

from locus.schema import safe_repr

__all__ = ["Fault", "find_no_json"]

#: What is wrong, and where: names, and ``"[n]"`` for the items of lists.
Fault: TypeAlias = tuple[tuple[str, ...], str]

#: Bits of a whole number: Python makes no text of one with 4,300 digits, which are 14,284 bits.
_MOST_BITS = 8_192


def find_no_json(value: Any, path: tuple[str, ...] = ()) -> Iterator[Fault]:
    """What JSON does not have in a value of YAML: a date, bytes, a set, NaN, infinity, a name that is not text.

    Args:
        value: without an alias within itself.
        path: of the value.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            if isinstance(key, str):
                yield from find_no_json(each, (*path, key))
            else:
                expected = "a name that is text (in quotes, if it looks like a number, a date or yes and no)"
                yield path, f"expected {expected}, got {safe_repr(key)}"
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from find_no_json(each, (*path, f"[{n}]"))
    elif isinstance(value, date):  # a datetime is one
        yield path, f"expected a value of JSON (in quotes, if it looks like a date), got {safe_repr(value)}"
    elif not _is_plain(value):
        yield path, f"expected a value of JSON, got {_describe(value)}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _MOST_BITS
    return value is None or isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _describe(value: Any) -> str:
    return "a number of too many digits" if isinstance(value, int) else safe_repr(value)
