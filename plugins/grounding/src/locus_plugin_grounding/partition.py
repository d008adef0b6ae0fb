"""The typed form: claims in four groups with the kind of evidence that each has, one score, three answers.

After GSAR (arXiv 2604.23366): ``S = (W(G) + W(K)) / (W(G) + W(U) + rho W(X) + W(K))``, where W sums the weights of the
kinds of evidence. Two things are stricter here, because with the formula alone a contradiction is escaped by leaving
its claim out of the next answer, or drowned by adding what is not in doubt: a contradicted claim stays in X until an
answer corrects it (`Partition.after`), and while X is not empty the answer is not `Decision.PROCEED` (`decide`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve, field, frozen

__all__ = ["WEIGHTS", "Decision", "Kind", "Partition", "TypedClaim", "decide", "typed_score"]


class Kind(StrEnum):
    """The kind of evidence that a claim has, or would need."""

    TOOL_MATCH = "tool_match"
    SPECIFIC_DATA = "specific_data"
    SIGNAL_MATCH = "signal_match"
    COMPLEMENTARY_FINDING = "complementary_finding"
    SYNTHESIS = "synthesis"
    NEG_EVIDENCE = "neg_evidence"
    INFERENCE = "inference"
    DOMAIN = "domain"


#: The paper's reference weights.
WEIGHTS: Final[Mapping[Kind, float]] = MappingProxyType(
    {
        Kind.TOOL_MATCH: 1.0,
        Kind.SPECIFIC_DATA: 0.95,
        Kind.SIGNAL_MATCH: 0.9,
        Kind.COMPLEMENTARY_FINDING: 0.85,
        Kind.SYNTHESIS: 0.8,
        Kind.NEG_EVIDENCE: 0.7,
        Kind.INFERENCE: 0.6,
        Kind.DOMAIN: 0.6,
    }
)


class Decision(StrEnum):
    """What becomes of an answer: it is accepted, rewritten from the same evidence, or evidence is sought first."""

    PROCEED = "proceed"
    REGENERATE = "regenerate"
    REPLAN = "replan"


@frozen
class TypedClaim:
    """A claim and the kind of its evidence.

    Args:
        text: the claim.
        kind: what it rests on.
    """

    text: str
    kind: Kind = field(default=Kind.TOOL_MATCH, converter=Kind)


def _claims(value: Iterable[TypedClaim]) -> tuple[TypedClaim, ...]:
    return tuple(value)


@frozen(kw_only=True)
class Partition:
    """The claims of an answer in four groups.

    Args:
        grounded: G, evidence says so.
        ungrounded: U, no evidence says so.
        contradicted: X, evidence says otherwise; those of earlier answers that were not corrected too.
        complementary: K, evidence says so and other evidence sees it differently: another view, no repetition.
    """

    grounded: tuple[TypedClaim, ...] = field(default=(), converter=_claims)
    ungrounded: tuple[TypedClaim, ...] = field(default=(), converter=_claims)
    contradicted: tuple[TypedClaim, ...] = field(default=(), converter=_claims)
    complementary: tuple[TypedClaim, ...] = field(default=(), converter=_claims)

    def after(self, earlier: Iterable[TypedClaim], corrects: Callable[[str, str], bool] | None = None) -> Partition:
        """This partition with the contradictions of earlier answers that this one does not correct.

        Args:
            earlier: contradicted claims of earlier answers.
            corrects: whether a grounded claim (first) says what is right in place of a contradicted one (second);
                None = nothing does.
        """
        held = [c.text for c in (*self.grounded, *self.complementary)]
        stated = {c.text for c in self.contradicted}
        open_ = [
            old
            for old in dict.fromkeys(earlier)
            if old.text not in stated and not (corrects is not None and any(corrects(new, old.text) for new in held))
        ]
        return evolve(self, contradicted=(*self.contradicted, *open_))


def _weight(claims: Iterable[TypedClaim], weights: Mapping[Kind, float]) -> float:
    return math.fsum(weights[claim.kind] for claim in claims)


def typed_score(partition: Partition, *, penalty: float = 1.0, weights: Mapping[Kind, float] = WEIGHTS) -> float:
    """The score of a partition, 0.0 to 1.0.

    Args:
        partition: the claims.
        penalty: rho, what a contradicted claim weighs beside an ungrounded one, 0 or more. The paper's reference is
            0.5, with which calling an ungrounded claim contradicted *raises* the score; with 1 or more it does not.
        weights: of each kind of evidence, 0 or more.

    Returns:
        The score; 0.0 when nothing has weight: without claims nothing is grounded. (The paper's is 0.5.)

    Raises:
        ValueError: the penalty or a weight is negative or no finite number.
    """
    for name, value in (("penalty", penalty), *((str(kind), weight) for kind, weight in weights.items())):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number of 0 or more, got {value!r}")
    held = _weight((*partition.grounded, *partition.complementary), weights)
    missing = _weight(partition.ungrounded, weights) + penalty * _weight(partition.contradicted, weights)
    return held / (held + missing) if held > 0 else 0.0


def decide(score: float, *, contradicted: Any = (), proceed: float = 0.8, threshold: float = 0.65) -> Decision:
    """What becomes of an answer.

    Args:
        score: its score.
        contradicted: X; while there is one, the answer does not proceed, whatever it says beside it.
        proceed: the score from which it is accepted.
        threshold: the score below which evidence must be sought.
    """
    if score < threshold or math.isnan(score):
        return Decision.REPLAN
    return Decision.PROCEED if score >= proceed and not contradicted else Decision.REGENERATE
