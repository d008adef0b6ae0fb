"""The plugin's events."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from locus.plugin import Event, register_event

__all__ = ["GroundingEvent", "GroundingFailedEvent"]


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(value)


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class GroundingEvent(Event):
    """A pass was made.

    Args:
        score: 0.0 to 1.0.
        claims_evaluated: how many claims there were.
        ungrounded_claims: those that no evidence confirms.
        requires_replan: whether the text cannot be accepted as it is.
        decision: ``"proceed"``, ``"regenerate"`` or ``"replan"``.
        reason: ``"no claims"``, or ``""``.
        stage: ``"reflect"`` or ``"answer"``.
    """

    score: float = 0.0
    claims_evaluated: int = 0
    ungrounded_claims: tuple[str, ...] = field(default=(), converter=_texts)
    requires_replan: bool = False
    decision: str = "proceed"
    reason: str = ""
    stage: str = "answer"


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class GroundingFailedEvent(Event):
    """The judge failed, or its answer was invalid; the run continues as if it had not been asked.

    Args:
        error: what happened.
        error_type: the name of the exception.
        stage: ``"reflect"`` or ``"answer"``.
    """

    error: str = ""
    error_type: str = ""
    stage: str = "answer"
