"""From an answer to its claims, sentence by sentence. A decimal point, an abbreviation and a list's number end none."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import east_asian_width

from locus_plugin_grounding.facts import parts
from locus_plugin_grounding.languages import language_of

__all__ = ["claims_of", "sentences"]

#: A claim has more characters than this.
SHORTEST = 10
#: A longer one is not taken apart to see whether it says anything.
_LONGEST: Final = 2_000

_END = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s|$)|\n+|(?<=[\u3002\uff01\uff1f])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|no|nr|vs|cf|etc|approx|ca|inc|ltd|corp|co|fig|vol|dept|est|e\.g|i\.e|a\.m|p\.m"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)|\b[A-Z]|^\s*\d{1,3})\.$",
    re.IGNORECASE,
)
_MARKS = re.compile(r"^(?:\s*(?:[-*\u2022>|]|#{1,6}|\d{1,3}[.)])(?=\s))+\s*")
_COURTESY = re.compile(
    r"(?:let me know|feel free|i hope (?:this|that) helps|happy to help|thanks|thank you"
    r"|you(?:'|\u2019)re welcome)\b[^\d:;]*$"
    r"|(?:(?:hello|hi|hey|welcome|good (?:morning|afternoon|evening)|bonjour|merci|de rien|hola|gracias|de nada|hallo"
    r"|danke|guten (?:tag|morgen|abend)|gern geschehen|bitte sch\u00f6n)\b|\u4f60\u597d|\u60a8\u597d|\u8c22\u8c22"
    r"|\u4e0d\u5ba2\u6c14|\u4e0d\u7528\u8c22)[^\d:;]{0,24}$"
    r"|i(?:'|\u2019| a)m (?:(?:your|an?|the) (?:[\w-]+ ){0,3}assistant|(?:here|happy|glad|ready|able) to"
    r" (?:help|assist))\b[^\d:;]{0,40}$"
    r"|i(?:(?:'|\u2019)d| would) be (?:happy|glad)\b[^\d:;]{0,60}$|i can (?:help|assist)\b[^\d:;]{0,30}$",
    re.IGNORECASE,
)

_PLAN = re.compile(
    r"(?:(?:ok(?:ay)?|sure|now|next|first|then|so|great|good|alright)[,!.]?\s+)*"
    r"(?:let(?:'|\u2019)?s?\s+me\b|let(?:'|\u2019)s\b|(?:i|we)(?:(?:'|\u2019)ll|\s+(?:will|shall|should|need\s+to|must|have\s+to|can|am\s+going"
    r"|are\s+going|want\s+to|would))\b|(?:i|we)(?:'|\u2019)(?:m|re)\s+going\b)",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the marks of lists and headings, each with what ends it."""
    found, start = [], 0
    for end in _END.finditer(text):
        if end[0].startswith(".") and len(end[0]) == 1:
            before = text[text.rfind("\n", 0, end.start()) + 1 : end.end()][-16:]
            if _ABBREVIATION.search(before):
                continue
        found.append(text[start : end.end()])
        start = end.end()
    found.append(text[start:])
    stripped = (_MARKS.sub("", each).strip() for each in found)
    return [each for each in stripped if each]


def claims_of(text: str, *, plans: bool = True) -> tuple[str, ...]:
    """What a text claims: its sentences of more than 10 characters that are neither questions nor mere courtesy.

    Args:
        text: an answer, or what was said beside tool calls.
        plans: whether a sentence that says what will be done ("Let me look ...") is a claim. In an answer it is: what
            follows such words there may be anything.
    """
    return tuple(
        each
        for each in sentences(text)
        if _width(each) > SHORTEST
        and not each.rstrip("\"'\u201d\u2019)]*_ ").endswith(("?", ":"))
        and not _COURTESY.match(each)
        and (plans or not _PLAN.match(each))
        and _says_something(each)
    )


def _width(text: str) -> int:
    """Characters, of which a wide one, such as Chinese has, is two: it says as much as several letters."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _says_something(sentence: str) -> bool:
    """Whether anything is left of a sentence without hedges and the words that carry no fact."""
    return len(sentence) > _LONGEST or any(p.terms or p.quantities for p in parts(sentence, language_of(sentence)))
