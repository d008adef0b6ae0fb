"""`Rule`: one guardrail, as data: what to look for, where, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from attrs import Attribute, field, frozen

from locus.core import Pattern
from locus_plugin_guardrails.detectors import DETECTORS

__all__ = ["ACTIONS", "PLACES", "Action", "Place", "Rule"]

#: Where a text comes from: the user, a call's arguments, a tool, the model.
Place = Literal["prompt", "arguments", "result", "answer"]
#: Count it; cut it out; stop what it is part of.
Action = Literal["report", "redact", "block"]

PLACES: tuple[Place, ...] = ("prompt", "arguments", "result", "answer")
ACTIONS: tuple[Action, ...] = ("report", "redact", "block")


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _name(_: object, attribute: Attribute[Any], value: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value):
        raise ValueError("a rule's name must consist of lower-case letters, digits and '_', and start with a letter")


def _places(_: object, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    wrong = [place for place in value if place not in PLACES]
    if wrong or not value:
        raise ValueError(f"where must hold one or more of {', '.join(PLACES)}, got {value!r}")


def _action(_: object, attribute: Attribute[Any], value: str) -> None:
    if value not in ACTIONS:
        raise ValueError(f"action must be one of {', '.join(ACTIONS)}, got {value!r}")


def _detector(_: object, attribute: Attribute[Any], value: str | None) -> None:
    if value is not None and value not in DETECTORS:
        raise ValueError(f"detector must be one of {', '.join(sorted(DETECTORS))}, got {value!r}")


def _pattern(_: object, attribute: Attribute[Any], value: str | None) -> None:
    if value is not None:
        Pattern(value)


@frozen(kw_only=True)
class Rule:
    """What to look for, where, and what to do.

    Args:
        name: what reports and placeholders call it: ``"[redacted: email]"``.
        action: ``"report"`` counts and changes nothing. ``"redact"`` puts a placeholder in its place. ``"block"``
            refuses the prompt, rejects the call, or withholds the result or the answer.
        where: ``"prompt"``, ``"arguments"``, ``"result"``, ``"answer"``.
        pattern: an RE2 pattern; ``(?i)`` at its beginning ignores case.
        words: words and phrases, whole and in any case.
        detector: the name of one of `DETECTORS`. Exactly one of the three is given.
        tools: globs of the tools whose arguments and results it looks at.
        conceal: what makes it reject a call is not recorded either. False keeps it readable: an attack is worth
            reading, a secret is not. What is redacted, refused or withheld is never recorded.

    Raises:
        ValueError: not exactly one thing to look for, or one that cannot be used.
    """

    name: str = field(validator=_name)
    action: Action = field(default="redact", validator=_action)
    where: tuple[Place, ...] = field(default=PLACES, converter=_texts, validator=_places)
    pattern: str | None = field(default=None, validator=_pattern)
    words: tuple[str, ...] = field(default=(), converter=_texts)
    detector: str | None = field(default=None, validator=_detector)
    tools: tuple[str, ...] = field(default=("*",), converter=_texts)
    conceal: bool = True

    def __attrs_post_init__(self) -> None:
        given = [self.pattern is not None, bool(self.words), self.detector is not None]
        if sum(given) != 1:
            raise ValueError(f"the rule {self.name!r} needs exactly one of pattern, words and detector")
        if any(not word.strip() for word in self.words):
            raise ValueError(f"the rule {self.name!r} has an empty word")

    @property
    def cuts(self) -> bool:
        """Whether what it finds must not be recorded."""
        return self.action == "redact" or (self.action == "block" and self.conceal)
