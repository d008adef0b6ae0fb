"""The settings of the plugin: the table ``[plugins.guardrails]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Attribute, field, frozen

from locus.core import EMPTY, freeze
from locus_kit.validators import integer
from locus_plugin_guardrails.defaults import DEFAULT_RULES
from locus_plugin_guardrails.rule import PLACES, Place, Rule

__all__ = ["GuardrailsSettings", "Topics"]


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _rules(value: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(value)


def _words(value: Mapping[str, Iterable[str]]) -> Any:
    return freeze({name: _texts(words) for name, words in value.items()})


def _topics(_: object, attribute: Attribute[Any], value: Mapping[str, tuple[str, ...]]) -> None:
    for name, words in value.items():
        Rule(name=name, words=words)


def _places(_: object, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    if any(place not in PLACES for place in value):
        raise ValueError(f"where must hold only {', '.join(PLACES)}")


@frozen(kw_only=True)
class Topics:
    """What may be talked about, by words: ``{"weather": ["rain", "forecast"]}``.

    Args:
        allow: a prompt must have a word of one of these; empty = anything may be asked.
        deny: texts with a word of one of these are blocked.
        where: where the denied words are looked for.
    """

    allow: Mapping[str, tuple[str, ...]] = field(default=EMPTY, converter=_words, validator=_topics)
    deny: Mapping[str, tuple[str, ...]] = field(default=EMPTY, converter=_words, validator=_topics)
    where: tuple[Place, ...] = field(default=("prompt", "answer"), converter=_texts, validator=_places)


def _check_known(settings: GuardrailsSettings, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    names = {rule.name for rule in DEFAULT_RULES}
    wrong = [name for name in value if name not in names]
    if wrong:
        raise ValueError(f"unknown default rule {wrong[0]!r}; expected one of {', '.join(sorted(names))}")


@frozen(kw_only=True)
class GuardrailsSettings:
    """What is guarded.

    Args:
        rules: further rules; one with the name of a default rule takes its place.
        without: names of default rules that do not hold.
        topics: what may be talked about.
        max_prompt: characters of one turn of the user's; a longer one is refused.
        max_arguments: characters of one call's arguments; a longer call is rejected.
        max_result: characters of one tool result; a longer one is withheld.
        max_answer: characters of one answer; a longer one is withheld.
        revise_withheld: ask the model again when its final answer is withheld, at most ``max_revisions`` times.

    Raises:
        ValueError: two rules have one name, or a default rule is unknown.
    """

    rules: tuple[Rule, ...] = field(default=(), converter=_rules)
    without: tuple[str, ...] = field(default=(), converter=_texts, validator=_check_known)
    topics: Topics = Topics()
    max_prompt: int = field(default=200_000, validator=integer(1))
    max_arguments: int = field(default=100_000, validator=integer(1))
    max_result: int = field(default=200_000, validator=integer(1))
    max_answer: int = field(default=200_000, validator=integer(1))
    revise_withheld: bool = False

    def __attrs_post_init__(self) -> None:
        names = [rule.name for rule in self.in_force]
        twice = {name for name in names if names.count(name) > 1 or name == "size"}
        if twice:
            raise ValueError(f"more than one rule is named {min(twice)!r}; give each its own name")

    @property
    def in_force(self) -> tuple[Rule, ...]:
        """Every rule that holds: the defaults that are left, the further ones, the denied topics."""
        replaced = {*self.without, *(rule.name for rule in self.rules)}
        kept = [rule for rule in DEFAULT_RULES if rule.name not in replaced]
        denied = [
            Rule(name=name, words=words, action="block", where=self.topics.where)
            for name, words in self.topics.deny.items()
        ]
        return (*kept, *self.rules, *denied)

    def limit(self, place: Place) -> int:
        """The most characters of a text from there."""
        limits = {
            "prompt": self.max_prompt,
            "arguments": self.max_arguments,
            "result": self.max_result,
            "answer": self.max_answer,
        }
        return limits[place]
