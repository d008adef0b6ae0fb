"""What the default rules look for, by name: functions from a text to the places where it is.

Each finds candidates with one linear pattern and then judges them by what their kind must satisfy: check digits, the
structure of a country's numbers, addresses that lead somewhere. A candidate that fails never hides the one behind it:
numbers are judged group by group, whatever comes before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from itertools import pairwise
from types import MappingProxyType

import phonenumbers
from stdnum import iban, luhn, numdb
from stdnum.us import ssn

from locus.core import Pattern
from locus_plugin_guardrails import attacks, credentials, identities

__all__ = ["DETECTORS", "Detector", "Span"]

Span = tuple[int, int]
Detector = Callable[[str], Iterator[Span]]

_GROUPS = Pattern(r"[0-9]+(?:[ \t.-]{1,2}[0-9]+)*")
_MANY_DIGITS = Pattern(r"[0-9](?:[ \t.-]{0,2}[0-9]){12,}")
_LIKE_SSN = Pattern(r"[0-9]{3}[ \t.-]{1,2}[0-9]{2}[ \t.-]{1,2}[0-9]{4}")
_DOTTED = Pattern(r"[0-9]+(?:\.[0-9]+){3,}")
_COLONS = Pattern(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}")
_EMAIL = Pattern(r"""(?:[\pL\pN._%+'!#$*^~-]+|"[^"\n]{1,64}")@(?:[\pL\pN-]+\.)+(?:\pL{2,}|[xX][nN]--[A-Za-z0-9-]+)""")
_USER = Pattern(r"://[^/\s:@]*:$")
_IBAN = Pattern(r"[A-Za-z]{2}[0-9]{2}")
_INTERNATIONAL = Pattern(r"\+ ?\(?[0-9]")
_NATIONAL = Pattern(r"\(?[2-9][0-9]{2}\)?[ .-]{1,2}[2-9][0-9]{2}[ .-][0-9]{4}")
#: A dot and a dash: the number of a clause (``252.227-7013``).
_MIXED = Pattern(r"^[0-9]{3}\.[0-9]{3}-|^[0-9]{3}-[0-9]{3}\.")
_NAMED_SSN = Pattern(r"(?i)(?:\bssn|social security)[^0-9\n]{0,20}([0-9]{9})")
#: What comes before the number of a version, of a section of a document, or of an object (OID).
_VERSION = Pattern(
    r"(?i)(?:version|release|ver|rev|build|firmware|bootloader|bios|sdk|(?:^|\PL)v|==|>=|<=|~=|@|(?:^|\PL)(?:section|sec|chapter|clause|article|spec|oid|"
    r"objectidentifier)|§)[_ :=.(\"']{0,6}$"
)
#: A version is moved to: ``update V8 to 4.6.85.31``.
_MOVED = Pattern(r"(?i)(?:up|down)(?:grade|date)[a-z]{0,2} (?:[\pL\pN_.-]{1,24} )?(?:back )?(?:to|from) $")
#: The number belongs to a release: ``1.7.3.5 Release Notes``.
_RELEASED = Pattern(r"(?i)^[ \t]{1,2}(?:release|changelog|rc[0-9])")


def _outside(text: str, start: int, end: int, also: str = "_") -> bool:
    """Whether a place is not part of a longer word."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() or before in also or after.isalnum() or after in also)


def email(text: str) -> Iterator[Span]:
    """E-mail addresses; ``git@host:path`` and ``ssh://git@host`` are not."""
    if "@" not in text:
        return
    for start, end in _EMAIL.spans(text):
        if text.startswith("git@", start) and (text[end : end + 1] == ":" or text[max(0, start - 3) : start] == "://"):
            continue
        if text[start - 1 : start] == ":" and _USER.matches(text[max(0, start - 100) : start]):
            continue  # the password and the host of an address
        yield start, end


# -- numbers ------------------------------------------------------------------------------------------


def _groups(text: str, start: int, end: int) -> list[Span]:
    """The runs of digits within a run of groups."""
    found: list[Span] = []
    at = start
    while at < end:
        if not text[at].isdigit():
            at += 1
            continue
        begun = at
        while at < end and text[at].isdigit():
            at += 1
        found.append((begun, at))
    return found


def card(text: str) -> Iterator[Span]:
    """Numbers of payment cards: 13 to 19 digits, in groups or not, of a known issuer, with their check digit."""
    for start, end in _MANY_DIGITS.spans(text):
        groups = _groups(text, start, end)
        first = 0
        while first < len(groups):
            last = _card(text, groups, first)
            if last is not None:
                yield groups[first][0], groups[last][1]
                first = last
            first += 1


def _card(text: str, groups: list[Span], first: int) -> int | None:
    """The last group of the card number that begins with a group, or None."""
    digits = ""
    begin = groups[first][0]
    for last in range(first, len(groups)):
        digits += text[slice(*groups[last])]
        if len(digits) > 19:
            return None
        if len(digits) < 13 or not _is_issued(digits) or not luhn.is_valid(digits):
            continue
        if not _outside(text, begin, groups[last][1]):
            continue
        if last == first and text[begin - 1 : begin] == "." and text[begin - 2 : begin - 1].isdigit():
            continue  # the digits of a fraction
        if not _is_printed(groups[first : last + 1]) or _counts_up(text, groups[first : last + 1]):
            continue  # a list of numbers, a fraction, times of day
        return last
    return None


def _is_printed(groups: list[Span]) -> bool:
    """Whether digits are in groups as on a card: four (Visa, Mastercard), 4-6-5 (Amex), never of one or two digits.

    Digits that are each written by themselves are one group, spelled out.
    """
    sizes = {end - start for start, end in groups}
    return min(sizes) > 2 or sizes == {1}


def _counts_up(text: str, groups: list[Span]) -> bool:
    """Whether each group is the one before it plus one."""
    numbers = [int(text[slice(*group)]) for group in groups]
    return len(numbers) > 1 and all(b - a == 1 for a, b in pairwise(numbers))


def _is_issued(digits: str) -> bool:
    two, four = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return len(digits) in (13, 16, 19)
    if two in (34, 37):
        return len(digits) == 15
    if two in (36, 38, 39) or 300 <= int(digits[:3]) <= 305:
        return 14 <= len(digits) <= 19
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return len(digits) == 16
    return (two in (35, 50, 62, 64, 65, 81) or 56 <= two <= 69) and len(digits) >= 16


def social_security(text: str) -> Iterator[Span]:
    """US social security numbers: ``536-90-4399``, or nine digits that are called one."""
    for start, end in _GROUPS.spans(text) if _LIKE_SSN.matches(text) else ():
        if end - start < 11:
            continue
        groups = _groups(text, start, end)
        for a, b, c in zip(groups, groups[1:], groups[2:], strict=False):
            sizes = (a[1] - a[0], b[1] - b[0], c[1] - c[0])
            number = "-".join(text[slice(*group)] for group in (a, b, c))
            if sizes != (3, 2, 4) or text[a[1] : b[0]] != text[b[1] : c[0]]:
                continue
            if ssn.is_valid(number) and _outside(text, a[0], c[1]):
                yield a[0], c[1]
    if "s" in text or "S" in text:
        for start, end in _NAMED_SSN.spans(text, 1):
            if ssn.is_valid(text[start:end]) and _outside(text, start, end):
                yield start, end


def bank_account(text: str) -> Iterator[Span]:
    """IBANs, in groups or not, of the length and structure that their country gives them, with their check digits."""
    for start, end in _IBAN.spans(text):
        if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            continue
        left = _iban_length(text[start : start + 2].upper()) - 4
        at = end
        while left > 0 and at < len(text):
            char = text[at]
            if char.isascii() and char.isalnum():
                left -= 1
            elif char not in " -" or text[at - 1] in " -":
                break
            at += 1
        ended = at == len(text) or not text[at].isalnum()
        if left == 0 and ended and iban.is_valid(text[start:at], check_country=False):
            yield start, at


@lru_cache(maxsize=1024)
def _iban_length(country: str) -> int:
    """How many characters an IBAN of a country has; 0 where it has none."""
    structure = numdb.get("iban").info(country)[0][1].get("bban", "")
    digits = "".join(char if char.isdigit() else " " for char in structure)
    return 4 + sum(map(int, digits.split())) if structure else 0


def phone(text: str) -> Iterator[Span]:
    """Telephone numbers with their country code, and North American ones in groups."""
    if "+" in text:
        for start, _ in _INTERNATIONAL.spans(text):
            if start and (text[start - 1].isalnum() or text[start - 1] in "+_"):
                continue
            stop = _international(text, start)
            if stop is not None:
                yield start, stop
    for start, end in _NATIONAL.spans(text):
        if _MIXED.matches(text[start:end]):
            continue
        if _is_in_row(text, start, end):
            continue
        if _outside(text, start, end, "_-+.") and _is_dialable(text[start:end], "US", exactly=True):
            yield start, end
    yield from identities.national_phone(text)


def _is_in_row(text: str, start: int, end: int) -> bool:
    """Whether numbers go on before and behind, with the same blank between: a column or a series, not a telephone."""
    between = {char for char in text[start:end] if not char.isdigit()}
    around = {text[max(0, start - 1) : start], text[end : end + 1]}
    return between == around and text[max(0, start - 2) : start - 1].isdigit() and text[end + 1 : end + 2].isdigit()


def _international(text: str, start: int) -> int | None:
    """Where a number that begins with a plus ends, or None."""
    ends: list[int] = []
    at, digits, gap, grouped = start + 1, 0, 0, False
    while at < len(text) and digits < 16:
        char = text[at]
        if char.isascii() and char.isdigit():
            digits, gap = digits + 1, 0
        elif char in " ().-/\t" and gap < 2:
            gap += 1
        else:
            break
        at += 1
        if digits > 6 and gap == 0 and not (at < len(text) and text[at].isdigit()):
            ends.append(at)
    for stop in reversed(ends):
        grouped = any(not char.isdigit() for char in text[start + 1 : stop])
        whole = stop == len(text) or not (text[stop].isalnum() or text[stop] == "_")
        if whole and _is_dialable(text[start:stop], None, exactly=not grouped):
            return stop
    return None


def _is_dialable(number: str, region: str | None, *, exactly: bool) -> bool:
    """Whether the number can exist: its length is right, or, exactly, its range has been given out."""
    try:
        parsed = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_valid_number(parsed) if exactly else phonenumbers.is_possible_number(parsed)


def network_address(text: str) -> Iterator[Span]:
    """IP addresses that lead somewhere: not private, loopback or documentation's, and no version numbers."""
    for start, end in _DOTTED.spans(text):
        if text.count(".", start, end) != 3 or not _outside(text, start, end, "_-"):
            continue
        if text[start - 1 : start] in (".", "/") and text[start - 2 : start - 1] != "/":
            continue  # part of a name or of a path
        before = text[max(0, start - 48) : start]
        if _VERSION.matches(before) or _MOVED.matches(before) or _RELEASED.matches(text[end : end + 12]):
            continue
        if _global(text[start:end]):
            yield start, end
    if ":" in text:
        for start, end in _COLONS.spans(text):
            stop = end - 1 if text[end - 1] == ":" and text[end - 2] != ":" else end
            # What is given out begins with 2 or 3, and shorter forms are rather names of a program.
            if (
                text[start] in "23"
                and stop - start >= 8
                and _outside(text, start, stop, "_")
                and _global(text[start:stop])
            ):
                yield start, stop


def _global(address: str) -> bool:
    if address.endswith(".0.0"):
        return False  # a network's (RFC 4632), or a version
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


#: By the names that rules use.
DETECTORS: Mapping[str, Detector] = MappingProxyType(
    {
        "address": identities.address,
        "card": card,
        "email": email,
        "iban": bank_account,
        "id": identities.identity,
        "injection": attacks.injection,
        "ip": network_address,
        "key": credentials.keys,
        "markup": attacks.markup,
        "path": attacks.path,
        "phone": phone,
        "shell": attacks.shell,
        "sql": attacks.sql,
        "ssn": social_security,
    }
)
