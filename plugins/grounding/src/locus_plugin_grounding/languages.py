"""Texts of other languages with their closed-class words in English, so that one set of rules reads them all.

Denials, quantifiers, modal verbs, units, months and the words that carry no fact are a short closed list in every
language; what is left is content, which is compared by its stem. Snowball's stemmers know German, French and Spanish.
Chinese has no spaces: each of its characters that is left is a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Final

import Stemmer  # type: ignore[import-not-found]
from attrs import frozen

from locus_plugin_grounding.glossaries import (
    CHINESE,
    CHINESE_NAMES,
    ENGLISH_ONLY,
    FRENCH,
    FRENCH_ONLY,
    GERMAN,
    GERMAN_ONLY,
    SPANISH,
    SPANISH_ONLY,
)

__all__ = ["ENGLISH", "PREPOSITION", "fold", "language_of", "stem_in"]

ENGLISH: Final = "en"
#: Stands where a preposition was that carries no fact.
PREPOSITION: Final = "\ue003"


@frozen
class _Language:
    """How to recognize a language, fold it and stem its words.

    Args:
        words: by their English ones, ``""`` for what carries no fact.
        months: from the first to the twelfth, as a pattern each.
        tell: words that set it apart from the others.
        letters: letters that do.
        phrases: patterns, and what they become, before words are looked at.
        stemmer: the name of Snowball's algorithm; none for Chinese.
        prepositions: of the words that carry no fact those that end what a verb is about.
    """

    words: Mapping[str, str]
    months: tuple[str, ...]
    tell: frozenset[str]
    letters: str
    phrases: tuple[tuple[re.Pattern[str], str], ...]
    stemmer: str
    prepositions: frozenset[str] = frozenset()


def _phrases(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), to) for pattern, to in pairs)


_LANGUAGES: Final[dict[str, _Language]] = {
    "de": _Language(
        GERMAN,
        (
            *("januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober"),
            *("november", "dezember"),
        ),
        GERMAN_ONLY,
        "äöüß",
        _phrases(
            (r"\bes (?:ist nicht (?:wahr|richtig|so)|stimmt nicht|trifft nicht zu),? dass\b", "it is untrue that"),
            (r"\bwären? (?:beinahe|fast)\b", "not"),
            (r"\b(?:hört|hörte|hören|hörten) auf,? zu\b|\bbar jede[rs]\b", "not"),
            (r"\bmit ausnahme (?:von|de[rs])\b|\babgesehen von\b", "except"),
            # "Den Lehrling lobte der Chef": the article says that what comes first has it done to it.
            (r"^\W*(den|dem|einen|einem) (\w+) (\w+) (der|die|das|ein|eine) (\w+)", r"\4 \5 \3 \1 \2"),
            (r"\b(?:wird|werden|wurden?) von (?:(?:der|dem|den) )?(\w+) (\w+)(?=\W*$)", r"was \2 by \1"),
            (r"\b(?:es )?tut mir (?:sehr )?leid\b|\bentschuldigung\b|\bleider\b|\bbedauerlicherweise\b", " "),
            (r"\b(?:ich (?:glaube|denke|meine)|soweit ich (?:weiß|sehe)|meines wissens|gute nachrichten?)\b", " "),
            (r"\b(\d{1,2}):(\d{2}) uhr\b", r"\1:\2"),
            (r"\b(\d{1,2}) uhr\b", r"\1:00"),
            (r"\b(?:nicht mehr|noch nicht|gar nicht|überhaupt nicht)\b", "not"),
            (r"\bfast alle\b", "most"),
            (r"\bnicht nur\b", " "),
        ),
        "german",
    ),
    "fr": _Language(
        FRENCH,
        (
            *("janvier", "f[ée]vrier", "mars", "avril", "mai", "juin", "juillet", "ao[ûu]t", "septembre", "octobre"),
            *("novembre", "d[ée]cembre"),
        ),
        FRENCH_ONLY,
        "çèêàùœîôë",
        _phrases(
            (r"\bil n['\u2019]est pas vrai qu(?:e|['\u2019])|\bil est faux qu(?:e|['\u2019])", "it is untrue that "),
            (r"\b(?:est|sont|[ée]tait|[ée]taient|[ée]t[ée]|fut|furent) (\w+) par\b", r"was \1 by"),
            (r"\b[àa] l['\u2019]exception d(?:e|u|es|['\u2019])", "except "),
            (r"\b(?:cess[ée]?|cesse[nz]t?|arr[êe]t[ée]|s['\u2019]est abstenue?) (?:de |d['\u2019])", "not "),
            (r"\b(?:(?:d[ée]pourvu|d[ée]nu|priv)[ée]?e?s? (?:de |d['\u2019]))", "without "),
            (r"\b(?:a|ont|avait|avaient) failli\b", "not"),
            (r"\bmanqu(?:e|ent|ait) (?:de |d['\u2019])", "lacks "),
            (r"\b(?:d[ée]sol[ée]e?|malheureusement|h[ée]las|pardon|excusez-moi|bonne nouvelle)\b", " "),
            (
                r"\bje (?:crois|pense|suppose)(?: qu(?:e\b|['\u2019]))?|\b[àa] ma connaissance\b"
                r"|\bautant que je sache\b",
                " ",
            ),
            (r"\bn['\u2019]", "not "),
            (r"\bnot\b(.{1,30}?)\b(?:plus|point)\b", r"not \1"),
            (r"\bne\b(.{1,30}?)\b(?:plus|point)\b", r"not \1"),
            (r"\b(?:[ldsjmtc]|qu|jusqu)['\u2019]", " "),
            (r"\b(\d{1,2}) ?h ?(\d{2})\b", r"\1:\2"),
            (r"\b(\d{1,2}) ?h(?:eures)?\b(?=\W*$)", r"\1:00"),
            (r"\bpresque tous\b", "most"),
            (r"\bpeut[ -]être\b", "may"),
            (r"\b(?:de|du|depuis) ([\w-]+) (?:à|au|jusqu'à|vers) ", r"from \1 to "),
            (r"\b[\w]{3,}(?:er|ir|tr|dr|ttr)(?:a|ont)\b", r"\g<0> will"),
        ),
        "french",
        frozenset(["de", "du", "des", "en", "dans", "sur", "avec", "pour", "par"]),
    ),
    "es": _Language(
        SPANISH,
        (
            *("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "sep?tiembre", "octubre"),
            *("noviembre", "diciembre"),
        ),
        SPANISH_ONLY,
        "ñ¿¡áíóú",
        _phrases(
            (r"\bno es falso que\b", " "),
            (r"\bno es (?:cierto|verdad) que\b|\bes falso que\b", "it is untrue that"),
            (r"\b(?:es|son|fue|fueron|era|eran|sido) (\w+) por\b", r"was \1 by"),
            (r"\best(?:uvo|uvieron|aba|aban) a punto de\b", "not"),
            (r"\ba excepción de(?:l|\b)", "except"),
            (r"\b(?:(?:ha|han|había|habían) dejado|dej(?:a|an|ó|aron|aba|aban)) de (?=\w+[aei]r\b)", "not "),
            (r"\b(?:carec(?:e|en|ía|ían)|falt(?:o|a) de|(?:desprovist|exent|privad)[oa]s?) de\b", "without"),
            (r"\b(?:lo siento|lamentablemente|desafortunadamente|disculpe|perd[oó]n|buenas noticias)\b", " "),
            (r"\b(?:creo|pienso|supongo|me parece)(?: que)?\b|\bque yo sepa\b|\bhasta donde s[ée]\b", " "),
            (r"\btal vez\b|\ba lo mejor\b", "may"),
            (r"\bya no\b", "not"),
            (r"\bcasi todos\b", "most"),
            (r"\b(?:de|desde) ([\w-]+) (?:a|al|hasta) (?=[\w-])", r"from \1 to "),
            (r"\ba (?=[A-ZÁÉÍÓÚ])", "to "),
            (r"\b\w{2,}(?:ará|erá|irá|arán|erán|irán|drá|drán)\b", r"\g<0> will"),
        ),
        "spanish",
        frozenset(["de", "del", "en", "con", "para", "por"]),
    ),
    "zh": _Language(CHINESE, (), frozenset(), "", (), ""),
}
_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_TOKEN = re.compile(r"[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*")
_CHINESE_WORD = re.compile("|".join(sorted((*CHINESE_NAMES, *CHINESE), key=lambda word: -len(word))))
_CHINESE_DATE = re.compile(r"(?:(\d{4})\s*年\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]")
_CHINESE_DIGITS: Final = {sign: n for n, sign in enumerate("零一二三四五六七八九")} | {"两": 2}
_CHINESE_NUMBER = re.compile(
    "[零一二两三四五六七八九十百千万]+(?=[个名位间条张件座天年月周元米次人本辆只种家把支]|百|星期)"
)
_CHINESE_MARKS: Final = {
    0xFF0C: ",",
    0x3001: ",",
    0x3002: ".",
    0xFF1A: ":",
    0xFF1B: ";",
    0xFF01: "!",
    0xFF1F: "?",
    0xFF08: "(",
    0xFF09: ")",
    0xFF05: "%",
}
#: Two denials of one thing: "not un-".
_CHINESE_NOT_NOT = re.compile("(?:(?:并)?不是|并非|不能|没有|无)不(?=[\u4e00-\u9fff])")
_CHINESE_DEED = "借给|卖给|送给|打败|击败|战胜|收购|雇用|雇佣|起诉|逮捕|批评|表扬|杀死|拒绝|取代"
#: The one to whom it is done before the one who does it, and the other way round with the verb at the end.
_CHINESE_PASSIVE = re.compile(f"([\u4e00-\u9fff]{{1,8}})被([\u4e00-\u9fff]{{1,8}}?)({_CHINESE_DEED})")
_CHINESE_OBJECT = re.compile(f"([\u4e00-\u9fff]{{1,8}})把([\u4e00-\u9fff]{{1,8}}?)({_CHINESE_DEED})")
_GROUPED_DOTS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\d.,]*\d)")
_GROUPED_SPACES = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:,\d+)?(?![\d.,]*\d)")
_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d.,]*\d)")


def language_of(text: str) -> str:
    """The language of a sentence: ``"en"``, ``"de"``, ``"fr"``, ``"es"`` or ``"zh"``; English where nothing tells."""
    if len(_CJK.findall(text)) >= 2:
        return "zh"
    words = [word.casefold() for word in re.findall(r"[^\W\d_]+", text)]
    best, most = ENGLISH, float(sum(word in ENGLISH_ONLY for word in words))
    for name, language in _LANGUAGES.items():
        count = sum((word in language.tell) + (word in language.words) / 10 for word in words)
        count += sum(any(sign in language.letters for sign in word) for word in words)
        if count > most:
            best, most = name, count
    return best


def fold(text: str, language: str) -> str:
    """The text with its closed-class words in English, its dates in ISO form and its numbers as English writes them."""
    if language == ENGLISH:
        return text
    if language == "zh":
        return _fold_chinese(text)
    known = _LANGUAGES[language]
    text = _months(language).sub(_iso, text)
    for pattern, to in known.phrases:
        text = pattern.sub(to, text)
    text = (_GROUPED_SPACES if language == "fr" else _GROUPED_DOTS).sub(_ungroup, text)
    text = _COMMA.sub(r"\1.\2", text)
    return _TOKEN.sub(lambda found: _english(found, known), text)


def _english(found: re.Match[str], language: _Language) -> str:
    word = found[0]
    if word.casefold() in language.prepositions:
        return PREPOSITION
    if len(word) == 1 and word.isupper() and found.string[: found.start()].strip():
        return word  # a letter that names something
    return language.words.get(word.casefold(), word)


@cache
def _months(language: str) -> re.Pattern[str]:
    names = "|".join(f"(?P<m{n}>{name})" for n, name in enumerate(_LANGUAGES[language].months, 1))
    return re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:\.|er|º)?(?: de)? (?:{names})\b(?:(?: del?)? (?P<y>\d{{4}})\b)?", re.IGNORECASE
    )


def _iso(found: re.Match[str]) -> str:
    month = next(n for n in range(1, 13) if found[f"m{n}"])
    return _date(found["y"], month, int(found["d"])) or found[0]


def _date(year: str | None, month: int, day: int) -> str:
    try:
        date(int(year) if year else 2000, month, day)
    except ValueError:
        return ""
    return f"{year or '-'}-{month:02}-{day:02}"


def _ungroup(found: re.Match[str]) -> str:
    return re.sub(r"[.\s]", "", found[0]).replace(",", ".")


def _fold_chinese(text: str) -> str:
    text = text.translate(_CHINESE_MARKS)
    text = _CHINESE_NOT_NOT.sub("", text)
    text = _CHINESE_PASSIVE.sub(r"\2\3\1", _CHINESE_OBJECT.sub(r"\1\3\2", text))
    text = _CHINESE_NUMBER.sub(lambda f: f" {_chinese_number(f[0])} ", text)
    text = _CHINESE_DATE.sub(lambda f: f" {_date(f[1], int(f[2]), int(f[3]))} ", text)
    text = _CHINESE_WORD.sub(lambda f: f" {CHINESE.get(f[0], f[0])} ", text)
    text = _CJK.sub(lambda f: f" {f[0]} ", text)
    return re.sub(r"[ \t]+", " ", text)


def _chinese_number(signs: str) -> str:
    total = part = digit = 0
    for sign in signs:
        if sign in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[sign]
        elif sign == "万":
            total, part, digit = (total + part + digit) * 10_000, 0, 0
        else:
            part += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            digit = 0
    return str(total + part + digit)


def stem_in(language: str, word: str) -> str:
    """The stem of a word in small letters: of German, French or Spanish; a word of another language stays as it is."""
    known = _LANGUAGES.get(language)
    if known is None or not known.stemmer:
        return word
    # One object a call: it is not safe to be shared between threads, and costs a microsecond.
    stem = str(Stemmer.Stemmer(known.stemmer, 0).stemWord(word))
    return stem.removesuffix("s") if language == "de" and len(stem) > 4 else stem  # "des Kontos"
