"""Durations that no date can say, bounds that end before a wait does, and errors that stay with their step."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import ConfigError
from locus_plugin_workflow import (
    AgentLoopConfig,
    Complete,
    Continue,
    Fail,
    RetryPolicy,
    StepDef,
    Worker,
    Workflow,
    WorkflowDef,
    show,
    start,
)
from locus_plugin_workflow.machine import StepState, deadline, expire, settle
from locus_plugin_workflow.runs import Runs

from .clockwork import World, make_memory, make_world, one

__all__ = ["make_memory", "make_world"]

pytestmark = pytest.mark.anyio

#: Seconds: some 30 000 years, which no date can say.
AEON = 1e12

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

durations = st.floats(0, sys.float_info.max)


def twice(ctx: Any) -> Any:
    return ctx.complete("done") if ctx.iteration else ctx.continue_("half")


def complete(ctx: Any) -> Any:
    return ctx.complete("good")


def good() -> WorkflowDef:
    wf = Workflow("good")
    wf.step("g", complete)
    return wf.build()


# -- longer than a calendar -----------------------------------------------------------------------


@pytest.mark.parametrize("option", ["max_duration", "timeout"])
async def test_bound_beyond_every_date_does_not_end_a_step(world: World, option: str) -> None:
    await world.begin(one(twice, **{option: AEON}))

    assert (await world.step()).output == "done"


async def test_delay_that_no_date_can_say_holds_its_own_step_and_no_other(world: World) -> None:
    definition = one(twice, loop_delay=AEON)
    await world.begin(definition)
    await start(world.store, good(), run_id="other")
    worker = Worker(world.store, [definition, good()], clock=world.clock)
    await worker.run(until_idle=True)

    state = await world.step()
    assert (state.status, state.iteration) == ("queued", 1)
    assert state.not_before is not None
    assert state.not_before > world.clock.now() + timedelta(days=30_000)
    assert (await show(world.store, "other")).output == "good"


@pytest.mark.parametrize("duration", [AEON, timedelta.max, 10**18])
async def test_sleep_that_no_date_can_say_sleeps(world: World, duration: Any) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(duration)

    await world.begin(one(handler))

    state = await world.step()
    assert (state.status, state.error) == ("running", "")
    assert state.not_before is not None
    assert state.not_before > world.clock.now() + timedelta(days=30_000)


async def test_sleep_that_no_date_can_say_is_ended_by_a_bound(memory: World) -> None:
    async def handler(ctx: Any) -> Any:
        await ctx.sleep(AEON)

    definition = one(handler, max_duration=60)
    await memory.begin(definition)
    await memory.work(definition, after=60)

    assert (await memory.step()).reason == "max_duration"


@pytest.mark.parametrize("option", ["with_max_duration", "with_loop_delay", "with_timeout"])
def test_number_too_large_for_a_float_is_refused_as_a_duration(option: str) -> None:
    wf = Workflow("w")
    getattr(wf.agent_loop("s", "h").with_max_iterations(1), option)(10**400)

    with pytest.raises(ConfigError, match=r"step 's': \w+: expected seconds, 0 or more, or a timedelta, got inf"):
        wf.build()


@given(durations, durations, durations, durations, durations, st.floats(0, 1), st.booleans())
def test_every_definition_that_can_be_recorded_can_be_computed(
    max_duration: float, loop_delay: float, timeout: float, initial: float, cap: float, luck: float, is_left: bool
) -> None:
    step = StepDef(
        name="s",
        type="agent_loop",
        handler="h",
        config=AgentLoopConfig(3, max_duration=max_duration, loop_delay=loop_delay),
        timeout=timeout,
        retry=RetryPolicy(3, initial=initial, factor=initial, cap=cap, jitter=1.0),
    )
    begun = evolve(StepState().begin(NOON), deliveries=0 if is_left else 1)

    deadline(begun, step)
    expire(begun, step, NOON + timedelta(days=9), luck)
    for verdict in (Continue(1), Complete(1), Fail("no"), Fail("no", is_permanent=True)):
        due = settle(begun, step, verdict, NOON, luck=luck).not_before
        assert due is None or due >= NOON


# -- a bound that ends before a wait does ---------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "options"),
    [
        (lambda ctx: ctx.continue_("half"), {"loop_delay": 3_600}),
        (lambda ctx: ctx.fail("no"), {"retry": RetryPolicy(4, initial=3_600, cap=0)}),
    ],
    ids=["loop-delay", "retry"],
)
async def test_duration_ends_a_loop_that_waits(world: World, handler: Any, options: Any) -> None:
    definition = one(handler, max_duration=60, **options)
    began = world.clock.now()
    await world.begin(definition)
    state = await world.step()
    assert (state.status, state.not_before) == ("queued", began + timedelta(seconds=60))

    await world.work(definition, after=59)
    assert (await world.step()).status == "queued"
    await world.work(definition, after=1)

    state = await world.step()
    assert (state.status, state.reason) == ("failed", "max_duration")
    assert "was not completed in 60 s, counted from the start of its first iteration" in state.error
    assert (await show(world.store, "run")).status == "failed"


async def test_wait_that_ends_before_the_bound_is_as_long_as_it_was(memory: World) -> None:
    definition = one(twice, max_duration=60, loop_delay=20)
    began = memory.clock.now()
    await memory.begin(definition)
    assert (await memory.step()).not_before == began + timedelta(seconds=20)

    await memory.work(definition, after=20)
    assert (await memory.step()).output == "done"


# -- errors that stay with their step -------------------------------------------------------------


async def test_step_that_cannot_be_computed_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: Any) -> float:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(RetryPolicy, "delay", overflow)
    definition = one(lambda ctx: ctx.fail("no"), retry=3)
    await start(world.store, good(), run_id="other")
    await start(world.store, definition, run_id="run")
    await Worker(world.store, [definition, good()], clock=world.clock).run(until_idle=True)

    state = await world.step()
    assert (state.status, state.reason) == ("failed", "permanent")
    assert state.error == "step 's' cannot be computed: OverflowError: date value out of range"
    assert (await show(world.store, "run")).status == "failed"
    assert (await show(world.store, "other")).output == "good"


async def test_error_that_ends_a_worker_is_logged_with_the_thread(
    memory: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def begin(*_: Any) -> None:
        raise RuntimeError("a mistake of the engine")

    monkeypatch.setattr(Runs, "begin", begin)
    with caplog.at_level(logging.ERROR, "locus.workflow"), pytest.raises(BaseExceptionGroup):
        await memory.begin(good(), "the run")

    assert "the run" in caplog.text
    assert "a mistake of the engine" in caplog.text
