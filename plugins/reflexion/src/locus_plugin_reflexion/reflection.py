"""`Reflection`: what a judge says about a step, and the strict way there from a model's answer."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Literal

from attrs import field, frozen

from locus.core.errors import LocusError
from locus.models import OutputSchema, output_schema
from locus_kit.parsing import parse_json_object

__all__ = ["Reflection", "ReflexionReport", "StepVerdict", "UnusableVerdict", "parse_reflection", "reply_schema"]

#: How many characters of a judgment or of guidance are kept: it is read again with every later request.
_LONGEST = 1000
#: Characters of an answer; a longer one is refused unread.
_MOST = 20_000


class StepVerdict(StrEnum):
    """How the work goes."""

    ON_TRACK = "on_track"
    STUCK = "stuck"
    NEW_FINDINGS = "new_findings"
    LOOP = "loop"

    @property
    def assessment(self) -> str:
        """What `ReflectEvent.assessment` calls it."""
        return "loop_detected" if self is StepVerdict.LOOP else self.value


class UnusableVerdict(LocusError):
    """A judge's answer follows the schema and still says nothing usable.

    Args:
        confidence: what it gave as its confidence.
    """

    def __init__(self, confidence: object) -> None:
        self.confidence = confidence
        super().__init__(f"the judge's confidence must be a number from 0.0 to 1.0, got {confidence!r}")


def _line(text: str) -> str:
    """One line: nothing in it can look like another part of the message that it goes into."""
    joined = " ".join(text.split())
    return joined if len(joined) <= _LONGEST else f"{joined[: _LONGEST - 4]} ..."


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"confidence must be a number from 0.0 to 1.0, got {value!r}")
    return min(1.0, max(0.0, float(value)))


@frozen(kw_only=True)
class Reflection:
    """A judgment of one step.

    Args:
        verdict: how the work goes.
        judgment: why, in a sentence or two; one line.
        confidence: absolute, 0.0 to 1.0, clamped: how sure the judge is that the user's request is fulfilled as
            things are. NaN is refused.
        guidance: what to do next, or ``""``; one line.

    Raises:
        ValueError: the confidence is not a number.
    """

    verdict: StepVerdict = field(converter=StepVerdict)
    judgment: str = field(converter=_line)
    confidence: float = field(converter=_confidence)
    guidance: str = field(default="", converter=_line)

    @property
    def failing(self) -> bool:
        """Whether the step taught what not to do."""
        return self.verdict in (StepVerdict.STUCK, StepVerdict.LOOP)


@frozen(kw_only=True)
class Reply:
    """The judge's verdict on the last step.

    Args:
        judgment: how the work goes and why, in one or two sentences.
        verdict: on_track, stuck, new_findings or loop.
        confidence: from 0.0 to 1.0: how sure you are that the user's request is fulfilled by now.
        guidance: what the agent should do next, in one sentence.
    """

    judgment: str  # first: what a model has written before it names a number, the number can rest on
    verdict: Literal["on_track", "stuck", "new_findings", "loop"]
    confidence: float
    guidance: str = ""


def reply_schema() -> OutputSchema[Reply]:
    """What a judge must answer."""
    return output_schema(Reply)


def parse_reflection(schema: OutputSchema[Reply], answer: str) -> Reflection:
    """The reflection that a judge's answer is. Nothing is looked for in prose: who quotes a result quotes its verdict.

    Raises:
        NotOneObject: it is not one JSON object and nothing else.
        OutputError: it does not follow the schema.
        UnusableVerdict: its confidence is not a finite number.
    """
    parse_json_object(answer, longest=_MOST)
    reply = schema.parse(answer)
    if not math.isfinite(reply.confidence):
        raise UnusableVerdict(reply.confidence)
    return Reflection(
        verdict=StepVerdict(reply.verdict),
        judgment=reply.judgment,
        confidence=reply.confidence,
        guidance=reply.guidance,
    )


@frozen(kw_only=True)
class ReflexionReport:
    """``result.reports["reflexion"]``: what came of reflecting in this call of ``run`` or ``resume``.

    Args:
        reflections: how many were made.
        last: the newest one, or None.
        failures: how many were due and did not come about.
        errors: why, the last five.
    """

    reflections: int = 0
    last: Reflection | None = None
    failures: int = 0
    errors: tuple[str, ...] = ()
