"""`BM25`: Okapi's ranking by words, over an inverted index.

Of its own, because it is a page: the libraries that have it (rank-bm25, bm25s) need numpy, 70 MB, and the first scores
every text for every query. Here a query touches only the texts that share a word with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["BM25"]

#: How soon repeating a word stops counting, and how much long texts are held back. Measured on the public tool set
#: of the README; nothing between 0.4 and 0.75 makes a difference of a point.
_K, _B = 1.2, 0.4


class BM25:
    """An index over texts, fixed once it is built.

    Args:
        texts: of each text its words, and how much each weighs there: how often it occurs, more for a word of a title.
        held_back: how much long texts are held back, from 0.0, not at all, to 1.0.
    """

    __slots__ = ("_rarest", "_rarity", "_where")

    def __init__(self, texts: Sequence[Mapping[str, float]], held_back: float = _B) -> None:
        lengths = [sum(text.values()) for text in texts]
        average = sum(lengths) / len(texts) if any(lengths) else 1.0
        where: dict[str, list[tuple[int, float]]] = {}
        for i, text in enumerate(texts):
            saturation = _K * (1 - held_back + held_back * lengths[i] / average)
            for word, weight in text.items():
                where.setdefault(word, []).append((i, weight / (weight + saturation)))
        count = len(texts)
        self._where = where
        self._rarity = {word: math.log(1 + (count - len(t) + 0.5) / (len(t) + 0.5)) for word, t in where.items()}
        self._rarest = math.log(1 + (count + 0.5) / 0.5)

    def scores(self, query: Mapping[str, float]) -> dict[int, float]:
        """How well texts fit the words of a query.

        Args:
            query: its words, and how much each counts.

        Returns:
            The score of each text that shares a word with it, by number.
        """
        found: dict[int, float] = {}
        for word, counts in query.items():
            rarity = self._rarity.get(word)
            if rarity is not None:
                for i, weight in self._where[word]:
                    found[i] = found.get(i, 0.0) + counts * rarity * weight
        return found

    def coverage(self, query: Iterable[str]) -> float:
        """How much of a query the text that fits it best covers.

        Returns:
            From 0.0 to 1.0: a word counts by its rarity, and one that no text has counts most.
        """
        asked = dict.fromkeys(query, 1.0)
        found = self.scores(asked)
        return max(found.values()) / sum(self._rarity.get(word, self._rarest) for word in asked) if found else 0.0
