"""What a piece of text says, for the rules: words in one form, quantities, and whether it is denied.

A text is cut into parts at commas, semicolons and conjunctions; a denial reaches as far as its part. That is no
grammar. It is what tells "in stock" from "not in stock", and the price of one thing from that of the next.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from locus_plugin_grounding.quantities import Quantity, iso_dates, read_at

__all__ = ["Part", "parts", "words_of"]

_SMALL_WORDS = """
a about above according actually additionally after again all also although am an and any anyone are as at
based be because been before being below between both but by can could currently did do does done during each either
else even every finally first for from further furthermore got had has have having he her here hers him his
how however i if in indeed into is it its itself just later let like likely many may me might more moreover
most much must my near next now of off on once one only onto or other our ours out over own per please rather
really result results said same says see shall she should since so some still such than that the their theirs
them then there therefore these they this those though through thus to today too total unfortunately under
until up upon us user very was we were what when where whereas which while who whom whose why will with within
would yes yet you your yours
"""
_STOPWORDS: Final = frozenset(_SMALL_WORDS.split())
_NO = "no not never none neither nor cannot without nothing nobody lacks lack false null"
_DENIALS: Final = frozenset(_NO.split())
#: What is the denial of another word.
_OPPOSITES: Final = {
    "unavailable": "available",
    "fail": "succeeded",
    "failed": "succeeded",
    "fails": "succeeded",
    "failure": "succeeded",
    "unsuccessful": "succeeded",
    "success": "succeeded",
    "successful": "succeeded",
    "succeeded": "succeeded",
    "succeeds": "succeeded",
    "disabled": "enabled",
    "closed": "open",
    "invalid": "valid",
    "inactive": "active",
    "offline": "online",
    "unconfirmed": "confirmed",
    "incorrect": "correct",
    "impossible": "possible",
    "incomplete": "complete",
    "unpaid": "paid",
    "rejected": "accepted",
    "denied": "accepted",
    "declined": "accepted",
}
_POSITIVE: Final = frozenset(("success", "successful", "succeeded", "succeeds"))
_PHRASES: Final = (
    (re.compile(r"\b(?:out of|no longer in)\s+stock\b|\bsold[ -]out\b", re.IGNORECASE), "not in stock"),
    (re.compile(r"\b(?:fail(?:s|ed)?|unable|refuse[sd]?|failure)\s+to\b", re.IGNORECASE), "not"),
    (re.compile(r"n['\u2019]t\b", re.IGNORECASE), " not"),
    (re.compile(r"\bnot only\b|\bno doubt\b|\bnot just\b", re.IGNORECASE), ""),
)
_CUT = re.compile(
    r"[;\n|]|,(?=\s|$)|\s[-\u2013\u2014]\s|\b(?:and|but|while|whereas|although|though|however|yet)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|_+")


@frozen
class Part:
    """One part of a text.

    Args:
        terms: its words of content, in one form.
        names: those of them that are written as names.
        quantities: its numbers, dates, times and identifiers.
        denied: whether it is denied.
    """

    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    denied: bool


def stem(word: str) -> str:
    """A word in the form that it has in common with its plural, its past and the like."""
    word = word.casefold().removesuffix("'s").removesuffix("\u2019s")
    if word.isascii():
        for ending, least in (("ation", 8), ("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
            if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is")):
                word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
                break
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
        word = word.removesuffix("e") if len(word) > 3 else word
    return word


def words_of(text: str) -> frozenset[str]:
    """The words of content of a text, of a name in code too: ``book_flight`` -> book, flight."""
    found = _WORD.findall(_CAMEL.sub(" ", text))
    return frozenset(stem(word) for word in found if word.casefold() not in _STOPWORDS)


def _folded(text: str) -> str:
    text = _CAMEL.sub(" ", iso_dates(text))
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text


def parts(text: str) -> tuple[Part, ...]:
    """The parts of a text that say something."""
    made = (_part(each) for each in _CUT.split(_folded(text)))
    return tuple(part for part in made if part.terms or part.quantities)


def _part(text: str) -> Part:
    terms: set[str] = set()
    names: set[str] = set()
    quantities: list[Quantity] = []
    denials, at = 0, 0
    while at < len(text):
        char = text[at]
        starts = char.isalnum() or (char in "$€£-\u2212." and text[at + 1 : at + 2].strip() != "")
        if starts and (at == 0 or not text[at - 1].isalnum()) and (read := read_at(text, at)) is not None:
            quantities.append(read[0])
            at = max(read[1], at + 1)
            continue
        word = _WORD.match(text, at)
        if word is None:
            at += 1
            continue
        at = word.end()
        denials += _take(word[0], terms, names)
    # Zero of something is none of it.
    denials += any(q.kind == "" and q.value == 0 for q in quantities)
    return Part(frozenset(terms), frozenset(names), tuple(quantities), denials % 2 == 1)


def _take(word: str, terms: set[str], names: set[str]) -> int:
    """Note a word; 1 when it denies."""
    folded = word.casefold()
    if folded in _DENIALS:
        return 1
    opposite = _OPPOSITES.get(folded)
    if opposite is not None:
        terms.add(stem(opposite))
        return int(folded not in _POSITIVE)
    if folded in _STOPWORDS or (len(folded) == 1 and folded.isascii()):
        return 0
    form = stem(word)
    terms.add(form)
    if word[0].isupper():
        names.add(form)
    return 0
