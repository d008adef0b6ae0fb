"""The typed form: one formula, three answers, and the laws that hold for them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from locus_plugin_grounding import (
    WEIGHTS,
    Decision,
    GroundingEvaluator,
    GroundingSettings,
    Kind,
    Partition,
    TypedClaim,
    decide,
    typed_score,
)

LAW = settings(deadline=None, derandomize=True, max_examples=120)
CLAIMS = st.builds(TypedClaim, st.integers(0, 10**6).map(str), st.sampled_from(Kind))
GROUPS = st.lists(CLAIMS, max_size=5)
PARTITIONS = st.builds(Partition, grounded=GROUPS, ungrounded=GROUPS, contradicted=GROUPS, complementary=GROUPS)
PENALTIES = st.floats(0, 10)
STRICTNESS = {Decision.PROCEED: 0, Decision.REGENERATE: 1, Decision.REPLAN: 2}
NEVER_MORE = 1e-12


def test_the_worked_example_of_the_paper() -> None:
    example = Partition(
        grounded=[TypedClaim("c1"), TypedClaim("c2", Kind.SPECIFIC_DATA)],
        ungrounded=[TypedClaim("c3", Kind.INFERENCE)],
        complementary=[TypedClaim("c4", Kind.COMPLEMENTARY_FINDING)],
        contradicted=[TypedClaim("c5", Kind.INFERENCE)],
    )
    assert typed_score(example, penalty=0.5) == pytest.approx(2.80 / 3.70)
    assert decide(typed_score(example, penalty=0.5)) is Decision.REGENERATE


@pytest.mark.parametrize(
    ("score", "expected"),
    [(1.0, "proceed"), (0.8, "proceed"), (0.79, "regenerate"), (0.65, "regenerate"), (0.64, "replan"), (0.0, "replan")],
)
def test_three_answers(score: float, expected: str) -> None:
    assert decide(score) == expected


def test_what_is_not_a_number_is_not_a_reason_to_proceed() -> None:
    assert decide(math.nan) is Decision.REPLAN


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_a_penalty_and_weights_are_finite_and_not_negative(wrong: float) -> None:
    with pytest.raises(ValueError, match="penalty"):
        typed_score(Partition(), penalty=wrong)
    with pytest.raises(ValueError, match="domain"):
        typed_score(Partition(), weights={**WEIGHTS, Kind.DOMAIN: wrong})


def test_nothing_is_grounded_by_nothing() -> None:
    assert typed_score(Partition()) == 0.0


@LAW
@given(PARTITIONS, PENALTIES)
def test_a_score_is_a_share(partition: Partition, penalty: float) -> None:
    assert 0.0 <= typed_score(partition, penalty=penalty) <= 1.0


@LAW
@given(PARTITIONS, CLAIMS, PENALTIES, st.sampled_from(["grounded", "complementary"]))
def test_another_grounded_claim_never_lowers_the_score(
    partition: Partition, claim: TypedClaim, penalty: float, group: str
) -> None:
    more = evolve(partition, **{group: (*getattr(partition, group), claim)})
    assert typed_score(more, penalty=penalty) >= typed_score(partition, penalty=penalty) - NEVER_MORE


@LAW
@given(PARTITIONS, CLAIMS, PENALTIES, st.sampled_from(["ungrounded", "contradicted"]))
def test_another_contradiction_or_unfounded_claim_never_raises_it(
    partition: Partition, claim: TypedClaim, penalty: float, group: str
) -> None:
    more = evolve(partition, **{group: (*getattr(partition, group), claim)})
    assert typed_score(more, penalty=penalty) <= typed_score(partition, penalty=penalty) + NEVER_MORE


@LAW
@given(PARTITIONS, CLAIMS, PENALTIES)
def test_evidence_for_an_unfounded_claim_never_lowers_it(
    partition: Partition, claim: TypedClaim, penalty: float
) -> None:
    without = evolve(partition, ungrounded=(*partition.ungrounded, claim))
    with_it = evolve(partition, grounded=(*partition.grounded, claim))
    assert typed_score(with_it, penalty=penalty) >= typed_score(without, penalty=penalty) - NEVER_MORE


@LAW
@given(PARTITIONS, CLAIMS, st.floats(1, 10))
def test_calling_an_unfounded_claim_contradicted_never_raises_it_from_a_penalty_of_one(
    partition: Partition, claim: TypedClaim, penalty: float
) -> None:
    unfounded = evolve(partition, ungrounded=(*partition.ungrounded, claim))
    contradicted = evolve(partition, contradicted=(*partition.contradicted, claim))
    assert typed_score(contradicted, penalty=penalty) <= typed_score(unfounded, penalty=penalty) + NEVER_MORE


@LAW
@given(PARTITIONS, PENALTIES, PENALTIES)
def test_a_higher_penalty_never_raises_it(partition: Partition, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert typed_score(partition, penalty=high) <= typed_score(partition, penalty=low) + NEVER_MORE


@LAW
@given(PARTITIONS, PENALTIES, st.data())
def test_weaker_evidence_never_raises_it(partition: Partition, penalty: float, data: Any) -> None:
    assume(partition.grounded)
    at = data.draw(st.integers(0, len(partition.grounded) - 1))
    weaker = list(partition.grounded)
    assume(WEIGHTS[weaker[at].kind] >= WEIGHTS[Kind.INFERENCE])
    weaker[at] = evolve(weaker[at], kind=Kind.INFERENCE)
    less = evolve(partition, grounded=weaker)
    assert typed_score(less, penalty=penalty) <= typed_score(partition, penalty=penalty) + NEVER_MORE


@LAW
@given(PARTITIONS, PENALTIES, st.data())
def test_leaving_a_contradicted_claim_out_never_raises_the_score_or_eases_the_answer(
    partition: Partition, penalty: float, data: Any
) -> None:
    kept = [claim for claim in partition.contradicted if data.draw(st.booleans())]
    silent = evolve(partition, contradicted=kept).after(partition.contradicted)
    assert {c.text for c in silent.contradicted} == {c.text for c in partition.contradicted}
    if len({c.text for c in partition.contradicted}) == len(partition.contradicted):
        assert typed_score(silent, penalty=penalty) <= typed_score(partition, penalty=penalty) + NEVER_MORE
    assert bool(silent.contradicted) == bool(partition.contradicted)


@LAW
@given(PARTITIONS, GROUPS, PENALTIES)
def test_no_number_of_good_claims_lets_a_contradiction_pass(
    partition: Partition, padding: list[TypedClaim], penalty: float
) -> None:
    assume(partition.contradicted)
    padded = evolve(partition, grounded=(*partition.grounded, *(padding * 50)))
    decision = decide(typed_score(padded, penalty=penalty), contradicted=padded.contradicted)
    assert decision is not Decision.PROCEED


@LAW
@given(st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_a_lower_score_never_has_the_milder_answer(one: float, other: float, contradicted: bool) -> None:
    low, high = sorted((one, other))
    x = (TypedClaim("x"),) if contradicted else ()
    assert STRICTNESS[decide(low, contradicted=x)] >= STRICTNESS[decide(high, contradicted=x)]
    assert STRICTNESS[decide(low, contradicted=("x",))] >= STRICTNESS[decide(low)]


# -- in an evaluation -----------------------------------------------------------------------------

STOCK = "Berlin holds 400 widgets. Paris holds 40 gadgets. The widgets are red."
TYPED = GroundingEvaluator(GroundingSettings(typed=True))


def test_the_rules_partition_the_claims() -> None:
    result = TYPED.evaluate("Berlin holds 400 widgets. Paris holds 41 gadgets. Rome has a harbour.", [STOCK])
    assert result.partition == Partition(
        grounded=[TypedClaim("Berlin holds 400 widgets.")],
        contradicted=[TypedClaim("Paris holds 41 gadgets.")],
        ungrounded=[TypedClaim("Rome has a harbour.", Kind.INFERENCE)],
    )
    assert result.score == pytest.approx(1.0 / 2.6)
    assert result.decision is Decision.REPLAN


def test_a_contradiction_that_is_left_out_stays_and_one_that_is_corrected_goes() -> None:
    first = TYPED.evaluate("Berlin holds 400 widgets. Paris holds 41 gadgets.", [STOCK])
    assert first.partition is not None
    held = first.partition.contradicted
    silent = TYPED.evaluate("Berlin holds 400 widgets.", [STOCK], earlier=held)
    assert silent.contradicted_claims == ("Paris holds 41 gadgets.",)
    assert (silent.decision, silent.score) == (Decision.REPLAN, first.score)
    assert TYPED.evaluate("Ok.", [STOCK], earlier=held).requires_replan
    corrected = TYPED.evaluate("Berlin holds 400 widgets. Paris holds 40 gadgets.", [STOCK], earlier=held)
    assert (corrected.decision, corrected.score) == (Decision.PROCEED, 1.0)
