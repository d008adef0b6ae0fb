"""`Index`: the tools of an agent, made ready to be found; and `Indexes`, which makes one a tool set and not one a run.

Words and meaning are fused by rank. What was measured (see the README): a query in the words of the tools is found best
by both together; a paraphrase shares no word with its tool, and there the words point at wrong ones. So the ranking by
words counts as far as its best tool covers the query.
"""

from __future__ import annotations

import heapq
import json
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol

from attrs import frozen

from locus.tools import ToolSpec
from locus_plugin_toolsearch.bm25 import BM25
from locus_plugin_toolsearch.words import grams, stems, weigh, words

__all__ = ["Embedder", "Index", "Indexes", "Match"]

#: The weight of a word by its place: in the name, the description, a parameter's name, a parameter's description.
_NAME, _DESCRIPTION, _PARAMETER, _EXPLAINED = 2.0, 1.0, 1.0, 0.5
#: Of a ranking so many take part, and the first counts `_RANK` times what the one behind `_RANK` others counts, nearly.
_RANKED, _RANK = 100, 5
#: What a piece of a word counts beside a whole one. Measured on the tool sets of the README: none of them finds less
#: by it, and requests in other words are found that were not.
_GRAM_WEIGHT = 0.2
#: From this coverage on the ranking by words counts in full.
_COVERED = 0.2
#: Of a long query the beginning and the end are read, this many characters of each.
_READ = 2000
#: How many tool sets are kept; an agent has one, or one for each state of the servers its tools come from.
_KEPT = 8


class Embedder(Protocol):
    """What gives texts a meaning. It may block: it is called in a worker thread."""

    def vectors(self, texts: tuple[str, ...]) -> Any:
        """The vectors of texts, for `scores`."""
        ...

    def scores(self, query: str, texts: Any) -> Any:
        """How near a query is to each text, a sequence of numbers."""
        ...


@frozen
class Match:
    """A tool that fits.

    Args:
        name: its name.
        description: its description, on one line whatever it holds: no description adds a line of its own to a list.
    """

    name: str
    description: str


class Index:
    """The tools of one set, fixed.

    Args:
        specs: as the model would get them.
        embedder: gives them a meaning as well; None = they are found by words alone. Then nothing here blocks.
    """

    __slots__ = ("_bm25", "_embedder", "_found", "_grams", "_vectors")

    def __init__(self, specs: Sequence[ToolSpec], embedder: Embedder | None = None) -> None:
        self._found = [Match(spec.name, " ".join(spec.description.split())) for spec in specs]
        parts = [_find_parts(spec) for spec in specs]
        self._bm25 = BM25([_count(stems, each) for each in parts])
        # In a long text there are more pieces of words, but each is as telling as in a short one.
        self._grams = BM25([_count(grams, each) for each in parts], held_back=0.0)
        self._embedder = embedder
        self._vectors = None if embedder is None else embedder.vectors(tuple(map(_as_sentence, specs)))

    def __len__(self) -> int:
        return len(self._found)

    def best(self, query: str, count: int, *, without: Container[str] = ()) -> tuple[Match, ...]:
        """The tools that fit a query best, the best first; equals in the order of the set.

        Args:
            query: what is wanted, in words.
            count: how many at most; by words alone fewer, where fewer share a word with it.
            without: names of tools that are not wanted.
        """
        query = _read(query)
        scores = self._bm25.scores(weigh(query))
        for i, score in self._grams.scores(dict.fromkeys(grams(query), _GRAM_WEIGHT)).items():
            scores[i] = scores.get(i, 0.0) + score
        if self._embedder is not None and query.strip():
            near = dict(enumerate(map(float, self._embedder.scores(query, self._vectors))))
            coverage = self._bm25.coverage(words(query))
            weighted = ((near, 1.0), (scores, min(1.0, coverage / _COVERED)))
            fused: dict[int, float] = {}
            for ranking, weight in weighted:
                for rank, i in enumerate(_rank(ranking, _RANKED)):
                    fused[i] = fused.get(i, 0.0) + weight / (_RANK + rank)
            scores = fused
        found = self._found
        wanted = {i: score for i, score in scores.items() if found[i].name not in without}
        return tuple(found[i] for i in _rank(wanted, count))


def _rank(scores: Mapping[int, float], count: int) -> list[int]:
    return heapq.nsmallest(count, scores, key=lambda i: (-scores[i], i))


def _read(query: str) -> str:
    return query if len(query) <= 2 * _READ else f"{query[:_READ]} {query[-_READ:]}"


def _descriptions(schema: Any) -> str:
    said = schema.get("description") if isinstance(schema, Mapping) else None
    return said if isinstance(said, str) else ""


def _find_parts(spec: ToolSpec) -> list[tuple[str, float]]:
    """The texts of a tool, and what a word of each weighs."""
    parts = [(spec.name, _NAME), (spec.description, _DESCRIPTION)]
    for name, schema in spec.properties.items():
        parts += [(name, _PARAMETER), (_descriptions(schema), _EXPLAINED)]
    return parts


def _count(split: Callable[[str], Iterable[str]], parts: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for text, weight in parts:
        for term in split(text):
            found[term] = found.get(term, 0.0) + weight
    return found


def _as_sentence(spec: ToolSpec) -> str:
    """A tool as a sentence, for what reads meaning."""
    name, parameters = spec.name.replace("_", " "), ", ".join(spec.properties).replace("_", " ")
    return f"{name}: {spec.description} ({parameters})" if parameters else f"{name}: {spec.description}"


def _content(specs: Sequence[ToolSpec]) -> bytes:
    digest = blake2b(digest_size=16)
    for spec in specs:
        parts = [spec.name, spec.description, *((name, _descriptions(s)) for name, s in spec.properties.items())]
        digest.update(json.dumps(parts).encode() + b"\n")
    return digest.digest()


class Indexes:
    """The indexes of one agent, by what is in them. Safe to use from several threads.

    Args:
        embedder: see `Index`.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder = embedder
        self._made: OrderedDict[bytes, Index] = OrderedDict()
        self._last: tuple[tuple[ToolSpec, ...], Index] | None = None
        self._lock = Lock()

    def ready(self, specs: tuple[ToolSpec, ...]) -> Index | None:
        """The index of a set that was asked for last, or None: an agent's tools are the same object each time."""
        last = self._last
        return last[1] if last is not None and last[0] is specs else None

    def of(self, specs: tuple[ToolSpec, ...], *, leaving: str) -> Index:
        """The index of a set, made when it is first asked for. It may take seconds: call it in a worker thread.

        Args:
            specs: the tools.
            leaving: the name of a tool that is not to be found.
        """
        wanted = [spec for spec in specs if spec.name != leaving]
        content = _content(wanted)
        with self._lock:  # the second caller wants the same one
            made = self._made.pop(content, None)
            if made is None:
                made = Index(wanted, self.embedder)
            self._made[content] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            self._last = (specs, made)
        return made
