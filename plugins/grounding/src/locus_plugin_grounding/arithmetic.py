"""What follows from returned numbers by reckoning: a calculation that is written out, a sum, a difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from typing import Final

from attrs import frozen

from locus_plugin_grounding.quantities import Quantity

__all__ = ["Calculation", "adds_up", "calculation_in", "compares", "is_total", "without_reckoning"]

_N = r"[-\u2212]?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,12})?"
_WORDS: Final = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "\u00d7": "*",
    "x": "*",
    "\u00f7": "/",
    "\u2212": "-",
}
_OP = r"[-+*/\u00d7\u00f7\u2212x]|plus|minus|times|multiplied by|divided by"
_IS = r"(?:=|is|are|equals|is equal to|makes|gives|comes to|ist|sind|ergibt|macht|fait|est|font|es|son|等于|是)"
_WRITTEN = re.compile(
    rf"(?<![\w.])(?P<left>{_N}(?:\s*(?:{_OP})\s*{_N}){{1,8}})\s*{_IS}\s*(?P<result>{_N})(?![\w]|[.,]\d)", re.IGNORECASE
)
_NAMED = re.compile(
    rf"\bthe (?P<name>sum|product|difference|quotient) (?:of|between) (?P<a>{_N}) and (?P<b>{_N})\s*{_IS}"
    rf"\s*(?P<result>{_N})(?![\w]|[.,]\d)",
    re.IGNORECASE,
)
_SPLIT = re.compile(rf"({_N})|({_OP})", re.IGNORECASE)
_BY_NAME: Final = {"sum": "+", "product": "*", "difference": "-", "quotient": "/"}
_TOTAL = re.compile(
    r"\b(?:in total|total|together|altogether|combined|in all|sum|both|all in all|overall)\b", re.IGNORECASE
)
_LESS = "less fewer cheaper faster shorter quicker lower lighter smaller younger earlier nearer colder cooler"
_MORE = "more slower longer higher heavier bigger larger older later farther further taller warmer hotter"
_COMPARED = re.compile(
    rf"\b(?:(?P<less>{'|'.join(_LESS.split())})|(?P<more>{'|'.join(_MORE.split())}))\b[\w ]{{0,40}}?\bthan\b",
    re.IGNORECASE,
)


@frozen
class Calculation:
    """A calculation that a sentence writes out.

    Args:
        operands: its numbers.
        claimed: its result, as the sentence says.
        right: whether it is.
        rest: the sentence with nothing but the result in its place.
    """

    operands: tuple[Decimal, ...]
    claimed: Decimal
    right: bool
    rest: str


def calculation_in(text: str) -> Calculation | None:
    """The first calculation of a sentence; None if it has none, or none that can be done."""
    if found := _WRITTEN.search(text):
        pieces = [number or _WORDS.get(sign.lower(), sign) for number, sign in _SPLIT.findall(found["left"])]
    elif found := _NAMED.search(text):
        pieces = [found["a"], _BY_NAME[found["name"].lower()], found["b"]]
    else:
        return None
    numbers = [_number(each) for each in pieces[::2]]
    claimed = _number(found["result"])
    with localcontext() as context:
        context.prec = 40
        try:
            value = _reckon(numbers, pieces[1::2])
            digits = int(claimed.as_tuple().exponent)
            right = value == claimed or (digits < 0 and round(value, -digits) == claimed)
        except (DivisionByZero, InvalidOperation, Overflow):
            return None
    rest = f"{text[: found.start()]} {found['result']} {text[found.end() :]}"
    return Calculation(tuple(numbers), claimed, right, rest)


def _number(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("\u2212", "-"))


def _reckon(numbers: Sequence[Decimal], signs: Sequence[str]) -> Decimal:
    terms = [numbers[0]]
    for sign, number in zip(signs, numbers[1:], strict=False):
        if sign in "*/":
            terms[-1] = terms[-1] * number if sign == "*" else terms[-1] / number
        else:
            terms.append(number if sign == "+" else -number)
    return sum(terms, Decimal(0))


def is_total(text: str) -> bool:
    """Whether a sentence says what several things come to."""
    return bool(_TOTAL.search(text))


def compares(text: str) -> tuple[str, str, bool] | None:
    """The two sides of a comparison, and whether the first has less; None for a text without one."""
    found = _COMPARED.search(text)
    return None if found is None else (text[: found.start()], text[found.end() :], found["less"] is not None)


def without_reckoning(text: str) -> str:
    """The text without the words that say how a number came about."""
    return _COMPARED.sub(" and ", _TOTAL.sub(" ", text))


def adds_up(claimed: Quantity, found: Iterable[Quantity]) -> bool:
    """Whether two quantities or more come to a claimed one."""
    values = [q.value for q in found if isinstance(q.value, Decimal)]
    return len(values) > 1 and isinstance(claimed.value, Decimal) and sum(values, Decimal(0)) == claimed.value
