"""The words of a text, as retrieval by words compares them.

Names of tools are words joined in some style, and words come in forms: both sides go through the same function. The
endings are those of English, the rest serves any language; scripts that are written without spaces are cut in pairs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["words"]

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
    plain = _HUMP.sub(" ", text)
    if plain.isascii():
        return [_stem(word) for word in _WORD.findall(plain.lower()) if word not in _STOP]
    decomposed = unicodedata.normalize("NFKD", plain.casefold())
    bare = unicodedata.normalize("NFC", "".join(c for c in decomposed if unicodedata.category(c) != "Mn"))
    return [part for word in _WORD.findall(bare) if word not in _STOP for part in _parts(word)]


def _stem(word: str) -> str:
    """The word without its ending: ``file``, ``files`` and ``filing`` become one, whatever it is."""
    if len(word) <= 3:
        return word
    if word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    return f"{word[:-1]}i" if word[-1] == "y" else word


def _parts(word: str) -> Iterator[str]:
    if word.isascii():
        yield _stem(word)
        return
    for piece in _UNSPACED.findall(word):
        if piece[0] < "\u3040" or "\uac00" <= piece[0] <= "\ud7af":
            yield _stem(piece)
        elif len(piece) == 1:
            yield piece
        else:
            yield from (piece[i : i + 2] for i in range(len(piece) - 1))
