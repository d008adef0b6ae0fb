"""What may be asked of a run: each check says what does not fit, or nothing.

All but `Judge` are functions of what the run has left behind; a judge is a model, see `locus_plugin_eval.judge`.
Patterns are RE2's, so that no answer keeps a check busy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

from attrs import field, frozen

from locus.core import Pattern
from locus.core.errors import ConfigError
from locus.plugin import Lazy
from locus.schema import explain, find_problems
from locus_plugin_eval.trials import Call

__all__ = [
    "Called",
    "Check",
    "CheckNotPossible",
    "Contains",
    "Ends",
    "Exact",
    "Grounded",
    "Judge",
    "Matches",
    "NotCalled",
    "Subject",
    "ValidJson",
    "shorten",
]

grounding: Any = Lazy("locus.reasoning.grounding")

#: Characters of a text in a line of a report.
_SHOWN = 120


class CheckNotPossible(Exception):
    """A check could not be made, which says nothing about the agent; the message says why."""


@frozen(kw_only=True)
class Subject:
    """What checks look at.

    Args:
        prompt: the last turn's.
        text: the final answer.
        calls: every tool call.
        stop_reason, detail: why the last run ended.
        is_stopped: a limit or a cancel ended it, or it has not come to an end.
        failure: what went wrong, in a sentence, where something did; or ``""``.
        question: what the run asks a person and the case has no answer to; or ``""``.
    """

    prompt: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop_reason: str = ""
    detail: str = ""
    is_stopped: bool = False
    failure: str = ""
    question: str = ""


def shorten(text: str, most: int = _SHOWN) -> str:
    """A text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def _show(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=repr))


@frozen
class Exact:
    """The answer is this text, without blanks around it."""

    kind: ClassVar[str] = "exact"
    text: str

    def __str__(self) -> str:
        return _show(self.text)

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        return "" if subject.text.strip() == self.text.strip() else f"the answer is {_show(subject.text)}"


@frozen
class Contains:
    """The answer has each of these texts in it, in upper or lower case where `ignore_case` says so."""

    kind: ClassVar[str] = "contains"
    texts: tuple[str, ...]
    ignore_case: bool = False

    def __str__(self) -> str:
        return ", ".join(map(_show, self.texts))

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        fold = str.casefold if self.ignore_case else str
        missing = [each for each in self.texts if fold(each) not in fold(subject.text)]
        return f"{', '.join(map(_show, missing))} not in {_show(subject.text)}" if missing else ""


@frozen
class Matches:
    """The answer matches a pattern of RE2's somewhere."""

    kind: ClassVar[str] = "regex"
    pattern: Pattern

    def __str__(self) -> str:
        return shorten(self.pattern.expression)

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        return "" if self.pattern.matches(subject.text) else f"no match in {_show(subject.text)}"


@frozen
class ValidJson:
    """The answer is one JSON value that fits a schema; a fence around it is allowed."""

    kind: ClassVar[str] = "schema"
    schema: Mapping[str, Any]

    def __str__(self) -> str:
        return _show(self.schema)

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        body = subject.text.strip()
        lines = body.splitlines()
        if len(lines) > 2 and lines[0] in ("```", "```json") and lines[-1] == "```":
            body = "\n".join(lines[1:-1])
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as e:
            return f"the answer is not JSON ({e}): {_show(subject.text)}"
        try:
            return explain(find_problems(self.schema, data))
        except RecursionError:  # values are compared, and answers may be nested as deeply as a model likes
            return f"the answer is nested too deeply: {_show(subject.text)}"


@frozen
class Called:
    """The model called a tool, with these arguments among others, whatever came of it.

    Args:
        tool: its name.
        arguments: each equal to what the call has under that name.
        times: how many such calls there are; None = at least one.
    """

    kind: ClassVar[str] = "called"
    tool: str
    arguments: Mapping[str, Any] = field(factory=dict)
    times: int | None = None

    def __str__(self) -> str:
        times = "" if self.times is None else f", {self.times} times"
        return f"{self.tool}{_show(self.arguments) if self.arguments else ''}{times}"

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        found = _find_calls(subject, self.tool, self.arguments)
        if len(found) == self.times or (self.times is None and found):
            return ""
        many = f"{len(found)} such calls" if found else "no such call"
        return f"{many}; calls: {_show_calls(subject.calls)}"


@frozen
class NotCalled:
    """The model did not call a tool, or not with these arguments: not even a call that was refused.

    Args:
        tool: its name.
        arguments: each equal to what the call has under that name; empty = any call of the tool.
    """

    kind: ClassVar[str] = "not_called"
    tool: str
    arguments: Mapping[str, Any] = field(factory=dict)

    def __str__(self) -> str:
        return f"{self.tool}{_show(self.arguments) if self.arguments else ''}"

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        found = _find_calls(subject, self.tool, self.arguments)
        return f"called: {_show_calls(found)}" if found else ""


def _find_calls(subject: Subject, tool: str, arguments: Mapping[str, Any]) -> list[Call]:
    return [
        call
        for call in subject.calls
        if call.name == tool
        and all(name in call.arguments and _is_equal(call.arguments[name], value) for name, value in arguments.items())
    ]


def _is_equal(one: Any, other: Any) -> bool:
    """Equality of JSON: true is not 1."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr) or (
        type(one) in (int, float) and type(other) in (int, float) and one == other
    )


def _show_calls(calls: Any) -> str:
    return "; ".join(f"{call.name}{_show(call.arguments)}" for call in calls) or "none"


@frozen
class Grounded:
    """At least this share of the claims of the answer follows from what the tools said; none is contradicted."""

    kind: ClassVar[str] = "grounded"
    score: float = 1.0

    @staticmethod
    def check_installed() -> None:
        """Refuse where the plugin that scores claims is missing.

        Raises:
            ConfigError: it is not installed.
        """
        try:
            grounding.GroundingEvaluator  # noqa: B018  the name is looked up
        except ImportError as e:
            raise ConfigError(f"the check `grounded` needs a plugin: pip install locus-plugin-grounding ({e})") from e

    def __str__(self) -> str:
        return f"{self.score:g}"

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``."""
        evidence = [call.result if call.result is not None else str(call.error) for call in subject.calls]
        found = grounding.GroundingEvaluator().evaluate(subject.text, evidence, question=subject.prompt)
        if found.reason:  # an answer that claims nothing
            return str(found.reason)
        if found.score >= self.score and not found.contradicted_claims:
            return ""
        return f"{found.score:.2f}; not grounded: {' | '.join(map(shorten, found.ungrounded_claims))}"


@frozen
class Judge:
    """A model finds that the answer meets a criterion.

    Args:
        criterion: what must be true of the answer, in a sentence or a few.
    """

    kind: ClassVar[str] = "judge"
    criterion: str

    def __str__(self) -> str:
        return shorten(self.criterion)


@frozen
class Ends:
    """The run ended for one of these reasons; without any: by itself, with nothing wrong, no limit and no question.

    Args:
        reasons: stop reasons, such as ``"NoToolCalls"`` or ``"MaxIterations"``; ``"Interrupted"`` is a question.
    """

    kind: ClassVar[str] = "ended"
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " or ".join(self.reasons) or "by itself"

    def find_fault(self, subject: Subject) -> str:
        """What does not fit, or ``""``.

        Raises:
            CheckNotPossible: the agent raised, or its model failed.
        """
        if subject.stop_reason in self.reasons:
            return ""
        if subject.failure:
            raise CheckNotPossible(subject.failure)
        if subject.question:
            return f"it asks {_show(subject.question)}, and the case has no answer left; add one to its `answers`"
        if self.reasons or subject.is_stopped:
            return f"{subject.stop_reason}{f': {shorten(subject.detail)}' if subject.detail else ''}"
        return ""


Check: TypeAlias = Exact | Contains | Matches | ValidJson | Called | NotCalled | Grounded | Judge | Ends
