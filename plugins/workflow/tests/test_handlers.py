"""What handlers may say, how long they may take, and what follows when they fail."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any

import anyio
import pytest

import locus_plugin_workflow as package
from locus.core.errors import ConfigError, InputError, JournalError, StepFailed, UnknownName
from locus.journal import MemoryStore
from locus_plugin_workflow import (
    ALIASES,
    Complete,
    Continue,
    Fail,
    FailPermanent,
    RetryPolicy,
    StepEvent,
    Worker,
    Workflow,
    WorkflowDef,
    show,
    start,
)
from locus_testkit import FakeClock
from locus_testkit.contracts import WorkerProcess

pytestmark = pytest.mark.anyio


def loop(handler: Any, n: int = 3, **options: Any) -> WorkflowDef:
    wf = Workflow("w")
    step = wf.agent_loop("s", handler).with_max_iterations(n)
    for name, value in options.items():
        getattr(step, f"with_{name}")(value)
    return wf.build()


async def end_of(handler: Any, n: int = 3, **options: Any) -> Any:
    """How the only step of a workflow ends."""
    run = await Worker(MemoryStore()).run_workflow(loop(handler, n, **options), "given")
    return run.steps["s"]


# -- names ----------------------------------------------------------------------------------------


def test_aliases_are_the_same_functions() -> None:
    def find(path: str) -> Any:
        value: Any = package
        for name in path.split("."):
            value = vars(value)[name] if isinstance(value, type) and name in vars(value) else getattr(value, name)
        return value

    for other, name in ALIASES.items():
        if isinstance(find(other), property):
            continue
        assert find(other) is find(name), other
    assert {name.rpartition(".")[2] for name in ALIASES} >= {
        *("NewWorkflow", "AgentLoop", "WithMaxIterations", "WithMaxDuration", "WithLoopDelay", "WithTimeout", "Build"),
        *("DependsOn", "Handle", "Input", "LoadCheckpoint", "Checkpoint", "Continue", "Complete", "Fail"),
    }


async def test_payload_and_definition_have_the_names_of_the_source() -> None:
    seen: list[Any] = []

    async def handler(ctx: Any) -> None:
        seen.append((ctx.payload.Iteration, ctx.payload.RunID == ctx.run_id, ctx.Input(), ctx.definition.Timeout))
        ctx.Complete()

    await end_of(handler, timeout=9)

    assert seen == [(0, True, "given", 9.0)]


# -- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [Complete("x"), Fail("x"), Fail("x", is_permanent=True)])
async def test_verdict_may_be_returned_or_said_or_both(verdict: Any) -> None:
    async def returns(ctx: Any) -> Any:
        return verdict

    async def says(ctx: Any) -> None:
        {"Complete": ctx.complete, "Fail": ctx.fail_permanent if getattr(verdict, "is_permanent", 0) else ctx.fail}[
            type(verdict).__name__
        ]("x")

    async def both(ctx: Any) -> Any:
        await says(ctx)
        return verdict

    ends = [await end_of(handler) for handler in (returns, says, both)]

    assert len({(end.status, end.output, end.error, end.reason) for end in ends}) == 1


async def test_iteration_without_a_verdict_fails() -> None:
    async def handler(ctx: Any) -> None: ...

    end = await end_of(handler)

    assert (end.status, end.reason) == ("failed", "no_verdict")
    assert "returned without a verdict; call ctx.continue_, ctx.complete or ctx.fail" in end.error


async def test_two_verdicts_fail() -> None:
    async def says_both(ctx: Any) -> None:
        ctx.complete(1)
        ctx.continue_(1)

    async def returns_another(ctx: Any) -> Any:
        ctx.complete(1)
        return Continue(1)

    for handler in (says_both, returns_another):
        end = await end_of(handler)
        assert (end.status, end.reason) == ("failed", "error")
        assert end.error.startswith("ConflictingVerdicts: ")


async def test_verdict_does_not_count_when_the_handler_raises_after_it() -> None:
    async def handler(ctx: Any) -> None:
        ctx.complete("done")
        raise OSError("after all")

    end = await end_of(handler)

    assert (end.status, end.error) == ("failed", "OSError: after all")


async def test_return_value_that_is_not_a_verdict_fails() -> None:
    async def handler(ctx: Any) -> Any:
        return {"done": True}

    assert "returned {'done': True}; return ctx.complete" in (await end_of(handler)).error


async def test_plain_function_that_returns_a_coroutine_fails() -> None:
    async def inner(ctx: Any) -> Any:
        return ctx.complete()

    assert "make it `async def`" in (await end_of(lambda ctx: inner(ctx))).error


async def test_output_without_a_json_form_fails_the_step() -> None:
    async def handler(ctx: Any) -> Any:
        return ctx.complete(object())

    end = await end_of(handler, retry=3)

    assert end.status == "failed"
    assert "has no JSON form" in end.error


async def test_plain_function_has_the_same_context_in_a_thread() -> None:
    def handler(ctx: Any) -> Any:
        if ctx.LoadCheckpoint() is None:
            ctx.Checkpoint(b"history")
            return ctx.Continue("more")
        return ctx.Complete([ctx.LoadCheckpoint(), ctx.Input(), ctx.step("add", lambda: 3, effect="pure")])

    assert (await end_of(handler)).output == (b"history", "more", 3)


async def test_what_a_handler_changes_is_its_own() -> None:
    async def handler(ctx: Any) -> Any:
        if ctx.iteration == 0:
            return ctx.continue_({"items": [1]})
        ctx.input()["items"].append(2)
        return ctx.complete(ctx.input())

    assert (await end_of(handler)).output == {"items": (1,)}


# -- failures and retries -------------------------------------------------------------------------


async def test_failed_attempt_repeats_its_iteration_with_the_checkpoint() -> None:
    seen: list[Any] = []

    async def handler(ctx: Any) -> Any:
        seen.append((ctx.iteration, ctx.attempt, ctx.input(), await ctx.load_checkpoint(), ctx.idempotency_key[-2:]))
        if ctx.iteration == 0:
            return ctx.continue_("next")
        await ctx.checkpoint(ctx.attempt)
        if ctx.attempt < 2:
            raise OSError("not yet")
        return ctx.complete()

    end = await end_of(handler, retry=RetryPolicy(3, initial=0))

    assert end.status == "completed"
    assert seen == [
        (0, 0, "given", None, "/0"),
        (1, 0, "next", None, "/1"),
        (1, 1, "next", 0, "/1"),
        (1, 2, "next", 1, "/1"),
    ]


async def test_permanent_failure_is_not_tried_again() -> None:
    ran: Counter[str] = Counter()

    async def raises(ctx: Any) -> Any:
        ran["raises"] += 1
        raise FailPermanent("never")

    async def says(ctx: Any) -> Any:
        ran["says"] += 1
        return ctx.fail_permanent("never")

    for handler in (raises, says):
        end = await end_of(handler, retry=5)
        assert (end.status, end.error, end.reason) == ("failed", "never", "permanent")
    assert ran == {"raises": 1, "says": 1}


async def test_bound_runs_the_handler_exactly_so_often_and_is_not_tried_again() -> None:
    ran: list[int] = []

    async def handler(ctx: Any) -> Any:
        ran.append(ctx.iteration)
        return ctx.continue_(ctx.iteration)

    end = await end_of(handler, 7, retry=5)

    assert ran == list(range(7))
    assert (end.status, end.reason) == ("failed", "max_iterations")
    assert end.error == "step 's' was not completed in 7 iterations"


async def test_wait_before_another_attempt_is_durable() -> None:
    clock = FakeClock()
    store, attempts = MemoryStore(clock=clock), list[int]()

    async def handler(ctx: Any) -> Any:
        attempts.append(ctx.attempt)
        return ctx.fail("no") if ctx.attempt == 0 else ctx.complete()

    definition = loop(handler, retry=RetryPolicy(2, initial=3_600, cap=0))
    run = await start(store, definition)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    assert attempts == [0]
    clock.advance(3_599)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    assert attempts == [0]
    clock.advance(1)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    assert (await show(store, run)).status == "completed"


# -- time -----------------------------------------------------------------------------------------


async def test_slow_iteration_is_cut_and_the_loop_goes_on_by_its_retry_policy() -> None:
    begun: list[tuple[int, int]] = []

    async def handler(ctx: Any) -> Any:
        begun.append((ctx.iteration, ctx.attempt))
        if (ctx.iteration, ctx.attempt) == (1, 0):
            await anyio.sleep_forever()
        return ctx.complete() if ctx.iteration == 2 else ctx.continue_()

    end = await end_of(handler, timeout=0.2, retry=RetryPolicy(2, initial=0))

    assert begun == [(0, 0), (1, 0), (1, 1), (2, 0)]
    assert end.status == "completed"


async def test_time_out_says_which_iteration_took_how_long() -> None:
    async def handler(ctx: Any) -> None:
        await anyio.sleep_forever()

    end = await end_of(handler, timeout=timedelta(milliseconds=100))

    assert (end.status, end.reason, end.error) == ("failed", "timeout", "iteration 0 took longer than 0.1 s")


async def test_death_of_a_worker_uses_up_neither_the_time_out_nor_an_attempt() -> None:
    """With the time-out of the source, 30 s, and a lease that is as long, each death would end the run."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    process = WorkerProcess(store=store)
    begun: list[tuple[int, bool]] = []
    died = anyio.Event()

    async def handler(ctx: Any) -> Any:
        begun.append((ctx.attempt, ctx.payload.redelivered))
        if len(begun) == 1:
            await process.take_over("r/s")
            died.set()
            await anyio.sleep_forever()
        return ctx.complete("done")

    definition = loop(handler, 3, timeout=30)
    await start(process, definition, run_id="r")
    async with Worker(process, definition, clock=clock).at_work():
        await died.wait()
    await process.revive()
    clock.advance(45)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    run = await show(store, "r")
    assert (run.status, run.output, begun) == ("completed", "done", [(0, False), (0, True)])


async def test_plain_function_that_takes_too_long_is_left_and_writes_nothing_more() -> None:
    errors: list[str] = []
    go_on = anyio.Event()

    def handler(ctx: Any) -> Any:
        if ctx.attempt == 0:
            time.sleep(0.4)  # it cannot be stopped
            try:
                ctx.checkpoint("too late")
            except Exception as e:  # noqa: BLE001
                errors.append(f"{type(e).__name__}: {e}")
            anyio.from_thread.run_sync(go_on.set)
            return None
        return ctx.complete([ctx.load_checkpoint()])

    store = MemoryStore()
    definition = loop(handler, timeout=0.1, retry=RetryPolicy(2, initial=0))
    run = await Worker(store).run_workflow(definition)
    await go_on.wait()

    assert (run.status, run.output) == ("completed", [None])
    assert len(errors) == 1
    assert "is over for this handler" in errors[0]


async def test_duration_ends_the_loop_in_the_middle_of_an_iteration_and_is_not_tried_again() -> None:
    async def handler(ctx: Any) -> Any:
        if ctx.iteration:
            await anyio.sleep_forever()
        return ctx.continue_()

    end = await end_of(handler, 1_000, max_duration=0.3, retry=9)

    assert (end.status, end.reason, end.iteration) == ("failed", "max_duration", 1)


async def test_duration_counts_from_the_recorded_first_start_through_a_day_without_workers() -> None:
    clock = FakeClock()
    store, ran = MemoryStore(clock=clock), list[int]()

    async def handler(ctx: Any) -> Any:
        ran.append(ctx.iteration)
        return ctx.continue_()

    definition = loop(handler, 10, max_duration=timedelta(hours=1), loop_delay=timedelta(minutes=1))
    run = await start(store, definition)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    clock.advance(86_400)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    end = (await show(store, run)).steps["s"]
    assert (ran, end.status, end.reason) == ([0], "failed", "max_duration")


async def test_time_in_the_queue_before_the_first_start_does_not_count() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)

    async def handler(ctx: Any) -> Any:
        return ctx.complete()

    definition = loop(handler, 10, max_duration=60, timeout=60)
    run = await start(store, definition)
    clock.advance(86_400)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    assert (await show(store, run)).status == "completed"


# -- steps inside of a handler --------------------------------------------------------------------


async def test_step_that_has_succeeded_is_not_repeated_by_another_attempt() -> None:
    did: Counter[str] = Counter()

    async def handler(ctx: Any) -> Any:
        async def pay() -> str:
            did["pay"] += 1
            return "paid"

        async def ship() -> str:
            did["ship"] += 1
            if did["ship"] < 3:
                raise OSError("no ship")
            return "shipped"

        return ctx.complete([await ctx.step("pay", pay), await ctx.step("ship", ship)])

    end = await end_of(handler, retry=RetryPolicy(3, initial=0))

    assert end.output == ("paid", "shipped")
    assert did == {"pay": 1, "ship": 3}


async def test_steps_with_the_same_name_are_different_steps() -> None:
    async def handler(ctx: Any) -> Any:
        async def draw() -> int:
            return len(seen)

        seen: list[int] = []
        for _ in range(3):
            seen.append(await ctx.step("draw", draw, effect="pure"))
        return ctx.complete(seen)

    assert (await end_of(handler)).output == (0, 1, 2)


async def test_recorded_failure_of_a_step_is_raised_again_in_the_same_attempt() -> None:
    seen: list[str] = []
    clock = FakeClock()
    store = MemoryStore(clock=clock)

    async def handler(ctx: Any) -> Any:
        async def fail() -> None:
            raise OSError("no")

        try:
            await ctx.step("fail", fail)
        except (OSError, StepFailed) as e:
            seen.append(type(e).__name__)
        await ctx.sleep(60)
        return ctx.complete()

    definition = loop(handler)
    await start(store, definition)
    await Worker(store, definition, clock=clock).run(until_idle=True)
    clock.advance(60)
    await Worker(store, definition, clock=clock).run(until_idle=True)

    assert seen == ["OSError", "StepFailed"]


# -- those who watch ------------------------------------------------------------------------------


async def test_observers_get_events_in_order_and_harm_nothing() -> None:
    events: list[StepEvent] = []

    def broken(event: StepEvent) -> None:
        raise ValueError("an observer")

    async def see(event: StepEvent) -> None:
        events.append(event)

    async def handler(ctx: Any) -> Any:
        ctx.emit({"seen": ctx.iteration})
        if ctx.iteration == 0:
            return ctx.continue_("out")
        return ctx.complete("end") if ctx.attempt else ctx.fail("no")

    definition = loop(handler, retry=RetryPolicy(2, initial=0))
    await Worker(MemoryStore(), hooks=[broken, see]).run_workflow(definition, run_id="r")

    assert [(e.type, e.iteration, e.attempt) for e in events] == [
        ("step.queued", 0, 0),
        ("step.started", 0, 0),
        ("step.emit", 0, 0),
        ("step.continue", 0, 0),
        ("step.queued", 1, 0),
        ("step.started", 1, 0),
        ("step.emit", 1, 0),
        ("step.retry", 1, 1),
        ("step.started", 1, 1),
        ("step.emit", 1, 1),
        ("step.completed", 1, 1),
        ("run.completed", 0, 0),
    ]
    assert [e.output for e in events if e.type in ("step.continue", "step.completed", "step.emit")] == [
        *({"seen": 0}, "out", {"seen": 1}, {"seen": 1}, "end")
    ]
    assert {e.run_id for e in events} == {"r"}


async def test_each_iteration_is_wrapped_with_its_own_payload() -> None:
    spans: list[tuple[str, int, str]] = []

    class Tracer:
        async def wrap_iteration(self, call_next: Any, payload: Any) -> None:
            spans.append(("begin", payload.iteration, payload.traceparent))
            try:
                await call_next()
            finally:
                spans.append(("end", payload.iteration, payload.traceparent))

    async def handler(ctx: Any) -> Any:
        spans.append(("inside", ctx.iteration, ""))
        return ctx.complete() if ctx.iteration else ctx.continue_()

    store, definition = MemoryStore(), loop(handler)
    await start(store, definition, run_id="r", traceparent="00-abc")
    await Worker(store, hooks=[Tracer()]).run_workflow(definition, run_id="r")

    assert spans == [
        *(("begin", 0, "00-abc"), ("inside", 0, ""), ("end", 0, "00-abc")),
        *(("begin", 1, "00-abc"), ("inside", 1, ""), ("end", 1, "00-abc")),
    ]


async def test_wrapper_that_does_not_run_the_iteration_fails_it() -> None:
    class Lazy:
        async def wrap_iteration(self, call_next: Any, payload: Any) -> None: ...

    async def handler(ctx: Any) -> Any:
        return ctx.complete()

    run = await Worker(MemoryStore(), hooks=[Lazy()]).run_workflow(loop(handler))

    assert "without running it" in run.steps["s"].error


# -- a worker's arguments -------------------------------------------------------------------------


def test_worker_refuses_what_it_cannot_use() -> None:
    store = MemoryStore()
    with pytest.raises(ConfigError, match="slots: expected an integer greater than 0, got 0"):
        Worker(store, slots=0)
    with pytest.raises(ConfigError, match="object keeps no queues"):
        Worker(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="handler 'h': expected a function or an agent, got 3"):
        Worker(store).handle("h", 3)  # type: ignore[arg-type]
    worker = Worker(store).handle("h", print)
    with pytest.raises(ConfigError, match="this worker has another handler with the name 'h'"):
        worker.handle("h", repr)


async def test_run_whose_handler_nobody_has_is_refused_with_the_nearest_name() -> None:
    store = MemoryStore()
    wf = Workflow("w")
    wf.step("a", "reveiw")
    worker = Worker(store, handlers={"review": lambda ctx: ctx.complete()})

    with anyio.fail_after(30), pytest.raises(UnknownName, match=r"handler 'reveiw'; did you mean 'review'\? step 'a'"):
        await worker.run_workflow(wf.build(), run_id="r")
    with pytest.raises(JournalError, match="run 'r' does not exist"):
        await show(store, "r")


async def test_run_on_record_whose_handler_nobody_has_is_refused() -> None:
    """It goes on with the definition that was recorded, whatever the program has now."""
    store = MemoryStore()
    old, new = Workflow("w"), Workflow("w")
    old.step("a", "review-1")
    new.step("a", "review-2")
    await start(store, old.build(), run_id="r")
    worker = Worker(store, handlers={"review-2": lambda ctx: ctx.complete()})

    with anyio.fail_after(30), pytest.raises(UnknownName, match="handler 'review-1'; did you mean 'review-2'"):
        await worker.run_workflow(new.build(), run_id="r")


async def test_run_on_record_that_has_ended_needs_no_handler() -> None:
    store = MemoryStore()
    old, new = Workflow("w"), Workflow("w")
    old.step("a", "review-1")
    new.step("a", "review-2")
    await Worker(store, handlers={"review-1": lambda ctx: ctx.complete("done")}).run_workflow(old.build(), run_id="r")
    worker = Worker(store, handlers={"review-2": lambda ctx: ctx.complete()})

    assert (await worker.run_workflow(new.build(), run_id="r")).output == "done"


async def test_handler_that_another_workflow_brings_is_there() -> None:
    async def review(ctx: Any) -> Any:
        return ctx.complete("done")

    one, other = Workflow("one"), Workflow("other")
    one.step("a", review)
    other.step("b", "review")

    assert (await Worker(MemoryStore(), one.build()).run_workflow(other.build())).output == "done"


@pytest.mark.parametrize("run_id", ["", "a/b", 3])
async def test_id_of_a_run_that_cannot_be_one_is_refused(run_id: Any) -> None:
    wf = Workflow("w")
    wf.step("a", "h")

    with pytest.raises(InputError, match="run_id: expected a text without '/'"):
        await start(MemoryStore(), wf.build(), run_id=run_id)
