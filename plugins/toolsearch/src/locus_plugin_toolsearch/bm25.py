"""`BM25`: Okapi's ranking by words, over an inverted index.

Of its own, because it is a page: the libraries that have it (rank-bm25, bm25s) need numpy, 70 MB, and the first scores
every text for every query. Here a query touches only the texts that share a word with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

__all__ = ["BM25"]

#: How soon repeating a word stops counting, and how much long texts are held back. Measured on the public tool set
#: of the README; nothing between 0.4 and 0.75 makes a difference of a point.
_K, _B = 1.2, 0.4


class BM25:
    """An index over texts, fixed once it is built.

    Args:
        texts: of each text its words, and how much each weighs there: how often it occurs, more for a word of a title.
    """

    __slots__ = ("_rarest", "_rarity", "_where")

    def __init__(self, texts: Sequence[Mapping[str, float]]) -> None:
        lengths = [sum(text.values()) for text in texts]
        average = sum(lengths) / len(texts) if any(lengths) else 1.0
        where: dict[str, list[tuple[int, float]]] = {}
        for i, text in enumerate(texts):
            held_back = _K * (1 - _B + _B * lengths[i] / average)
            for word, weight in text.items():
                where.setdefault(word, []).append((i, weight / (weight + held_back)))
        count = len(texts)
        self._where = where
        self._rarity = {word: math.log(1 + (count - len(t) + 0.5) / (len(t) + 0.5)) for word, t in where.items()}
        self._rarest = math.log(1 + (count + 0.5) / 0.5)

    def scores(self, query: Sequence[str]) -> tuple[dict[int, float], float]:
        """How well texts fit the words of a query.

        Returns:
            The score of each text that shares a word with it, by number; and how much of the query the best one
            covers, 0.0 to 1.0: a word counts by its rarity, and one that no text has counts most.
        """
        found: dict[int, float] = {}
        whole = 0.0
        for word in dict.fromkeys(query):
            rarity = self._rarity.get(word)
            if rarity is None:
                whole += self._rarest
                continue
            whole += rarity
            for i, weight in self._where[word]:
                found[i] = found.get(i, 0.0) + rarity * weight
        return found, (max(found.values()) / whole if found else 0.0)
