"""The settings of the plugin: the table ``[plugins.grounding]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus_kit.validators import integer, number, optional, seconds, zero_to_none

__all__ = ["GroundingSettings", "Judge"]

#: Who compares claims with evidence: rules, without a model call, a model, or both, where the rules cannot tell.
Judge = Literal["rules", "model", "both"]


def _check_order(instance: GroundingSettings, _: Attribute[Any], value: Any) -> None:
    if value > instance.proceed:
        raise ValueError(f"threshold must not be more than proceed ({instance.proceed!r}), got {value!r}")


@frozen(kw_only=True)
class GroundingSettings:
    """When claims are scored, by whom, and what comes of it.

    Args:
        judge: ``"rules"`` asks no model; ``"model"`` asks a model about all claims in one call; ``"both"`` asks one
            about each claim that the rules neither confirm nor refute.
        model: the judge, ``"provider:model"``; None = the agent's own model. Naming one does not choose it:
            ``judge`` does.
        typed: partition the claims into grounded, ungrounded, contradicted and complementary (see `typed_score`),
            with three answers in place of two.
        proceed: of the typed form: the score from which an answer is accepted.
        threshold: the score below which an answer is sent back to find evidence; in the typed form, between this and
            ``proceed`` it is sent back to be rewritten.
        penalty: of the typed form: what a contradicted claim weighs beside an ungrounded one, 0 or more.
        interval: reflect after every so many iterations; None, or 0 in a file, only when another plugin wants to.
        answers: whether final answers are scored.
        require_evidence: whether an answer is scored in a conversation without any tool result, where nothing can be
            grounded.
        revisions: how often one run's answers are sent back, at most; the agent's ``max_revisions`` counts as well.
        overlap: of the rules: the share of a claim's words of content and numbers that one piece of evidence must have,
            0.5 to 1; names, numbers and denials must be there in any case.
        timeout: seconds after which a judge's answer is no longer waited for; None = as long as the run may take.
        max_tokens: of one answer of the judge; None = the provider's default.
        max_claims: how many claims of one text are scored; of more, the rest counts as ungrounded.
        max_chars: characters of one tool's result that are looked at: of a longer one the beginning and the end.
        max_evidence: characters of all results together that a judge is shown, the newest first.

    Raises:
        ValueError: a number is out of range.
    """

    judge: Judge = field(default="rules", validator=in_(("rules", "model", "both")))
    model: str | None = None
    typed: bool = False
    proceed: float = field(default=0.8, validator=number(0, 1))
    threshold: float = field(default=0.65, validator=[number(0, 1), _check_order])
    penalty: float = field(default=1.0, validator=number(0))
    interval: int | None = field(default=2, converter=zero_to_none, validator=optional(integer(1)))
    answers: bool = True
    require_evidence: bool = True
    revisions: int = field(default=2, validator=integer(0))
    overlap: float = field(default=1.0, validator=number(0.5, 1))
    timeout: float | None = field(default=60.0, validator=optional(seconds))
    max_tokens: int | None = field(default=None, validator=optional(integer(1)))
    max_claims: int = field(default=50, validator=integer(1))
    max_chars: int = field(default=20_000, validator=integer(100))
    max_evidence: int = field(default=40_000, validator=integer(100))
