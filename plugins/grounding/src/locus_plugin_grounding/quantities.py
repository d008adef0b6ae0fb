"""Numbers, dates, times and identifiers, in one form, so that equal ones are equal however they are written.

A closed table of formats and units, and everything else equal to itself alone. Libraries that read quantities and
dates out of prose (dateparser, quantulum3) guess, and a guess that two texts mean the same number is what this module
must not make; pint converts units that it is given, and finds none in a sentence.
The table is English: a comma groups thousands, a point begins decimals.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Final

from attrs import field, frozen

__all__ = ["ADDRESS", "Quantity", "iso_dates", "read_at", "same", "use_signs"]


@frozen
class Quantity:
    """A number with its unit, a date, a time of day or an identifier.

    Args:
        kind: ``""`` a bare number, a dimension (``"length"``, ``"USD"``, ...), ``"date"``, ``"clock"`` or ``"id"``.
        value: in the dimension's base unit; text of a date (``"--05-04"`` without a year) or of an identifier.
        raw: a number as it is written; None if it is not a number.
        bound: ``">"`` where it is a lower bound ("at least 40"), ``"<"`` for an upper one.
    """

    kind: str
    value: Decimal | str
    raw: Decimal | None = None
    bound: str = field(default="", eq=False)


def same(claimed: Quantity, found: Quantity) -> bool:
    """Whether evidence has the quantity of a claim.

    A number without a unit is the same number with any; a date without a year is that day of any year. A lower bound is
    no upper one.
    """
    if {claimed.bound, found.bound} == {"<", ">"}:
        return False
    if claimed.kind == found.kind == "date":
        one, other = str(claimed.value), str(found.value)
        return one == other or (one[-6:] == other[-6:] and "--" in (one[:2], other[:2]))
    if claimed.kind == found.kind:
        return claimed.value == found.value
    bare = "" in (claimed.kind, found.kind)
    return bare and claimed.raw is not None and claimed.raw == found.raw


# -- dates ----------------------------------------------------------------------------------------

_NAMES = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct"
    "|november nov|december dec"
)
_MONTHS: Final = {name: n for n, names in enumerate(_NAMES.split("|"), 1) for name in names.split()}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DMY = re.compile(
    rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m>{_MONTH})\b\.?(?:,?\s+(?P<y>\d{{4}})\b)?", re.IGNORECASE
)
_MDY = re.compile(
    rf"\b(?P<m>{_MONTH})\b\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<y>\d{{4}})\b)?", re.IGNORECASE
)


def _iso(match: re.Match[str]) -> str:
    year, month, day = match["y"], _MONTHS[match["m"].lower()], int(match["d"])
    try:
        date(int(year) if year else 2000, month, day)
    except ValueError:
        return match[0]
    return f"{year or '-'}-{month:02}-{day:02}"


_CODE = re.compile(r"(?<![\d\w])(?<!\d )(?:US\$|(USD|EUR|GBP|JPY)) ?(?=\d)")


def use_signs(text: str) -> str:
    """The text with currencies before a number as signs: ``USD 5`` -> ``$5``."""
    return _CODE.sub(lambda found: _CODES[found[1] or "USD"], text)


def iso_dates(text: str) -> str:
    """The text with the dates whose month is a word in ISO form: ``4 May 2026`` -> ``2026-05-04``."""
    return _MDY.sub(_iso, _DMY.sub(_iso, text))


# -- numbers --------------------------------------------------------------------------------------

#: Unit -> (dimension, factor). Without "in", which is a word, and "t" and "d", which are letters.
_SINGULAR: Final[dict[str, tuple[str, Decimal]]] = {
    unit: (dimension, Decimal(factor))
    for dimension, units in {
        "length": {
            "mm": "0.001",
            "cm": "0.01",
            "m": "1",
            "meter": "1",
            "metre": "1",
            "km": "1000",
            "kilometer": "1000",
            "kilometre": "1000",
            "mi": "1609.344",
            "mile": "1609.344",
            "ft": "0.3048",
            "feet": "0.3048",
            "foot": "0.3048",
        },
        "mass": {
            "mg": "0.001",
            "g": "1",
            "gram": "1",
            "kg": "1000",
            "kilogram": "1000",
            "tonne": "1000000",
            "lb": "453.59237",
            "lbs": "453.59237",
            "pound": "453.59237",
        },
        "volume": {"ml": "0.001", "l": "1", "liter": "1", "litre": "1"},
        "time": {
            "ms": "0.001",
            "millisecond": "0.001",
            "s": "1",
            "sec": "1",
            "second": "1",
            "min": "60",
            "mins": "60",
            "minute": "60",
            "h": "3600",
            "hr": "3600",
            "hrs": "3600",
            "hour": "3600",
            "day": "86400",
            "week": "604800",
        },
        "months": {"month": "1", "year": "12"},
        "data": {
            "byte": "1",
            "kb": "1000",
            "mb": "1000000",
            "gb": "1000000000",
            "tb": "1000000000000",
            "kib": "1024",
            "mib": "1048576",
            "gib": "1073741824",
        },
        "percent": {"%": "1", "percent": "1"},
        "celsius": {"°c": "1"},
        "fahrenheit": {"°f": "1"},
        "USD": {"usd": "1", "dollar": "1"},
        "EUR": {"eur": "1", "euro": "1", "€": "1"},
        "GBP": {"gbp": "1", "£": "1"},
        "JPY": {"jpy": "1", "yen": "1", "¥": "1"},
    }.items()
    for unit, factor in units.items()
}
_UNITS: Final = _SINGULAR | {f"{unit}s": to for unit, to in _SINGULAR.items() if len(unit) > 2 and unit.isalpha()}
_SCALES: Final = {
    "k": Decimal(1000),
    "thousand": Decimal(1000),
    "M": Decimal(1000000),
    "million": Decimal(1000000),
    "bn": Decimal(1000000000),
    "billion": Decimal(1000000000),
}
_SIGNS: Final = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_CODES: Final = {code: sign for sign, code in _SIGNS.items()}
_COUNTED = "two three four five six seven eight nine ten eleven twelve"
#: "One" is left out: it may mean anything.
_WORDS: Final = {"zero": Decimal(0)} | {word: Decimal(n) for n, word in enumerate(_COUNTED.split(), 2)}

_DATE = re.compile(r"(?:\d{4}|-)-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?=T\d|(?!\w))")
_CLOCK = re.compile(r"T?(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::[0-5]\d(?:\.\d+)?)?(?:\s?(?P<half>[ap])\.?m\b\.?)?Z?")
_HOUR = re.compile(r"(?P<h>1[0-2]|[1-9])\s?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE)
_DOTTED = re.compile(r"\d+(?:\.\d+){2,}(?!\w)")
_NUMBER = re.compile(
    r"(?P<sign>[$€£¥])?\s?(?P<minus>[-\u2212](?=[\d$€£¥]))?(?P<late>[$€£¥])?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:(?P<scale>k|M|bn)|[\s-](?P<word>thousand|million|billion))?(?![\w,.]{0,20}\d|(?<=[kMn])[A-Za-z])"
)
_UNIT = re.compile(r"[\s-]?(%|°[CcFf]|[€£¥]|[A-Za-z]+)(?![A-Za-z0-9])")
_ID = re.compile(r"(?=[\w./-]{0,60}\d)(?=[\w./-]{0,60}[A-Za-z])[A-Za-z0-9]{1,60}(?:[-_./][A-Za-z0-9]{1,60}){0,20}")
_DIGITS = re.compile(r"\d{1,40}(?:[-/.]\d{1,40}){1,20}")
#: An address of mail, of a page or of a file: one name, which is equal to itself alone.
ADDRESS: Final = re.compile(
    r"(?<![\w@./\\-])(?:[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
    r"|[a-z]{2,10}://[^\s\"'<>()\[\]{}|,;]{1,300}"
    r"|(?:[A-Za-z]:\\|\\\\|~?/|\.{1,2}/)(?:[\w.@%+-]{1,100}[/\\]){0,30}[\w.@%+-]{1,100}"
    r"|(?=[\w.@%+/-]{0,200}[A-Za-z_])(?:[\w.@%+-]{1,60}/){1,20}[\w@%+-]{1,60}\.[A-Za-z]\w{0,7}"
    r"|[A-Za-z_][\w-]{0,60}\.(?:py|js|ts|md|txt|json|yaml|yml|toml|csv|log|pdf|png|jpe?g|html?|xml|zip|tar|gz|docx?|xlsx?|sh|ini|cfg|com|org|net|io|de|fr|es|cn))"
    r"(?<![.,;:!?])(?![\w@])"
)
_LETTERS = re.compile(r"[A-Za-z]+\b")
#: Characters of a number that is reckoned with; decimals are exact to 28 digits.
_LONGEST = 20


def read_at(text: str, at: int) -> tuple[Quantity, int] | None:
    """The quantity that begins at a position, and where it ends.

    Args:
        text: with its dates in ISO form.
        at: the beginning of a token.
    """
    if found := ADDRESS.match(text, at):
        return Quantity("id", found[0].casefold()), found.end()
    if found := _DATE.match(text, at):
        return Quantity("date", found[0]), found.end()
    for clock in (_CLOCK, _HOUR):
        if found := clock.match(text, at):
            hour = int(found["h"]) % 12 + (12 if found["half"] in ("p", "P") else 0) if found["half"] else found["h"]
            minute = int(found["m"]) if clock is _CLOCK else 0
            return Quantity("clock", f"{int(hour):02}:{minute:02}"), found.end()
    if found := _DOTTED.match(text, at):
        return Quantity("id", found[0]), found.end()
    return _number(text, at) or _read_named(text, at)


def _number(text: str, at: int) -> tuple[Quantity, int] | None:
    found = _NUMBER.match(text, at)
    if found is None:
        return None
    if len(found["number"]) > _LONGEST:
        return Quantity("id", found["number"]), found.end()
    scale = _SCALES.get(found["scale"] or found["word"] or "", Decimal(1))
    raw = Decimal(found["number"].replace(",", "")) * scale * (-1 if found["minus"] else 1)
    sign, end = found["sign"] or found["late"], found.end()
    if sign:
        return Quantity(_SIGNS[sign], raw, raw), end
    if unit := _UNIT.match(text, end):
        known = _UNITS.get(unit[1].lower())
        if known is not None and not (unit[1] == "M" or (text[end : end + 1] == "-" and len(unit[1]) == 1)):
            return Quantity(known[0], raw * known[1], raw), unit.end()
    if end < len(text) and (text[end].isalpha() or (text[end] in "-_/" and text[end + 1 : end + 2].isdigit())):
        # "4f2a" is a name, and so is "12/34"; a range is two numbers.
        if text[end] == "-" and not found["minus"]:
            return Quantity("", raw, raw), end + 1
        return None
    return Quantity("", raw, raw), end


def _read_named(text: str, at: int) -> tuple[Quantity, int] | None:
    if found := _ID.match(text, at):
        return Quantity("id", found[0].casefold()), found.end()
    if found := _DIGITS.match(text, at):
        return Quantity("id", found[0]), found.end()
    if (found := _LETTERS.match(text, at)) and (value := _WORDS.get(found[0].lower())) is not None:
        unit = _UNIT.match(text, found.end())
        known = _UNITS.get(unit[1].lower()) if unit and len(unit[1]) > 2 else None
        if unit and known is not None:
            return Quantity(known[0], value * known[1], value), unit.end()
        return Quantity("", value, value), found.end()
    return None
