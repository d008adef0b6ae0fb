"""What tools said, taken apart once: a sentence of a text, or a record of a JSON result, is one piece of evidence.

Each tool result is read when it is first seen, so a pass costs what is new and what is claimed, not what was said
before.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from attrs import evolve, frozen

from locus_kit.judging import clip
from locus_plugin_grounding.facts import Part, parts, words_of
from locus_plugin_grounding.languages import ENGLISH
from locus_plugin_grounding.quantities import Quantity, read_at
from locus_plugin_grounding.sentences import sentences

__all__ = ["Corpus", "Piece", "without"]

#: Of one result.
_MOST_PIECES: Final = 5_000
_LONGEST_JSON: Final = 1_000_000
#: How many pieces one look compares with.
_MOST_NEAR: Final = 200
#: Characters of one piece: of a longer sentence, each part is one.
_LONGEST: Final = 2_000
_KEY = re.compile(r"^[\w][\w /_-]{0,40}:\s")
_UNIT_KEY = re.compile(
    r"(?:(?<=[_\s])(?=[mgshcf]$)|(?:^|[_\s])(?![mgshcf]$))(mm|cm|km|mi|m|mg|kg|g|ml|ms|min|s|sec|h|c|f|kb|mb|gb|tb|percent|pct|usd|eur|gbp|jpy|seconds|minutes|hours"
    r"|days|weeks|months|years|met(?:er|re)s|miles|grams|bytes)$",
    re.IGNORECASE,
)
_UNIT_NAMES: Final = {"pct": "percent", "c": "\u00b0C", "f": "\u00b0F"}
_CURRENCIES: Final = ("usd", "eur", "gbp", "jpy")
_AMOUNT_KEYS = "amount charge cost due fee paid price subtotal sum tax total value"
_AMOUNTS: Final = frozenset(_AMOUNT_KEYS.split())


@frozen
class Piece:
    """One piece of evidence.

    Args:
        parts: what it says.
        terms: all words of its parts.
        context: words of what it belongs to: the call, the record around it, the line before.
        known: identifiers and dates of what it belongs to, and numbers that its call was about.
        record: whether it is a record of a JSON result.
    """

    parts: tuple[Part, ...]
    terms: frozenset[str]
    context: frozenset[str]
    known: tuple[Quantity, ...]
    record: bool


@frozen
class _Around:
    """What a piece belongs to."""

    words: frozenset[str] = frozenset()
    known: tuple[Quantity, ...] = ()

    def and_of(self, inner: Iterable[Part]) -> _Around:
        inner = tuple(inner)
        return _Around(
            self.words.union(*(part.terms for part in inner)),
            (*self.known, *(q for part in inner for q in part.quantities if q.kind in ("id", "date"))),
        )


def without(text: str, echoes: Iterable[str]) -> str:
    """The text without what it repeats word for word."""
    for echo in echoes:
        if echo and echo.casefold() in text.casefold():
            text = re.sub(re.escape(echo), " ", text, flags=re.IGNORECASE)
    return text


def _echoes(texts: Iterable[Any]) -> tuple[str, ...]:
    """Of some texts those that say something: an identifier is not an echo."""
    found = (each.strip().rstrip("?.! ") for each in texts if isinstance(each, str))
    return tuple(each for each in found if len(each.split()) >= 3)


class Corpus:
    """The evidence of a run.

    Args:
        question: what the user asked: a tool that repeats it confirms nothing.
        max_chars: characters of one result that are read.
    """

    def __init__(self, question: str = "", *, max_chars: int = 20_000) -> None:
        self.texts: list[str] = []
        self._max_chars = max_chars
        self._question = _echoes([question])
        self._sources: list[_Source] = []
        self._readings: dict[str, _Reading] = {}

    @property
    def question(self) -> tuple[str, ...]:
        """What repeats the question."""
        return self._question

    def add(self, text: str, *, tool: str = "", arguments: Mapping[str, Any] | None = None) -> None:
        """Take in one tool result.

        Args:
            text: what the tool said, an error too.
            tool: its name.
            arguments: what it was called with: a result that repeats them word for word confirms nothing.
        """
        self.texts.append(f"{tool}: {clip(text, self._max_chars)}" if tool else clip(text, self._max_chars))
        self._sources.append(_Source(text, tool, arguments or {}))

    def near(self, words: Iterable[str], quantities: Iterable[Quantity], language: str = ENGLISH) -> Iterator[Piece]:
        """The pieces that share most words and quantities, oldest first, and so many of them at most.

        A piece that says what is looked for, or the opposite, shares nearly all: the bound costs no finding, and keeps
        a look from growing with the conversation.

        Args:
            words: stems.
            quantities: in any unit.
            language: as which the evidence is read: a claim in German is compared with German evidence.
        """
        reading = self._readings.setdefault(language, _Reading())
        for source in self._sources[reading.taken :]:
            for piece in islice(_Reader(self._question, self._max_chars, language).read(source), _MOST_PIECES):
                reading.take(piece)
        reading.taken = len(self._sources)
        return reading.near(words, quantities)


@frozen
class _Source:
    """A result as it came."""

    text: str
    tool: str
    arguments: Mapping[str, Any]


class _Reading:
    """The pieces of all results, read as one language."""

    def __init__(self) -> None:
        self.taken = 0
        self._pieces: list[Piece] = []
        self._by_word: dict[str, list[int]] = {}
        self._by_value: dict[str, list[int]] = {}

    def take(self, piece: Piece) -> None:
        n = len(self._pieces)
        self._pieces.append(piece)
        for word in piece.terms:
            self._by_word.setdefault(word, []).append(n)
        for value in {v for part in piece.parts for q in part.quantities for v in _values(q)}:
            self._by_value.setdefault(value, []).append(n)

    def near(self, words: Iterable[str], quantities: Iterable[Quantity]) -> Iterator[Piece]:
        found: Counter[int] = Counter()
        for word in words:
            found.update(self._by_word.get(word, ()))
        for value in {value for q in quantities for value in _values(q)}:
            found.update(self._by_value.get(value, ()))
        most = heapq.nlargest(_MOST_NEAR, found, key=lambda n: (found[n], n)) if len(found) > _MOST_NEAR else found
        return (self._pieces[n] for n in sorted(most))


@frozen
class _Reader:
    """Takes a result apart."""

    question: tuple[str, ...]
    max_chars: int
    language: str

    def read(self, source: _Source) -> Iterator[Piece]:
        given = source.arguments
        echoes = (*self.question, *_echoes(given.values()))
        short = [str(v) for v in given.values() if isinstance(v, str | int) and len(str(v).split()) <= 2]
        asked = [part for each in short for part in parts(each, self.language)]
        of_call = _Around(words_of(source.tool, self.language)).and_of(asked)
        # A bare number that a tool is called with is what it is asked about: order(4711).
        numbers = (q for part in asked for q in part.quantities if q.kind == "")
        return self._pieces_of(source.text, evolve(of_call, known=(*of_call.known, *numbers)), echoes)

    def _pieces_of(self, text: str, around: _Around, echoes: tuple[str, ...]) -> Iterator[Piece]:
        stripped = text.strip()
        if stripped.startswith(("{", "[")) and len(text) <= _LONGEST_JSON:
            try:
                data = json.loads(stripped, parse_float=_decimal, parse_int=str, parse_constant=str)
                yield from list(self._records(data, "", around, echoes))
                return
            except (ValueError, RecursionError):
                pass
        yield from _prose(without(clip(text, self.max_chars), echoes), around, self.language)

    def _records(self, data: Any, key: str, around: _Around, echoes: tuple[str, ...]) -> Iterator[Piece]:
        if isinstance(data, Mapping):
            money = _currency(data)
            said = [line for k, v in data.items() for line in _leaves(_in(money, str(k)), v, echoes)]
            mine = tuple(part for line in said for part in parts(line, self.language))
            if key:
                around = _Around(around.words | words_of(key, self.language), around.known)
            if mine:
                yield _piece(mine, around, record=True)
            inner = around.and_of(mine)
            for k, v in data.items():
                if isinstance(v, Mapping) or (isinstance(v, list) and any(isinstance(x, Mapping | list) for x in v)):
                    yield from self._records(v, str(k), inner, echoes)
        elif isinstance(data, list):
            for each in data:
                if isinstance(each, Mapping | list):
                    yield from self._records(each, key, around, echoes)
                elif mine := tuple(part for line in _leaves(key, each, echoes) for part in parts(line, self.language)):
                    yield _piece(mine, around, record=True)
        elif isinstance(data, str):
            yield from _prose(without(data, echoes), around, self.language)


def _decimal(number: str) -> str:
    """A number of JSON with no three digits behind its point, which other languages group thousands with."""
    return f"{number}0" if re.fullmatch(r"-?\d{1,3}\.\d{3}", number) else number


def _values(q: Quantity) -> tuple[str, ...]:
    """What a quantity is found by: as it is written, and in its base unit; a date without its year."""
    if q.raw is not None and isinstance(q.value, Decimal):
        return str(q.raw.normalize()), str(q.value.normalize())
    return (str(q.value)[-6:],) if q.kind == "date" else (str(q.value),)


def _currency(data: Mapping[Any, Any]) -> str:
    """The currency that a record names for its amounts."""
    found = data.get("currency", data.get("currency_code"))
    return found.lower() if isinstance(found, str) and found.lower() in _CURRENCIES else ""


def _in(currency: str, key: str) -> str:
    """A key with the currency of its record, where it names an amount of money."""
    if not currency or _UNIT_KEY.search(key) or not _AMOUNTS & set(re.split(r"[\s_-]+", key.lower())):
        return key
    return f"{key}_{currency}"


def _leaves(key: str, value: Any, echoes: tuple[str, ...]) -> Iterator[str]:
    """What the scalars under a key say, as words."""
    if isinstance(value, list):
        if not value:
            yield f"no {key}"
        for each in value:
            if not isinstance(each, Mapping | list):
                yield from _leaves(key, each, echoes)
    elif value is None or value is False:
        yield f"not {key}"
    elif value is True:
        yield key
    elif isinstance(value, str):
        said = without(value, echoes).strip()
        unit = _UNIT_KEY.search(key)
        if unit and (read := read_at(said, 0)) is not None and read[0].kind == "" and read[1] == len(said):
            said = f"{said} {_UNIT_NAMES.get(unit[1].lower(), unit[1].lower())}"
            key = key[: unit.start()]
        for line in sentences(said):
            if not line.endswith("?"):
                yield from (f"{key} {each}" for each in _split_bounds(line))


def _prose(text: str, around: _Around, language: str) -> Iterator[Piece]:
    before = _Around()
    for sentence in (piece for whole in sentences(text) for piece in _split_bounds(whole)):
        if sentence.endswith("?"):
            continue
        key = _KEY.match(sentence)
        mine = parts(sentence[: key.end()].lower() + sentence[key.end() :] if key else sentence, language)
        if not mine:
            continue
        named = any(part.names or part.naming for part in mine)
        near = around if named else _Around(around.words | before.words, (*around.known, *before.known))
        yield _piece(mine, near, record=False)
        if named or not before.words:
            before = _Around().and_of(mine)


def _split_bounds(sentence: str) -> Iterator[str]:
    return (sentence[at : at + _LONGEST] for at in range(0, len(sentence), _LONGEST))


def _piece(mine: tuple[Part, ...], around: _Around, *, record: bool) -> Piece:
    terms: frozenset[str] = frozenset().union(*(part.terms for part in mine))
    return Piece(mine, terms, around.words, around.known, record)
