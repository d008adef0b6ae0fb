"""The circuit breaker by itself: when it opens, whom it admits, what it forgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_plugin_retry import Breaker, BreakerSettings


def fail(breaker: Breaker, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        breaker.record(breaker.era, now, ok=False)


def test_failures_in_a_row_open_it_and_a_success_between_starts_the_count_anew() -> None:
    breaker = Breaker(BreakerSettings(failures=3))
    fail(breaker, 2)
    breaker.record(breaker.era, 0, ok=True)
    fail(breaker, 2)
    assert not breaker.is_open
    assert breaker.record(breaker.era, 0, ok=False), "the change is told"
    assert breaker.is_open
    assert breaker.admit(29.9) is None


def test_half_open_it_admits_one_call_in_each_cooldown() -> None:
    breaker = Breaker(BreakerSettings(failures=1, cooldown=10))
    fail(breaker, 1)
    assert breaker.seconds_left(4) == 6
    trying = breaker.admit(10)
    assert trying is not None
    assert breaker.admit(10) is None
    assert breaker.admit(19.9) is None
    assert breaker.admit(20) is not None, "the one that tried never came back"


def test_the_call_that_tries_closes_it_or_opens_it_for_another_cooldown() -> None:
    breaker = Breaker(BreakerSettings(failures=1, cooldown=10))
    fail(breaker, 1)
    trying = breaker.admit(10)
    assert trying is not None
    assert breaker.record(trying, 12, ok=False)
    assert breaker.admit(21.9) is None
    trying = breaker.admit(22)
    assert trying is not None
    assert breaker.record(trying, 23, ok=True)
    assert not breaker.is_open
    assert breaker.admit(23) is not None


def test_calls_that_began_before_it_opened_neither_close_it_nor_keep_it_open() -> None:
    breaker = Breaker(BreakerSettings(failures=1, cooldown=10))
    early = breaker.admit(0)
    assert early is not None
    fail(breaker, 1)
    assert not breaker.record(early, 1, ok=True)
    assert breaker.is_open
    trying = breaker.admit(10)
    assert not breaker.record(early, 11, ok=True)
    assert breaker.is_open
    assert trying is not None
    breaker.record(trying, 12, ok=True)
    assert not breaker.record(early, 13, ok=False)
    assert not breaker.is_open


def test_what_is_reported_while_it_is_open_and_nobody_tries_does_not_count() -> None:
    breaker = Breaker(BreakerSettings(failures=1, cooldown=10))
    fail(breaker, 1)
    assert not breaker.record(breaker.era, 1, ok=True)
    assert breaker.seconds_left(1) == 9


def test_a_share_of_failures_opens_it_once_there_are_enough_calls() -> None:
    breaker = Breaker(BreakerSettings(failures=100, rate=0.5, window=4))
    for ok in (False, True, False):
        breaker.record(breaker.era, 0, ok=ok)
    assert not breaker.is_open
    breaker.record(breaker.era, 0, ok=True)
    assert not breaker.is_open, "a success opens nothing"
    breaker.record(breaker.era, 0, ok=False)
    assert breaker.is_open


def test_closed_again_it_has_forgotten_what_was() -> None:
    breaker = Breaker(BreakerSettings(failures=2, rate=1.0, window=2, cooldown=1))
    fail(breaker, 2)
    trying = breaker.admit(1)
    assert trying is not None
    breaker.record(trying, 1, ok=True)
    fail(breaker, 1, now=1)
    assert not breaker.is_open


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.floats(0, 20), st.booleans(), st.booleans()), max_size=60),
)
def test_law_it_opens_exactly_after_so_many_failures_in_a_row_and_admits_one_call_a_cooldown(
    failures: int, calls: list[tuple[float, bool, bool]]
) -> None:
    """Given calls one after another, some of which never come back; then a plain count says the same."""
    breaker = Breaker(BreakerSettings(failures=failures, cooldown=10))
    now, row, until = 0.0, 0, None
    for passed, ok, lost in calls:
        now += passed
        era = breaker.admit(now)
        admitted = until is None or now >= until
        assert (era is not None) == admitted
        if era is None:
            continue
        trying = until is not None
        if trying:
            until = now + 10
        if lost:
            continue
        breaker.record(era, now, ok=ok)
        row = 0 if ok else row + 1
        if ok:
            until = None
        elif trying or row >= failures:
            until, row = now + 10, failures
        assert breaker.is_open == (until is not None)


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"rate": 0.0}, {"rate": 1.1}, {"window": 0}, {"cooldown": -1.0}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BreakerSettings(**wrong)  # type: ignore[arg-type]
