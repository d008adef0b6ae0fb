"""WordPiece: from a text to the numbers that BERT's relatives read.

Written out, because the model's package has no tokenizer, and the library that has one is larger than the model. The
rules are those of BERT's uncased tokenizer: lower case, accents off, punctuation and CJK characters apart, then the
longest known piece first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from importlib import resources

__all__ = ["WordPiece", "vocabulary"]

_LONGEST_WORD = 100
_SPACES = "\t\n\r"
_DROPPED = frozenset(("Mn", "Cc", "Cf", "Co", "Cs"))  # accents, and what is not to be seen
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def vocabulary() -> dict[str, int]:
    """The pieces and their numbers, from the file that comes with this package."""
    text = resources.files(__package__).joinpath("data", "vocab.txt").read_text(encoding="utf-8")
    return {piece: number for number, piece in enumerate(text.split("\n")) if piece}


class WordPiece:
    """A tokenizer.

    Args:
        pieces: the vocabulary; pieces within a word begin with ``##``.
        longest: how many numbers a text becomes at most; the rest of it is left out.
    """

    __slots__ = ("_pieces", "longest")

    def __init__(self, pieces: Mapping[str, int], longest: int = 256) -> None:
        self._pieces, self.longest = pieces, longest

    def __call__(self, text: str) -> list[int]:
        """The numbers of a text, between the marks of its beginning and its end."""
        pieces, room = self._pieces, self.longest - 2
        ids: list[int] = []
        for word in _words(text):
            ids += self._split(word)
            if len(ids) >= room:
                break
        return [pieces["[CLS]"], *ids[:room], pieces["[SEP]"]]

    def _split(self, word: str) -> list[int]:
        unknown = [self._pieces["[UNK]"]]
        if len(word) > _LONGEST_WORD:
            return unknown
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._pieces.get(prefix + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return unknown
        return found


def _words(text: str) -> Iterator[str]:
    word = ""
    # Letter by letter: `str.lower` knows two small sigmas, the vocabulary one.
    for c in "".join(map(str.lower, unicodedata.normalize("NFD", text))):
        category = unicodedata.category(c)
        if c in _SPACES or category[0] == "Z":
            if word:
                yield word
            word = ""
        elif category in _DROPPED or c == "\ufffd":
            continue
        elif _apart(c, category):
            if word:
                yield word
            yield c
            word = ""
        else:
            word += c
    if word:
        yield word


def _apart(c: str, category: str) -> bool:
    if c.isascii():
        return not c.isalnum()
    return category[0] == "P" or any(first <= ord(c) <= last for first, last in _CJK)
