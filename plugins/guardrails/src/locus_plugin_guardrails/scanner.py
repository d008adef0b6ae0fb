"""`Scanner`: the rules at work on one text.

Every rule is asked about the text and about its folded form, and what it finds is cut out of the original. Regions that
overlap are cut out as one: what one rule leaves over must not remain because another one took the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any, TypeAlias

from attrs import evolve, frozen

from locus.core import Pattern
from locus_plugin_guardrails.detectors import DETECTORS, Span
from locus_plugin_guardrails.folding import fold
from locus_plugin_guardrails.rule import ACTIONS, PLACES, Place, Rule

__all__ = ["Finding", "Scanner", "is_mentioned", "words_finder"]

Find: TypeAlias = Callable[[str], Iterator[Span]]


@frozen
class Finding:
    """A place in a text that a rule is about; it never holds the text itself."""

    start: int
    end: int
    rule: Rule

    @property
    def placeholder(self) -> str:
        """What is put in its place."""
        return f"[{'blocked' if self.rule.action == 'block' else 'redacted'}: {self.rule.name}]"


def words_finder(words: Iterable[str]) -> Find:
    """Looks for whole words and phrases, in any case and any writing."""
    known: set[str] = set()
    for word in words:
        folded = fold(word)
        known |= {" ".join(word.split()), " ".join((word if folded is None else folded.text).split())}
    longest = sorted(filter(None, known), key=lambda word: (-len(word), word))
    pattern = Pattern("(?i)" + "|".join(r"\s+".join(map(_escape, word.split())) for word in longest))

    def find(text: str) -> Iterator[Span]:
        for start, end in pattern.spans(text):
            before, after = text[start - 1 : start], text[end : end + 1]
            if not ((before.isalnum() and text[start].isalnum()) or (after.isalnum() and text[end - 1].isalnum())):
                yield start, end

    return find


def is_mentioned(text: str, find: Find) -> bool:
    """Whether something can be found in a text, as it is written or as it is read."""
    folded = fold(text)
    return any(next(find(each), None) is not None for each in ((text,) if folded is None else (text, folded.text)))


def _escape(text: str) -> str:
    return "".join(char if char.isalnum() or not char.isascii() else f"\\x{ord(char):02x}" for char in text)


def _finder(rule: Rule) -> Find:
    if rule.detector is not None:
        return DETECTORS[rule.detector]
    return Pattern(rule.pattern).spans if rule.pattern is not None else words_finder(rule.words)


class Scanner:
    """Compiled rules.

    Args:
        rules: those in force.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        every = tuple(rules)
        self._rules = {place: tuple((rule, _finder(rule)) for rule in every if place in rule.where) for place in PLACES}
        # Only names that exist: otherwise a secret could be written as the name of a placeholder.
        names = "|".join(sorted({*(rule.name for rule in every), "size"}))
        self._placeholders = Pattern(rf"\[(?:redacted|blocked|withheld): (?:{names})\]")
        self._blocked = Pattern(rf"\[blocked: (?:{names})\]")

    def has_mark(self, value: Any) -> bool:
        """Whether something was cut out of these data because it is blocked."""
        if isinstance(value, str):
            return "[blocked: " in value and self._blocked.matches(value)
        if isinstance(value, Mapping):
            return any(self.has_mark(key) or self.has_mark(item) for key, item in value.items())
        return isinstance(value, list | tuple) and any(map(self.has_mark, value))

    def findings(self, text: str, place: Place, tool: str = "") -> list[Finding]:
        """What each rule finds, in the order of the rules.

        Args:
            text: the text.
            place: where it comes from.
            tool: of which tool, for arguments and results.
        """
        found: list[Finding] = []
        rules = self._rules[place]
        if not rules or not text:
            return found
        folded = fold(text)
        cut = list(self._placeholders.spans(text)) if "[" in text else []
        for rule, find in rules:
            if tool and not any(fnmatchcase(tool, glob) for glob in rule.tools):
                continue
            spans = set(find(text))
            if folded is not None:
                spans.update(folded.original(*span) for span in find(folded.text))
            found += [
                Finding(start, end, rule)
                for start, end in sorted(spans)
                if not any(begin <= start and end <= stop for begin, stop in cut)
            ]
        return found

    @staticmethod
    def regions(findings: Iterable[Finding]) -> list[Finding]:
        """The regions to cut out: overlapping ones are joined, and named by their strictest rule."""
        merged: list[Finding] = []
        for finding in sorted((f for f in findings if f.rule.cuts), key=attrgetter("start", "end")):
            last = merged[-1] if merged else None
            if last is None or finding.start >= last.end:
                merged.append(finding)
                continue
            strictest = max(last, finding, key=lambda each: ACTIONS.index(each.rule.action))
            merged[-1] = evolve(strictest, start=last.start, end=max(last.end, finding.end))
        return merged

    @staticmethod
    def rewritten(text: str, regions: Iterable[Finding]) -> str:
        """The text with placeholders for its regions."""
        parts: list[str] = []
        at = 0
        for region in regions:
            parts += [text[at : region.start], region.placeholder]
            at = region.end
        return "".join([*parts, text[at:]])
