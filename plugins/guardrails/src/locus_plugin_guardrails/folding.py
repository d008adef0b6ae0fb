r"""Texts as they are read, whatever they are written with.

A rule that looks for ``alice@example.com`` must find it with a full-width ``@``, a zero-width joiner inside, a Cyrillic
letter in the place of ``a``, or written ``alice%40example.com`` or ``alice\u0040example.com``. So rules are asked about
the text and about its folded form, which remembers where each of its characters comes from: what is cut out is cut out
of the original.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from attrs import frozen

from locus.core import Pattern

__all__ = ["FoldedText", "fold"]

#: What is not read as it is written: other than ASCII, and one character written as several (in JSON, URLs and HTML),
#: where a URL's percent sign may be written as several as well, repeatedly.
_OTHER = Pattern(r"[^\x00-\x7f]+|\\u[0-9a-fA-F]{4}|%(?:25)*[0-9a-fA-F]{2}|&#[0-9]{1,7};|&#[xX][0-9a-fA-F]{1,6};")

#: Letters of other scripts that look like Latin ones, and signs that look like ASCII's. (Unicode's own compatibility
#: forms, full-width letters among them, need no table.)
# ruff: noqa: RUF001  # look-alikes are what this table is about
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝӏвкмнтАВЕКМНОРСТУХІЈЅԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧαογνικρτυχɑɡɩʀʏѵꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ。∕⁄∖−ꞏ∙‹›ǃ：",
    "aeopcyxijsdhqwlbkmhtABEKMHOPCTYXIJSGQWABEZHIKMNOPTYXaoyvikptuxagiRYvABCDEFGHIJKLMNOPRSTUVWXYZ.//\\-..<>!:",
)

#: Letters, by their category, that show nothing.
_BLANKS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


@frozen
class FoldedText:
    """A text as it is read.

    Args:
        text: the folded form.
        starts: for each of its characters, where in the original it begins.
        ends: and where it ends.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the folded form; it is not empty."""
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> FoldedText | None:
    """The folded form, or None where it is the text itself."""
    if text.isascii() and not ("%" in text or "\\u" in text or "&#" in text):
        return None
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for start, end in _OTHER.spans(text):
        parts.append(text[at:start])
        starts.extend(range(at, start))
        ends.extend(range(at + 1, start + 1))
        if text[start].isascii():
            written = [(start, end, _unescape(text[start:end]))]
        else:
            written = [(place, place + 1, _read(text[place])) for place in range(start, end)]
        for begin, stop, read in written:
            parts.append(read)
            starts.extend([begin] * len(read))
            ends.extend([stop] * len(read))
        at = end
    parts.append(text[at:])
    starts.extend(range(at, len(text)))
    ends.extend(range(at + 1, len(text) + 1))
    folded = "".join(parts)
    return None if folded == text else FoldedText(folded, tuple(starts), tuple(ends))


def _unescape(escape: str) -> str:
    if escape[0] == "&":
        number = int(escape[3:-1], 16) if escape[2] in "xX" else int(escape[2:-1])
    else:
        number = int(escape[-2:] if escape[0] == "%" else escape[2:], 16)
    # Surrogates, and bytes of a longer character, mean nothing by themselves.
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF or (escape[0] == "%" and number > 0x7F):
        return escape
    return "".join(_read(char) for char in chr(number))


@lru_cache(maxsize=4096)
def _read(char: str) -> str:
    """What a character is read as; nothing, for one that cannot be seen."""
    if char.isascii():
        return char
    if char in _BLANKS:
        return ""
    read = ""
    for each in unicodedata.normalize("NFKD", char):
        category = unicodedata.category(each)
        if category in ("Cf", "Mn", "Me") or each in _BLANKS:
            continue
        if category == "Nd":
            read += str(unicodedata.decimal(each))
        elif category == "Pd":
            read += "-"
        elif category == "Zs":
            read += " "
        else:
            read += each.translate(_LOOKALIKES)
    return read
