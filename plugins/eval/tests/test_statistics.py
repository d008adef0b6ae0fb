"""Intervals and tests: laws, and what scipy 1.17.1 says: `binomtest`, its Wilson interval and its p-value."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_eval.statistics import effective_size, mcnemar_exact, median, wilson

#: passed, size, confidence, low, high
WILSON = [
    (0, 1, 0.9, 0.0, 0.7301340512159458),
    (0, 1, 0.95, 0.0, 0.7934506856227626),
    (1, 1, 0.99, 0.13097754328018596, 1.0),
    (0, 10, 0.95, 0.0, 0.27753279986288926),
    (5, 10, 0.9, 0.26927182113826725, 0.7307281788617328),
    (5, 10, 0.95, 0.236593090512564, 0.7634069094874361),
    (9, 10, 0.95, 0.5958499732047615, 0.9821237869049271),
    (10, 10, 0.95, 0.7224672001371109, 1.0),
    (17, 20, 0.99, 0.5644132797389443, 0.9612129394919282),
    (81, 100, 0.95, 0.7222115462093562, 0.8748524849023126),
    (998, 1000, 0.95, 0.9927371921365078, 0.9994513564118792),
    (3, 7, 0.95, 0.1582198552514697, 0.7495416354723428),
    (250, 1000, 0.99, 0.21645462945665608, 0.28684095299504736),
]

#: better, worse, p
MCNEMAR = [
    (0, 0, 1.0),
    (0, 1, 1.0),
    (0, 5, 0.0625),
    (0, 6, 0.03125),
    (5, 1, 0.21875),
    (3, 8, 0.2265625),
    (10, 10, 1.0),
    (12, 30, 0.007915897334896727),
    (100, 140, 0.01166409231767769),
]

laws = settings(deadline=None, derandomize=True)
groups = st.lists(st.integers(0, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=30)


@pytest.mark.parametrize(("passed", "size", "confidence", "low", "high"), WILSON)
def test_the_interval_is_that_of_scipy(passed: int, size: int, confidence: float, low: float, high: float) -> None:
    assert wilson(passed / size, size, confidence) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("better", "worse", "p"), MCNEMAR)
def test_the_p_value_is_that_of_scipy(better: int, worse: int, p: float) -> None:
    assert mcnemar_exact(better, worse) == pytest.approx(p, rel=1e-9)
    assert mcnemar_exact(worse, better) == mcnemar_exact(better, worse)


@laws
@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_an_interval_contains_what_was_found(found: tuple[int, int], confidence: float) -> None:
    passed, size = found
    low, high = wilson(passed / size, size, confidence)
    assert 0.0 <= low <= passed / size <= high <= 1.0
    assert low < high


@laws
@given(st.floats(0, 1), st.floats(1, 1_000), st.floats(1.01, 10))
def test_more_cases_make_a_narrower_interval(share: float, size: float, factor: float) -> None:
    (low, high), (lower, higher) = wilson(share, size * factor), wilson(share, size)
    assert high - low < higher - lower


@laws
@given(st.floats(0, 1), st.floats(1, 1_000))
def test_the_interval_of_those_that_failed_is_the_mirror_of_those_that_passed(share: float, size: float) -> None:
    low, high = wilson(share, size)
    assert wilson(1 - share, size) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_nothing_found_says_nothing() -> None:
    assert wilson(0.0, 0) == (0.0, 1.0)
    assert effective_size([]) == 0.0
    assert median([]) is None


@laws
@given(groups)
def test_the_effective_size_is_between_the_cases_and_the_trials(found: list[tuple[int, int]]) -> None:
    cases = sum(size > 0 for _, size in found)
    assert cases <= effective_size(found) <= sum(size for _, size in found)


@laws
@given(st.lists(st.booleans(), min_size=2, max_size=30), st.integers(2, 20))
def test_repeats_that_all_come_to_the_same_add_nothing(cases: list[bool], repeats: int) -> None:
    size = effective_size([(repeats * passed, repeats) for passed in cases])
    assert isclose(size, len(cases))


def test_without_repeats_each_case_counts_once() -> None:
    assert effective_size([(1, 1), (0, 1), (1, 1)]) == 3.0


def test_repeats_that_differ_as_much_as_cases_count_as_trials() -> None:
    assert effective_size([(5, 10)] * 8) == 80.0


@laws
@given(st.integers(0, 200), st.integers(0, 200))
def test_a_more_uneven_split_is_less_likely(better: int, worse: int) -> None:
    p = mcnemar_exact(better, worse)
    assert 0.0 < p <= 1.0
    if better > worse:
        assert mcnemar_exact(better + 1, worse) <= p


@pytest.mark.parametrize(("values", "expected"), [([3.0], 3.0), ([4.0, 1.0], 2.5), ([5.0, 1.0, 2.0], 2.0)])
def test_the_median(values: list[float], expected: float) -> None:
    assert median(values) == expected
