"""Numbers of identity papers, telephone numbers as a country writes them, and postal addresses.

Each is found by the word before it, and judged by the rules of its country: nine digits are the number of a passport only
behind the word passport. Check digits are verified by python-stdnum.
"""

# ruff: noqa: E501, RUF001  # patterns are tables
from __future__ import annotations

from collections.abc import Callable, Iterator

import phonenumbers
from stdnum.at import vnr
from stdnum.au import tfn
from stdnum.be import nn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ahv
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar, pan
from stdnum.it import codicefiscale
from stdnum.kr import rrn
from stdnum.mx import curp
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.tr import tckimlik
from stdnum.za import idnr as za

from locus.core import Pattern

__all__ = ["address", "identity", "national_phone"]

#: Between a word and its number: ``No.``, ``number:``, ``is``, `` = ``.
_OF = r"[\"']?(?:[ \t_-]?(?:no|nr|num|number|numero|número|numéro|nummer|id|code|card)\b)?\.?[\"']?[ \t]{0,3}(?:[:=#：]|is|ist|est|es)?[ \t]{0,3}[\"']?"

#: The word, the form, and what checks it; None = the word and the form are enough.
_PAPERS: tuple[tuple[str, str, Callable[[str], bool] | None], ...] = (
    (
        r"passport|reisepass|passeport|pasaporte|passaporto|personalausweis|护照",
        r"[A-Z0-9]{1,3}[0-9][A-Z0-9]{5,8}",
        None,
    ),
    (r"driv(?:er|ing)'?s?[ _]licen[sc]e|führerschein", r"[A-Z0-9]{5,18}", None),
    (r"nino|national insurance", r"[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", None),
    (r"dni|nif", r"[0-9]{8}-?[A-Z]", dni.is_valid),
    (r"nie", r"[XYZ]-?[0-9]{7}-?[A-Z]", nie.is_valid),
    (r"codice fiscale|c\.?f\.?", r"[A-Z]{6}[0-9A-Z]{2}[A-Z][0-9A-Z]{2}[A-Z][0-9A-Z]{3}[A-Z]", codicefiscale.is_valid),
    (r"cpf", r"[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}", cpf.is_valid),
    (r"pesel", r"[0-9]{11}", pesel.is_valid),
    (r"bsn|burgerservicenummer", r"[0-9]{8,9}", bsn.is_valid),
    (r"ahv|avs", r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", ahv.is_valid),
    (r"pan", r"[A-Z]{5}[0-9]{4}[A-Z]", pan.is_valid),
    (r"aadhaar", r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}", aadhaar.is_valid),
    (r"steuer-?(?:id|nummer)|identifikationsnummer", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", idnr.is_valid),
    (r"sécurité sociale|nir", r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9AB]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", nir.is_valid),
    (r"nhs", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", nhs.is_valid),
    (r"personnummer", r"(?:[0-9]{2})?[0-9]{6}[-+]?[0-9]{4}", personnummer.is_valid),
    (r"fødselsnummer", r"[0-9]{6} ?[0-9]{5}", fodselsnummer.is_valid),
    (r"cpr", r"[0-9]{6}-?[0-9]{4}", cpr.is_valid),
    (r"hetu|henkilötunnus", r"[0-9]{6}[-+A-Y][0-9]{3}[0-9A-Z]", hetu.is_valid),
    (r"curp", r"[A-Z]{4}[0-9]{6}[A-Z]{6}[0-9A-Z]{2}", curp.is_valid),
    (r"sin|social insurance", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", sin.is_valid),
    (r"tfn|tax file", r"[0-9]{3} ?[0-9]{3} ?[0-9]{2,3}", tfn.is_valid),
    (r"rrn|주민등록번호", r"[0-9]{6}-?[0-9]{7}", rrn.is_valid),
    (r"身份证号?码?", r"[0-9]{17}[0-9X]", ric.is_valid),
    (r"rijksregisternummer|registre national", r"[0-9]{2}\.?[0-9]{2}\.?[0-9]{2}-?[0-9]{3} ?[0-9]{2}", nn.is_valid),
    (r"sozialversicherungsnummer|svnr", r"[0-9]{4} ?[0-9]{6}", vnr.is_valid),
    (r"kimlik", r"[0-9]{11}", tckimlik.is_valid),
    (r"south african id", r"[0-9]{13}", za.is_valid),
)
_ANY_PAPER = Pattern("(?i)" + "|".join(word for word, _, _ in _PAPERS))
_WORDS = [Pattern(rf"(?i)(?:^|[^\pL])(?:{word}){_OF}") for word, _, _ in _PAPERS]
_FORMS = [Pattern(rf"^(?i:{form})") for _, form, _ in _PAPERS]


def identity(text: str) -> Iterator[tuple[int, int]]:
    """Numbers of passports, licences, taxpayers, patients and the insured, behind the word for them."""
    if not _ANY_PAPER.matches(text):
        return
    for (_, _, check), word, form in zip(_PAPERS, _WORDS, _FORMS, strict=True):
        for _, end in word.spans(text):
            found = next(form.spans(text[end : end + 40]), None)
            if found is None:
                continue
            number, after = text[end : end + found[1]], text[end + found[1] : end + found[1] + 1]
            if not after.isalnum() and any(map(str.isdigit, number)) and (check is None or check(number.upper())):
                yield end, end + found[1]


# -- telephone numbers --------------------------------------------------------------------------------

_PHONE_WORD = Pattern(
    r"(?i)(?:^|[^\pL])(?:tele?(?:fone?|fono|phone|foon)?|tél(?:éphone)?|teléfono|mobile?|móvil|handy|natel|cell(?:phone)?|phone|"
    r"fax|whatsapp|sms|call(?: me| us)?|ring|reach (?:me|us)|number to call)[\"']?(?:[ \t_](?:no|nr|number|me|us|the office|"
    r"is|at|on|est le|est))*[\"']?[ \t]{0,2}[.:=,：]{0,2}[ \t]{0,3}[\"']?|(?:电话|電話|手机|手機|전화)(?:番号|号码)?(?:は|是)?[:：]? ?"
)
_PHONE_NUMBER = Pattern(r"^\(?[0-9][0-9() \t./-]{5,20}[0-9]")
_DATE = Pattern(
    r"^(?:19|20)[0-9]{2}[./-](?:0[1-9]|1[0-2])[./-][0-3][0-9]$|^[0-3][0-9][./-](?:0[1-9]|1[0-2])[./-](?:19|20)[0-9]{2}$"
)
#: Where a number without a country code may be from; it must exist in one of these.
_REGIONS = (
    "US",
    "GB",
    "DE",
    "FR",
    "ES",
    "IT",
    "CH",
    "AT",
    "NL",
    "BE",
    "PL",
    "BR",
    "MX",
    "IN",
    "JP",
    "CN",
    "KR",
    "AU",
    "ZA",
    "SE",
)


def national_phone(text: str) -> Iterator[tuple[int, int]]:
    """Telephone numbers without a country code, behind a word for a telephone."""
    for _, end in _PHONE_WORD.spans(text):
        found = next(_PHONE_NUMBER.spans(text[end : end + 24]), None)
        if found is None:
            continue
        number = text[end : end + found[1]]
        after = text[end + found[1] : end + found[1] + 1]
        if (after.isascii() and after.isalnum()) or not 8 <= sum(map(str.isdigit, number)) <= 13:
            continue
        if _DATE.matches(number):
            continue
        if any(_exists(number, region) for region in _REGIONS):
            yield end, end + found[1]


def _exists(number: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


# -- addresses ----------------------------------------------------------------------------------------

#: One cheap pass finds whether any street is named: most texts need no second one.
_STREET = Pattern(
    r"[ \t](?:St|Street|Ave|Avenue|Rd|Road|Ln|Lane|Dr|Drive|Blvd|Boulevard|Terrace|Ct|Court|Pl|Place|Sq|Square|Way|Loop|Pkwy|"
    r"Parkway|Close|Crescent|Hwy|Highway|rue|avenue|av|boulevard|bd|place|chemin|impasse|allée|quai)[^\pL]"
    r"|(?:[sS]traße|[sS]trasse|[sS]tr\.|[wW]eg|[pP]latz|[gG]asse|[aA]llee|[sS]traat|[lL]aan)[ \t]+[0-9]"
    r"|\b(?:Via|Viale|Piazza|Corso|Calle|Avenida|Avda\.|Plaza|Paseo|Rua)[ \t]"
)
#: A house, a street that is called one, and the postal code of its town: without all three it is a place, not a home.
_ADDRESSES = Pattern(
    r"\b[0-9]{1,5}[A-Za-z]?[ \t]+(?:[\pL.'-]+[ \t]+){0,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|"
    r"Terrace|Court|Ct|Place|Pl|Square|Sq|Way|Loop|Parkway|Pkwy|Close|Crescent|Highway|Hwy)\b\.?(?:[ \t](?:NW|NE|SW|SE|N|S|E|W))?"
    r"(?:,[ \t]*[\pL0-9 .#'-]{1,30}){0,2},?[ \t]+(?:[A-Z]{2}[ \t]+[0-9]{5}(?:-[0-9]{4})?|[A-Z]{1,2}[0-9][A-Z0-9]?[ \t]?[0-9][A-Z]{2}|"
    r"(?:NSW|VIC|QLD|WA|SA|TAS|ACT|NT)[ \t]+[0-9]{4}|[A-Z][0-9][A-Z][ \t]?[0-9][A-Z][0-9])\b"
    r"|\b[\pL-]*(?:[sS]traße|[sS]trasse|[sS]tr\.|[wW]eg|[pP]latz|[gG]asse|[aA]llee|[sS]traat|[lL]aan)[ \t]+[0-9]{1,4}[ \t]?[a-z]?"
    r",[ \t]*(?:[A-Z]{1,2}-)?[0-9]{4,5}(?:[ \t]?[A-Z]{2})?[ \t]+\pL[\pL.-]+"
    r"|\b[0-9]{1,4}(?:[ \t]?(?:bis|ter))?,?[ \t]+(?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|allée|quai)[ \t]+"
    r"(?:[\pL.'’-]+[ \t]?){1,6},[ \t]*[0-9]{5}[ \t]+\pL[\pL-]+"
    r"|\b(?:Via|Viale|Piazza|Corso|Calle|Avenida|Avda\.|Plaza|Paseo|Rua)[ \t]+(?:[\pL.']+[ \t]*){1,5},?[ \t]*[0-9]{1,4},?[ \t]+"
    r"[0-9]{4,5}(?:-[0-9]{3})?[ \t]+\pL[\pL-]+"
)


def address(text: str) -> Iterator[tuple[int, int]]:
    """Postal addresses: a house, its street, and a postal code."""
    return _ADDRESSES.spans(text) if _STREET.matches(text) else iter(())
