"""The labelled pairs that the plugin grounding is measured with."""

from __future__ import annotations

from collections import Counter

import pytest
from contrib.bench.grounding.pairs import LANGUAGES, PHENOMENA, SETS, read

from locus_plugin_grounding import GroundingEvaluator


def test_the_pairs_cover_languages_and_phenomena() -> None:
    development, held_out = read("development"), read("held_out")
    languages = Counter(pair.language for pair in held_out)
    assert len(held_out) >= 200
    assert set(languages) == set(LANGUAGES)
    assert languages["en"] >= len(held_out) / 2
    assert min(languages.values()) >= 20
    assert {pair.phenomenon for pair in held_out} == {pair.phenomenon for pair in development} == set(PHENOMENA)
    assert 1 / 3 < sum(pair.grounded for pair in held_out) / len(held_out) < 2 / 3


def test_no_pair_is_in_both_sets_or_twice() -> None:
    every = [(pair.claim, pair.evidence) for name in SETS for pair in read(name)]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("name", SETS)
def test_the_rules_judge_most_pairs_rightly_and_ground_no_denial_and_no_swapped_roles(name: str) -> None:
    evaluator = GroundingEvaluator()
    said = [(pair, not evaluator.evaluate([pair.claim], [pair.evidence]).ungrounded_claims) for pair in read(name)]
    assert sum(grounded == pair.grounded for pair, grounded in said) >= 0.78 * len(said)
    false = [pair for pair, grounded in said if grounded and not pair.grounded]
    assert [pair for pair in false if "negation" in pair.phenomenon or pair.phenomenon == "roles"] == []
