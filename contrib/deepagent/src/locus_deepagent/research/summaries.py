"""A summary: asked for as claims with citations, read from whatever a model answers, and made into a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from attrs import evolve, frozen

from locus.core import encode_data, freeze, thaw
from locus.core.errors import NotSerialisable
from locus.models import OutputError, OutputSchema, OutputSpec, output_schema
from locus.schema import clean_text
from locus_plugin_grounding.sentences import claims_of

__all__ = ["Claim", "Draft", "SummaryForm", "clean_data", "read_claims", "read_given_claims", "without_citations"]

#: Claims of a summary, and characters of one.
MOST_CLAIMS: Final = 50
LONGEST: Final = 1_000
#: How deep data of a model may be nested.
_DEEPEST: Final = 50

_CITATION = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_CLAIMS = re.compile(r"\"claims\"\s*:\s*\[")
_END = re.compile(r"[.!?\u2026\u3002]+$")
_NUMBER = re.compile(r"\d{1,4}")


@frozen
class Claim:
    """One statement of a summary.

    Args:
        text: a sentence, without citations.
        evidence: the numbers of the evidence that it cites, from 1.
    """

    text: str
    evidence: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The sentence with its citations, before its full stop."""
        cited = "".join(f"[{n}]" for n in self.evidence)
        if not cited:
            return self.text
        end = _END.search(self.text)
        at = len(self.text) if end is None else end.start()
        return f"{self.text[:at]} {cited}{self.text[at:]}"

    def to_data(self) -> dict[str, Any]:
        """As a value of the state."""
        return {"text": self.text, "evidence": list(self.evidence)}


@frozen
class Draft:
    """A summary as a model wrote it.

    Args:
        text: ``""`` where it wrote none.
        claims: what it says.
        output: the answer as the output schema wants it, as plain data, or None.
    """

    text: str = ""
    claims: tuple[Claim, ...] = ()
    output: Any = None

    def with_claims(self, claims: tuple[Claim, ...]) -> Draft:
        """The draft with other citations; as it is where its text is not made of its claims, but of a model's words."""
        is_made = self.text == _join_claims(self.claims)
        return evolve(self, claims=claims, text=_join_claims(claims)) if is_made else self


def _join_claims(claims: Iterable[Claim]) -> str:
    return " ".join(map(str, claims))


def without_citations(text: str) -> str:
    """A text without its ``[1]`` and ``[1, 2]``."""
    return _CITATION.sub("", text)


def read_claims(text: str, count: int) -> tuple[Claim, ...]:
    """What a text claims, sentence by sentence, with the evidence that each cites.

    Args:
        text: a summary in plain words.
        count: how many pieces of evidence there are; other numbers cite nothing.
    """
    # A citation that follows the full stop belongs to the sentence before it.
    moved = re.sub(rf"([.!?]+)((?:{_CITATION.pattern})+)", r"\2\1", text)
    found = ((without_citations(each).strip(), _find_citations(each, count)) for each in claims_of(moved))
    return tuple(Claim(said[:LONGEST], numbers) for said, numbers in found if said)[:MOST_CLAIMS]


def read_given_claims(given: Any, count: int) -> tuple[Claim, ...]:
    """Claims from plain data, such as those that a state or an answer of a model holds; anything else is left out."""
    items = given if isinstance(given, list | tuple) else [given]
    return tuple(claim for each in items if (claim := _claim(each, count)) is not None)[:MOST_CLAIMS]


def _find_citations(text: str, count: int) -> tuple[int, ...]:
    return _numbers([n for each in _CITATION.finditer(text) for n in _NUMBER.findall(each[1])], count)


def _numbers(given: Iterable[Any], count: int) -> tuple[int, ...]:
    """The numbers of evidence that there is, each once, in order."""
    found: list[int] = []
    for each in given:
        if isinstance(each, bool) or not isinstance(each, int | float | str):
            continue
        matched = _NUMBER.search(str(int(each)) if isinstance(each, float) and each.is_integer() else str(each))
        if matched and 1 <= int(matched[0]) <= count:
            found.append(int(matched[0]))
    return tuple(sorted(set(found)))


def clean_data(value: Any, depth: int = 0) -> Any:
    """Data of a model as it can be kept: texts without lone surrogates, and nothing nested too deeply."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(k)): clean_data(v, depth + 1) for k, v in value.items()} if depth < _DEEPEST else None
    if isinstance(value, list | tuple):
        return [clean_data(each, depth + 1) for each in value] if depth < _DEEPEST else None
    return value


# -- asking --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ClaimForm:
    """One statement and what it rests on.

    Args:
        text: one complete sentence that can be understood alone, without citations in it.
        evidence: the numbers of the pieces of evidence that say so.
    """

    text: str
    evidence: tuple[int, ...]


@frozen(kw_only=True)
class ResearchSummary:
    """What is known about the goal.

    Args:
        claims: the sentences of the summary, in the order in which they are read.
    """

    claims: tuple[ClaimForm, ...]


_SUMMARY = output_schema(ResearchSummary)
#: Any JSON value in an answer, the likeliest one.
_ANY = output_schema({"title": "ResearchSummary"})


class SummaryForm:
    """What a summary is asked for as, and how the answer is read.

    Args:
        schema: what else is wanted, as for ``output_schema=`` of `Agent`, or None.

    Raises:
        ConfigError: no JSON Schema can be made of it.
    """

    def __init__(self, schema: Any = None) -> None:
        self.schema: OutputSchema[Any] | None = None if schema is None else output_schema(schema)
        self.spec: OutputSpec = _SUMMARY.spec if self.schema is None else _join(self.schema.spec)

    @property
    def hint(self) -> str:
        """What the prompt says of the form."""
        asked = (
            '\n\nAnswer with a JSON object. Under "claims" are the sentences of the summary: each with its "text", one '
            'complete sentence, and "evidence", the numbers of the pieces of evidence that say so.'
        )
        if self.schema is None:
            return asked
        shown = json.dumps(thaw(self.schema.spec.schema), indent=2, ensure_ascii=False)
        return f'{asked} Under "output" is an object of this schema:\n{shown}'

    def read(self, text: str, count: int) -> Draft:
        """A draft from what a model answered, whatever that is.

        Args:
            text: the answer: the object, or one that was cut off, or the output alone, or plain words.
            count: how many pieces of evidence there are.
        """
        text = clean_text(text).strip()
        data = self._find_object(text)
        claims = read_given_claims(data["claims"], count) if "claims" in data else _salvage(text, count)
        if claims is None:
            return Draft(text, read_claims(text, count), self._read_output(data))
        return Draft(_join_claims(claims), claims, self._read_output(data.get("output", data)))

    @staticmethod
    def _find_object(text: str) -> Mapping[str, Any]:
        found = _ANY.parse(text)
        cleaned = clean_data(found)
        return cleaned if isinstance(cleaned, Mapping) else {}

    def _read_output(self, data: Any) -> Any:
        if self.schema is None or not data:
            return None
        try:
            self.schema.parse(data)
            encode_data(freeze(data))
        except (OutputError, NotSerialisable):
            return None
        return data


def _join(spec: OutputSpec) -> OutputSpec:
    """The schema of claims and of an output together."""
    theirs, ours = thaw(spec.schema), thaw(_SUMMARY.spec.schema)
    if '"#"' in json.dumps(theirs):  # it refers to its own root, which would be another one in here
        return _SUMMARY.spec
    inner = {key: each for key, each in theirs.items() if key != "$defs"}
    ours["properties"] = {**ours["properties"], "output": inner}
    ours["required"] = ["claims", "output"]
    ours["$defs"] = {**theirs.get("$defs", {}), **ours.get("$defs", {})}
    return OutputSpec(name=_SUMMARY.spec.name, schema=ours, strict=spec.strict)


def _claim(item: Any, count: int) -> Claim | None:
    if isinstance(item, str):
        item = {"text": item}
    text = item.get("text") if isinstance(item, Mapping) else None
    if not isinstance(text, str):
        return None
    said = " ".join(without_citations(text).split())[:LONGEST]
    given = item.get("evidence")
    numbers = given if isinstance(given, list | tuple) else [given]
    return Claim(said, _numbers([*numbers, *_find_citations(text, count)], count)) if said else None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _salvage(text: str, count: int) -> tuple[Claim, ...] | None:
    """The whole claims of an object that was cut off; None where the text is not the beginning of one."""
    opening = _CLAIMS.search(text) if text.lstrip("`json \n").startswith("{") else None
    if opening is None:
        return None
    at, found = opening.end(), []
    for _ in range(MOST_CLAIMS):
        at = len(text) - len(text[at:].lstrip(" \t\r\n,"))
        try:
            item, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(_claim(clean_data(item), count))
    return tuple(claim for claim in found if claim is not None)
