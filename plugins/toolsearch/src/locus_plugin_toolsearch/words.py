"""The words of a text, as retrieval by words compares them.

Names of tools are words joined in some style, and words come in forms: both sides go through the same function. The
stems are those of English (by Snowball), the rest serves any language; scripts that are written without spaces are cut
in pairs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import Stemmer  # type: ignore[import-not-found]

__all__ = ["grams", "stems", "weigh", "words"]

#: How much a word that every text has counts in a query; the letters of a piece of a word.
_COMMON_WEIGHT, _GRAM = 0.5, 4

_COMMON = (
    "a about an and any are at be can could did do for from get give has have how i in is it many me much my now of on "
    "or out please put should show that the there this to up us was we what when where which who will with would you "
    "your"
)
_STOP = frozenset(_COMMON.split())
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words(text: str) -> list[str]:
    """The words of a text or of a name (``get_userData``), in order, without those that every text has."""
    return [stem for word, stem in _split(text) if word not in _STOP]


def _split(text: str) -> list[tuple[str, str]]:
    """The words of a text, each with its stem."""
    plain = _HUMP.sub(" ", text)
    if plain.isascii():
        found = _WORD.findall(plain.lower())
    else:
        decomposed = unicodedata.normalize("NFKD", plain.casefold())
        bare = unicodedata.normalize("NFC", "".join(c for c in decomposed if unicodedata.category(c) != "Mn"))
        found = [part for word in _WORD.findall(bare) for part in _parts(word)]
    # One object a call: it is not safe to be shared between threads, and costs a microsecond.
    return list(zip(found, Stemmer.Stemmer("english", 0).stemWords(found), strict=True))


def weigh(text: str) -> dict[str, float]:
    """The words of a query, and how much each counts: one that every text has counts half.

    What a request for a tool shares with its description is often no more than "find" or "my".
    """
    return {stem: _COMMON_WEIGHT if word in _STOP else 1.0 for word, stem in _split(text)}


def stems(text: str) -> list[str]:
    """The words of a tool, in order, those that every text has included."""
    return [stem for _, stem in _split(text)]


def grams(text: str) -> list[str]:
    """The pieces of four letters of a text's words: they find a word in another form, misspelled, or in a compound."""
    framed = [f"<{word}>" for word, _ in _split(text) if word not in _STOP and len(word) >= _GRAM]
    return [word[k : k + _GRAM] for word in framed for k in range(len(word) - _GRAM + 1)]


def _parts(word: str) -> Iterator[str]:
    if word.isascii():
        yield word
        return
    for piece in _UNSPACED.findall(word):
        if piece[0] < "\u3040" or "\uac00" <= piece[0] <= "\ud7af" or len(piece) == 1:
            yield piece
        else:
            yield from (piece[i : i + 2] for i in range(len(piece) - 1))
