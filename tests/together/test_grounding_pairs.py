"""The labelled pairs that the plugin grounding is measured with."""

from __future__ import annotations

from collections import Counter

from contrib.bench.grounding.pairs import LANGUAGES, PHENOMENA, SETS, read


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
