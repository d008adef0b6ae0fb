"""Questions about the elements with known answers: made from the data, and scored without a judge."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from attrs import frozen

from locus_testkit.site.elements import Element, elements

__all__ = ["Question", "element_questions"]

#: How far a number may be off, as a part of it: models round.
_TOLERANCE = 0.005
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")
_FOUND = re.compile(r"(?:discover|identif|isolat|prepar|produc|synthesi[sz])ed\b.{0,40}\bby\b", re.IGNORECASE)


@frozen(kw_only=True)
class Question:
    """A question that one page answers.

    Args:
        kind: what it asks for: ``"year"``, ``"discoverer"``, ``"location"``, ``"density"``, ``"melting point"``, or
            ``"element"``, which no page's title gives away.
        prompt: the question.
        answer: the right answer, as the page has it.
        accepted: texts of which one must be in an answer, beside `number`.
        number: the number that must be in an answer, or None.
        path: the page that has it.
    """

    kind: str
    prompt: str
    answer: str
    path: str
    accepted: tuple[str, ...] = ()
    number: float | None = None

    def is_answered_by(self, text: str) -> bool:
        """Whether a text has the answer. Case, accents and thousands separators do not matter; a year must be exact.

        That it says nothing else is not looked at.
        """
        if self.number is not None:
            off = 0.0 if self.kind == "year" else abs(self.number) * _TOLERANCE
            return any(abs(each - self.number) <= off for each in _numbers(text))
        words = _fold(text)
        return any(re.search(rf"(?<!\w){re.escape(_fold(each))}(?!\w)", words) for each in self.accepted)


def element_questions(count: int = 40) -> tuple[Question, ...]:
    """Questions of all kinds in turn, spread over the elements; the same ones each time.

    Args:
        count: how many; at least 1.

    Raises:
        ValueError: there are not as many.
    """
    kinds: dict[str, list[Question]] = {}
    for each in chain.from_iterable(map(_questions, elements())):
        kinds.setdefault(each.kind, []).append(each)
    available = sum(map(len, kinds.values()))
    if not 1 <= count <= available:
        raise ValueError(f"count must be 1 to {available}, got {count!r}")
    share = -(-count // len(kinds))
    turns = zip_longest(*(_spread(each, share, start) for start, each in enumerate(kinds.values())))
    chosen = [each for each in chain.from_iterable(turns) if each is not None]
    # A kind may have fewer than its share: the others make up for it.
    chosen += [each for each in chain.from_iterable(kinds.values()) if each not in chosen]
    return tuple(chosen[:count])


def _spread(questions: list[Question], count: int, start: int) -> list[Question]:
    """So many of them at equal distances. Each kind begins elsewhere, so that they ask about different pages."""
    step = max(1, len(questions) // count)
    begin = start * step // 6
    return [*questions[begin::step], *questions[:begin:step]][:count]


def _questions(element: Element) -> Iterator[Question]:
    name = element.name.lower()
    prose = f"{element.description or ''} {element.name_origin}"

    def ask(kind: str, prompt: str, answer: str, *accepted: str, number: float | None = None) -> Question:
        return Question(
            kind=kind, prompt=prompt, answer=answer, path=element.path, accepted=accepted or (answer,), number=number
        )

    # Prose that says something else than the table would make two answers right.
    if element.year is not None and set(_YEAR.findall(prose)) <= {str(element.year)}:
        year = str(element.year)
        yield ask("year", f"In which year was {name} discovered?", year, number=element.year)
    surname = _surname(element)
    if surname is not None and (not _FOUND.search(prose) or surname in prose):
        yield ask("discoverer", f"Who discovered {name}?", element.discoverers, surname)
    if element.location in _COUNTRIES:
        yield ask("location", f"In which country was {name} discovered?", element.location)
    yield ask("density", f"What is the density of {name} in g/cm³?", f"{element.density:g}", number=element.density)
    if element.melting_point is not None:
        point = f"{element.melting_point:g}"
        yield ask(
            "melting point", f"What is the melting point of {name} in kelvin?", point, number=element.melting_point
        )
    if surname is not None and _DISCOVERIES[element.discoverers, element.year] == 1:
        prompt = f"Which chemical element did {element.discoverers} discover in {element.year}?"
        yield ask("element", prompt, element.name)


def _surname(element: Element) -> str | None:
    """The last name of a person who discovered it alone, or None."""
    names = element.discoverers
    if element.year is None or re.search(r"[,;/]|\band\b|et al", names) or not re.fullmatch(r"[\w. ]+", names):
        return None
    last = names.split()[-1]
    is_person = last not in ("Physics", "Laboratory", "Research", "RIKEN")
    return last if is_person and len(names.split()) > 1 else None


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    return "".join(each for each in plain if not unicodedata.combining(each)).casefold()


def _numbers(text: str) -> Iterable[float]:
    return (float(each.replace(",", "")) for each in _NUMBER.findall(text))


_COUNTRIES = frozenset(
    ("Austria", "Denmark", "Finland", "France", "Germany", "Italy", "Romania", "Spain", "Sweden", "Switzerland")
)
_DISCOVERIES = Counter((each.discoverers, each.year) for each in elements())
