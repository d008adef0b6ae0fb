"""The machine of a step: only these arrows, exact bounds, and ends that stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from locus_plugin_workflow import AgentLoopConfig, Complete, Continue, Fail, RetryPolicy, StepDef
from locus_plugin_workflow.machine import (
    ARROWS,
    FINAL,
    IllegalTransition,
    StepState,
    deadline,
    expire,
    settle,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

verdicts = st.one_of(
    st.builds(Continue, st.integers()),
    st.builds(Complete, st.integers()),
    st.builds(Fail, st.just("no"), st.booleans()),
)


def loop(n: int = 3, *, attempts: int = 1, **options: float) -> StepDef:
    timeout = options.pop("timeout", 0.0)
    retry = RetryPolicy(attempts, initial=options.pop("initial", 0.0))
    return StepDef(
        name="s", type="agent_loop", handler="h", config=AgentLoopConfig(n, **options), timeout=timeout, retry=retry
    )


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Steps(RuleBasedStateMachine):
    """Workers begin attempts, die, report and report too late; time passes."""

    @initialize(
        n=st.integers(1, 4),
        attempts=st.integers(1, 3),
        duration=st.sampled_from([0.0, 20.0]),
        timeout=st.sampled_from([0.0, 5.0]),
        delay=st.sampled_from([0.0, 2.0]),
    )
    def build(self, n: int, attempts: int, duration: float, timeout: float, delay: float) -> None:
        self.step = loop(n, attempts=attempts, max_duration=duration, timeout=timeout, loop_delay=delay, initial=1.0)
        self.state, self.now = StepState(input="first"), NOON
        self.begun: set[tuple[int, int]] = set()
        self.told: list[StepState] = []

    def to(self, state: StepState) -> None:
        if state is not self.state:
            before, after = self.state.status, state.status
            passed = {(before, after)} if (before, after) in ARROWS else set()
            through = {(before, "continue"), ("continue", after)}
            assert passed or through <= ARROWS
            assert before not in FINAL
            self.told.append(state)
        self.state = state

    @rule(seconds=st.sampled_from([1.0, 3.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @precondition(lambda self: not self.state.is_final)
    @rule()
    def take(self) -> None:
        found = expire(self.state, self.step, self.now)
        self.to(found)
        if found.status in ("queued", "running"):
            self.to(found.begin(self.now))
            self.begun.add((self.state.iteration, self.state.attempt))

    @precondition(lambda self: self.state.status == "running")
    @rule(verdict=verdicts)
    def report(self, verdict: Continue | Complete | Fail) -> None:
        before = self.state
        self.to(settle(before, self.step, verdict, self.now))
        if isinstance(verdict, Continue) and self.state.status == "queued":
            assert self.state.input == verdict.output
            assert (self.state.iteration, self.state.attempt) == (before.iteration + 1, 0)

    @precondition(lambda self: self.state.status != "running")
    @rule(verdict=verdicts)
    def report_too_late(self, verdict: Continue | Complete | Fail) -> None:
        before = self.state
        with pytest.raises(IllegalTransition):
            settle(before, self.step, verdict, self.now)

    @invariant()
    def bounds_hold(self) -> None:
        if not hasattr(self, "step"):
            return
        config = self.step.config
        assert config is not None
        assert self.state.iteration < config.max_iterations
        assert self.state.attempt < self.step.retry.max_attempts
        assert len({iteration for iteration, _ in self.begun}) <= config.max_iterations
        assert len(self.begun) <= config.max_iterations * self.step.retry.max_attempts
        assert self.state.status != "continue"


TestSteps = Steps.TestCase


def test_bound_fails_the_step_after_exactly_so_many_iterations() -> None:
    state, step, runs = StepState(), loop(7), 0
    while not state.is_final:
        state, runs = state.begin(NOON), runs + 1
        state = settle(state, step, Continue(runs), NOON)

    assert (runs, state.status, state.reason, state.iteration) == (7, "failed", "max_iterations", 6)
    assert state.output == 7


def test_bound_is_not_retried() -> None:
    state = settle(StepState().begin(NOON), loop(1, attempts=5), Continue(1), NOON)

    assert (state.status, state.reason) == ("failed", "max_iterations")


def test_duration_counts_from_the_first_start_through_a_day_without_workers() -> None:
    step = loop(9, max_duration=3_600)
    state = settle(StepState().begin(NOON), step, Continue(1), later(5))

    assert expire(state, step, later(3_599)) is state
    found = expire(state, step, later(86_400))
    assert (found.status, found.reason) == ("failed", "max_duration")


@pytest.mark.parametrize(
    ("timeout", "duration", "wanted"), [(5, 60, "timeout"), (60, 5, "max_duration"), (5, 5, "max_duration")]
)
def test_first_bound_to_be_reached_is_the_one_that_counts(timeout: float, duration: float, wanted: str) -> None:
    step = loop(9, timeout=timeout, max_duration=duration)
    state = StepState().begin(NOON)

    assert deadline(state, step) == (later(5), wanted)
    assert expire(evolve(state, deliveries=0), step, later(5)).reason == wanted


def test_time_out_of_an_iteration_does_not_touch_the_next_one() -> None:
    step = loop(9, timeout=5)
    state = settle(StepState().begin(NOON), step, Continue(1), later(4))
    state = state.begin(later(100))

    assert deadline(state, step) == (later(105), "timeout")
    assert expire(state, step, later(104)) is state


def test_worker_that_follows_a_dead_one_has_all_of_the_time_and_the_same_end_of_the_loop() -> None:
    step = loop(9, timeout=5, max_duration=60)
    died = StepState().begin(NOON)

    assert expire(died, step, later(30)) is died
    state = died.begin(later(30))
    assert (state.attempt, state.deliveries) == (0, 2)
    assert deadline(state, step) == (later(35), "timeout")
    assert deadline(state.begin(later(58)), step) == (later(60), "max_duration")


def test_step_that_was_left_in_good_order_has_what_is_left_of_its_time() -> None:
    step = loop(9, timeout=5, attempts=2)
    slept = evolve(StepState().begin(NOON), deliveries=0)

    assert deadline(slept.begin(later(3)), step) == (later(5), "timeout")
    again = expire(slept, step, later(5))
    assert (again.status, again.attempt, again.iteration) == ("queued", 1, 0)


def test_failed_attempt_repeats_the_iteration_with_its_input() -> None:
    step = loop(9, attempts=3, initial=2)
    state = settle(StepState(input="i").begin(NOON), step, Continue("next"), NOON).begin(NOON)

    failed = settle(state, step, Fail("no"), NOON)
    assert (failed.status, failed.iteration, failed.attempt, failed.input) == ("queued", 1, 1, "next")
    assert failed.not_before == later(2)
    failed = settle(settle(failed.begin(NOON), step, Fail("no"), NOON).begin(NOON), step, Fail("never"), NOON)
    assert (failed.status, failed.error, failed.reason) == ("failed", "never", "error")


def test_permanent_failure_is_not_retried() -> None:
    state = settle(StepState().begin(NOON), loop(9, attempts=3), Fail("no", is_permanent=True), NOON)

    assert (state.status, state.reason) == ("failed", "permanent")


def test_delay_is_counted_from_the_end_of_the_iteration() -> None:
    state = settle(StepState().begin(NOON), loop(9, loop_delay=3), Continue(1), later(10))

    assert state.not_before == later(13)


def test_normal_step_cannot_continue() -> None:
    step = StepDef(name="s", handler="h")

    state = settle(StepState().begin(NOON), step, Continue(1), NOON)

    assert (state.status, state.reason) == ("failed", "permanent")
    assert "normal step" in state.error
