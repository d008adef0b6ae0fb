"""`GroundingResult`: what one pass says, and `GroundingReport`: what a run's result says about grounding."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from locus_plugin_grounding.partition import Decision, Partition

__all__ = ["NO_CLAIMS", "GroundingReport", "GroundingResult"]

NO_CLAIMS = "no claims"


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(value)


@frozen(kw_only=True)
class GroundingResult:
    """What one pass found.

    Args:
        score: 0.0 to 1.0: the share of the claims that is grounded, or `typed_score`; 0.0 without claims.
        claims: what was scored.
        ungrounded_claims: those that no evidence confirms, contradicted ones too.
        contradicted_claims: those that evidence contradicts, of earlier answers too where the form is typed.
        decision: what becomes of the text.
        reason: ``"no claims"``, or ``""``.
        partition: of the typed form, else None.
    """

    score: float
    claims: tuple[str, ...] = field(default=(), converter=_texts)
    ungrounded_claims: tuple[str, ...] = field(default=(), converter=_texts)
    contradicted_claims: tuple[str, ...] = field(default=(), converter=_texts)
    decision: Decision = field(default=Decision.PROCEED, converter=Decision)
    reason: str = ""
    partition: Partition | None = None

    @property
    def requires_replan(self) -> bool:
        """Whether the text cannot be accepted as it is."""
        return self.decision is not Decision.PROCEED


@frozen(kw_only=True)
class GroundingReport:
    """``result.reports["grounding"]``.

    Args:
        verdict: of the final answer: ``"grounded"``, ``"ungrounded"`` (it is accepted because no revisions were
            left), ``"no claims"``, ``"no evidence"`` (``require_evidence`` is off), ``"unchecked"`` (the
            judge failed), or ``""`` (no answer to score).
        score: of the final answer, or None where it has none.
        ungrounded_claims: of the final answer.
        revisions: how often this plugin sent an answer of the run back.
        passes: how many passes there were in this call of ``run`` or ``resume``.
        failures: how often the judge failed in it.
        errors: why, the last five.
    """

    verdict: str = ""
    score: float | None = None
    ungrounded_claims: tuple[str, ...] = field(default=(), converter=_texts)
    revisions: int = 0
    passes: int = 0
    failures: int = 0
    errors: tuple[str, ...] = ()
