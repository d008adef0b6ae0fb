"""Observers in a run: they hear everything, steer with directives, and harm nothing when they fail."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from attrs import frozen
from attrs.exceptions import FrozenInstanceError
from tests.loop.hook_kit import WAYS, failures, plugins, wrong
from tests.loop.kit import Recorder, add, bodies, collect, confirm, interrupting, kinds, of, results

from locus import (
    Accept,
    Agent,
    AgentState,
    Allow,
    Cancel,
    Continue,
    Event,
    Hook,
    HookFailedEvent,
    Interrupt,
    IterationEvent,
    ModelChunkEvent,
    ReflectEvent,
    Reject,
    Retry,
    RetryableToolError,
    Revise,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.errors import ModelError
from locus.core.events import ToolCompleteEvent, event_types
from locus.plugin import RunContext, StashKey, hookimpl, register_event
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@tool
async def report(ctx: ToolContext[Any]) -> str:
    """Reports progress."""
    await ctx.emit_progress(1, total=2, message="half")
    return "reported"


@tool(idempotent=True)
async def book(room: str) -> str:
    """Books a room, once."""
    return f"booked {room}"


class Everything(Hook):
    """Makes a run emit every kind of event there is: a retried model error, a reflection, a failing hook."""

    name = "everything"

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        await run.emit(ReflectEvent(judgment="fine", confidence=0.5))
        return state.with_confidence(0.5)

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
        try:
            return await call_next(request)
        except ModelError:
            return await call_next(request)

    def on_run_start(self, event: RunStartEvent) -> None:
        raise LookupError("so that somebody hears of it")


def eventful() -> tuple[ScriptedModel, list[Any]]:
    turn = [call("book", room="a"), call("book", room="a"), call("report"), call("confirm", what="pay")]
    return ScriptedModel(ModelError("busy"), turn, "done", chunks=True), [book, report, confirm]


async def run_eventfully(*hooks: object) -> tuple[list[str], Any]:
    """A run with every kind of event but `ModelErrorEvent`, which stands for a run that fails."""
    model, tools = eventful()
    recorder = Recorder()
    agent = Agent(model, tools=tools, hooks=[Everything(), *hooks, recorder], tool_execution="sequential")
    result = await agent.resume(await agent.run("x"), "yes")
    return kinds(recorder.events), result


ALL = sorted(kind for kind, cls in event_types().items() if cls.__module__ == "locus.core.events")


# -- who hears what -----------------------------------------------------------------------------------


async def test_every_kind_of_event_reaches_its_own_method_and_then_the_general_one() -> None:
    heard: list[str] = []

    def method(kind: str) -> Any:
        def on(self: Hook, event: Event) -> None:
            assert event.type == kind
            heard.append(f"own {kind}")

        return on

    def general(self: Hook, event: Event) -> None:
        heard.append(f"any {event.type}")

    listener = type("Listener", (Hook,), {"on_event": general, **{f"on_{kind}": method(kind) for kind in ALL}})()
    told, result = await run_eventfully(listener)
    failed = Recorder()
    await Agent(ScriptedModel(ModelError("down")), hooks=[listener, failed]).run("x")

    assert result.message == "done"
    assert heard == [f"{who} {kind}" for kind in told + kinds(failed.events) for who in ("own", "any")]
    assert sorted(set(told) | {"model_error"}) == ALL


async def test_hooks_come_in_the_order_in_which_they_were_given_and_async_ones_are_waited_for() -> None:
    heard: list[str] = []

    class Sync(Hook):
        def on_think(self, event: ThinkEvent) -> None:
            heard.append("sync")

    class Slow(Hook):
        async def on_think(self, event: ThinkEvent) -> None:
            await anyio.lowlevel.checkpoint()
            heard.append("slow")

    await Agent(ScriptedModel("hi"), hooks=[Sync(), Slow(), Sync()]).run("x")
    assert heard == ["sync", "slow", "sync"]


async def test_an_observer_sees_the_run() -> None:
    seen: list[Any] = []

    class Look(Hook):
        def on_iteration(self, event: IterationEvent, run: RunContext) -> None:
            seen.append((run.run_id == event.run_id, run.thread_id, run.deps, run.state.messages[-1].text))

        def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            seen.append(run.state.messages[-1].text)  # not committed yet, but shown

    await Agent(ScriptedModel("hi"), hooks=[Look()]).run("x", thread_id="t", deps="d")
    assert seen == [(True, "t", "d", "x"), "hi"]


async def test_a_plain_object_observes_with_the_full_names() -> None:
    class Plain:
        def __init__(self) -> None:
            self.heard: list[str] = []

        @hookimpl
        def locus_on_event(self, event: Event) -> None:
            self.heard.append(event.type)

        @hookimpl
        async def locus_on_think(self, run: RunContext, event: ThinkEvent) -> None:
            self.heard.append(f"{event.text} in {run.thread_id}")

    plain = Plain()
    await Agent(ScriptedModel("hi"), hooks=[plain]).run("x", thread_id="t")
    assert [h for h in plain.heard if h.startswith(("think", "hi"))] == ["hi in t", "think"]
    assert plain.heard[0] == "run_start"
    assert plain.heard[-1] == "terminate"


async def test_an_async_observer_hears_each_chunk_before_the_next_one_is_emitted() -> None:
    told: list[str] = []

    class Later(Hook):
        async def on_event(self, event: Event) -> None:
            told.append(f"{event.type} begins")
            await anyio.lowlevel.checkpoint()
            told.append(f"{event.type} ends")

    class Chunks(Hook):
        async def on_model_chunk(self, event: ModelChunkEvent) -> None:
            await anyio.lowlevel.checkpoint()
            told.append(event.text)

    sync = Recorder()
    await Agent(ScriptedModel("one two", chunks=True), hooks=[Later(), Chunks(), sync]).run("x")
    assert [c.text for c in of(sync.events, ModelChunkEvent)] == ["one", " two"]
    expected: list[str] = []
    for event in sync.events:
        expected += [f"{event.type} begins", f"{event.type} ends"]
        expected += [event.text] if isinstance(event, ModelChunkEvent) else []
    assert told == expected


async def test_an_async_observer_of_chunks_that_fails_is_isolated_and_one_that_cancels_is_obeyed() -> None:
    class Fails(Hook):
        name = "bad"

        async def on_model_chunk(self, event: ModelChunkEvent) -> None:
            raise ValueError("no")

    class Stops(Hook):
        async def on_event(self, event: Event) -> Cancel | None:
            return Cancel("heard enough") if isinstance(event, ModelChunkEvent) else None

    result = await Agent(ScriptedModel("one two", chunks=True), hooks=[Fails(), Stops()]).run("x")
    assert result.stop_reason == "Cancelled: heard enough"
    assert [f.count for f in failures(result)] == [2]


async def test_an_observer_cannot_change_what_it_is_shown() -> None:
    refused: list[BaseException] = []

    class Meddler(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> None:
            for meddle in (
                lambda: setattr(event, "tool_name", "other"),
                lambda: event.arguments.update(a=99),
                lambda: event.arguments["list"].append(1),
            ):
                try:
                    meddle()
                except (FrozenInstanceError, AttributeError, TypeError) as e:
                    refused.append(e)

    @tool
    async def total(a: int, list: list[int]) -> int:  # noqa: A002  the name that the test reads
        """Adds."""
        return a + sum(list)

    model = ScriptedModel(call("total", a=1, list=[2]), "done")
    result = await Agent(model, tools=[total], hooks=[Meddler()]).run("x")
    assert len(refused) == 3
    assert results(result) == ["3"]


async def test_what_a_plugin_keeps_for_a_run_is_its_own_in_each_run() -> None:
    key: StashKey[int] = StashKey("count")

    class Counting(Hook):
        def on_event(self, event: Event, run: RunContext) -> None:
            run.stash[key] = run.stash.get(key, 0) + 1
            if isinstance(event, TerminateEvent):
                run.report("counting", (event.seq, run.stash[key]))

    agent = Agent(ScriptedModel("hi", after="repeat"), hooks=[Counting()])
    reports: list[Any] = []

    async def one() -> None:
        reports.append((await agent.run("x")).reports["counting"])

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(one)
    assert len(reports) == 3
    assert all(seq == count for seq, count in reports)


# -- events of plugins --------------------------------------------------------------------------------


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class WeatherEvent(Event):
    """It rains, or it does not."""

    raining: bool = False


async def test_an_event_of_a_plugin_travels_like_any_other() -> None:
    heard: list[Any] = []

    class Weather(Hook):
        @hookimpl
        def locus_register_events(self) -> list[type[Event]]:
            return [WeatherEvent]

        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.emit(WeatherEvent(raining=True))

    class Listener(Hook):
        def on_weather(self, event: WeatherEvent) -> Cancel:
            heard.append((event.raining, event.run_id, event.thread_id, event.iteration))
            return Cancel("too wet")

    run = Agent(ScriptedModel("hi"), hooks=[Weather(), Listener()]).run("x", thread_id="t")
    [rain] = of(await collect(run), WeatherEvent)
    assert heard == [(True, rain.run_id, "t", 1)]
    assert rain.seq > 0
    assert run.result.stop_reason == "Cancelled: too wet"


async def test_an_event_is_emitted_once() -> None:
    class Twice(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.emit(event)

    result = await Agent(ScriptedModel("hi"), hooks=[Twice()]).run("x")
    assert "emitted already" in failures(result, "Twice")[0].error


# -- failing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
async def test_an_observer_that_fails_is_reported_to_the_others_and_is_out_after_the_third_time(how: str) -> None:
    bad, recorder = wrong(how, "locus_on_event"), Recorder()
    model = ScriptedModel(call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[bad, recorder]).run("x")

    assert (result.stop_reason, result.message, results(result)) == ("NoToolCalls", "done", ["2"])
    told = of(recorder.events, HookFailedEvent)
    assert [(e.plugin, e.hook, e.quarantined) for e in told] == [
        ("bad", "locus_on_event", False),
        ("bad", "locus_on_event", False),
        ("bad", "locus_on_event", True),
    ]
    assert bad.calls == 3
    seen = plugins(result).of("bad")
    assert seen is not None
    assert (seen.status, seen.kind) == ("quarantined", "hook")
    [failure] = seen.failures
    assert (failure.count, failure.quarantined) == (3, True)
    assert failure.error == told[0].error
    assert failure.trace


@pytest.mark.parametrize("how", ["raises", "nonsense sync", "hangs"])
async def test_a_quarantine_ends_with_its_run(how: str) -> None:
    bad = wrong(how, "locus_on_event")
    agent = Agent(ScriptedModel("hi", after="repeat"), hooks=[bad])
    await agent.run("x")
    assert bad.calls == 3
    await agent.run("x")
    assert bad.calls == 6


@pytest.mark.parametrize("kind", ALL)
async def test_at_no_event_does_a_failing_observer_harm_the_run(kind: str) -> None:
    class Bad(Hook):
        name = "bad"

        def on_event(self, event: Event) -> None:
            if event.type == kind:
                raise LookupError("my mistake")

    plain, _ = await run_eventfully()
    told, result = await run_eventfully(Bad())
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    assert [k for k in told if k != "hook_failed"] == [k for k in plain if k != "hook_failed"]


async def test_a_failure_of_one_method_leaves_the_plugins_others_alone() -> None:
    heard: list[str] = []

    class Half(Hook):
        name = "half"

        def on_iteration(self, event: IterationEvent) -> None:
            raise LookupError("my mistake")

        def on_think(self, event: ThinkEvent) -> None:
            heard.append(event.type)

        def on_hook_failed(self, event: HookFailedEvent) -> None:
            heard.append("its own failure")

    model = ScriptedModel(*[call("add", a=n) for n in range(5)], "done")
    result = await Agent(model, tools=[add], hooks=[Half()]).run("x")
    assert heard == ["think"] * 6
    assert [(f.hook, f.count) for f in failures(result, "half")] == [("locus_on_iteration", 3)]


async def test_a_failing_observer_does_not_keep_others_from_steering() -> None:
    class Stop(Hook):
        def on_think(self, event: ThinkEvent) -> Cancel:
            return Cancel("enough")

    bad = wrong("raises", "locus_on_think")
    result = await Agent(ScriptedModel("hi"), hooks=[bad, Stop(), wrong("raises", "locus_on_think")]).run("x")
    assert result.stop_reason == "Cancelled: enough"
    assert [r.name for r in plugins(result).plugins if r.failures] == ["bad", "bad#2"]


class Answers(Hook):
    """Answers the think event, or the start of a tool, with something."""

    def __init__(self, answer: Any, kind: str = "think") -> None:
        self.answer, self.kind, self.name = answer, kind, f"{answer!r:.40}"

    def on_event(self, event: Event) -> Any:
        return self.answer if event.type == self.kind else None


NONSENSE: tuple[Any, ...] = (
    7,
    "yes",
    True,
    Cancel,
    Allow(),
    Accept(),
    Revise("no"),
    Interrupt("who?"),
    [],
    Reject("too late"),
)


async def test_what_is_not_a_directive_is_a_failure_that_says_what_is_expected() -> None:
    hooks = [Answers(each) for each in NONSENSE]
    result = await Agent(ScriptedModel("hi"), hooks=[*hooks, Answers(Continue())]).run("x")

    assert (result.stop_reason, result.message) == ("NoToolCalls", "hi")
    reports = plugins(result).plugins
    assert [len(report.failures) for report in reports] == [1] * len(NONSENSE) + [0]
    assert all(
        "expected" in report.failures[0].error or "not Reject: it answers" in report.failures[0].error
        for report in reports[:-1]
    )


@pytest.mark.parametrize(
    ("directives", "told"),
    [
        ([Continue(), Retry("a")], ["2"]),
        ([Retry("a"), Reject("b"), Retry("c"), Reject("d")], ["Error: Rejected: b"]),
        ([Reject("b"), Cancel("e"), Cancel("f")], ["Error: not run: Cancelled: e"]),
        ([Cancel("e"), Reject("b"), Retry("c")], ["Error: not run: Cancelled: e"]),
    ],
)
async def test_the_strictest_directive_wins_in_whatever_order(directives: list[Any], told: list[str]) -> None:
    hooks = [Answers(directive, "tool_start") for directive in directives]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")

    assert results(result) == told


async def test_a_sync_observer_may_hand_back_an_awaitable() -> None:
    async def later() -> Cancel:
        return Cancel("later")

    class Delegates(Hook):
        def on_think(self, event: ThinkEvent) -> Any:
            return later()

    assert (await Agent(ScriptedModel("hi"), hooks=[Delegates()]).run("x")).stop_reason == "Cancelled: later"


async def test_a_coroutine_that_a_sync_listener_of_chunks_returns_is_awaited() -> None:
    heard: list[str] = []

    async def later(text: str) -> None:
        heard.append(text)

    class Delegates(Hook):
        def on_model_chunk(self, event: ModelChunkEvent) -> Any:
            return later(event.text)

    await Agent(ScriptedModel("one two", chunks=True), hooks=[Delegates()]).run("x")
    assert heard == ["one", " two"]


async def test_everybody_has_heard_an_event_before_anybody_hears_of_a_failure() -> None:
    recorder = Recorder()
    await Agent(ScriptedModel("hi"), hooks=[wrong("raises", "locus_on_think"), recorder]).run("x")

    order = [kind for kind in kinds(recorder.events) if kind in ("think", "hook_failed")]
    assert order == ["think", "hook_failed"]


async def test_two_guards_that_cannot_hear_of_each_others_failures_do_not_go_on_for_ever() -> None:
    class Fragile(Hook):
        guard = True

        def on_event(self, event: Event) -> None:
            if event.type in ("think", "hook_failed"):
                raise ValueError(event.type)

    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Fragile(), Fragile(), recorder]).run("x")

    assert [e.plugin for e in of(recorder.events, HookFailedEvent)] == ["Fragile", "Fragile#2"]
    assert [failures(result, name)[0].count for name in ("Fragile", "Fragile#2")] == [2, 2]


@pytest.mark.parametrize("concurrent", [True, False])
async def test_an_observer_that_fails_at_the_start_of_a_tool_rejects_nothing(concurrent: bool) -> None:
    bodies.clear()
    bad = wrong("raises", "locus_on_tool_start")
    turn = [call("add", a=1), call("add", a=2), call("add", a=3), call("add", a=4)]
    agent = Agent(
        ScriptedModel(turn, "done"),
        tools=[add],
        hooks=[bad],
        tool_execution="concurrent" if concurrent else "sequential",
    )
    result = await agent.run("x")
    assert results(result) == ["2", "3", "4", "5"]
    assert bodies["add"] == 4


@pytest.mark.parametrize("family", ["observe", "decide", "route", "review", "filter"])
async def test_a_hanging_hook_without_a_timeout_ends_with_its_caller_and_has_not_failed(family: str) -> None:
    begun, done = anyio.Event(), Recorder()

    async def hang(self: Any) -> None:
        begun.set()
        await anyio.sleep_forever()

    names = {
        "observe": "locus_on_think",
        "decide": "locus_decide_tool_call",
        "route": "locus_decide_route",
        "review": "locus_review_answer",
        "filter": "locus_filter_input",
    }
    hangs = type("Hangs", (Hook,), {names[family]: hookimpl(hang), "guard": True})()
    answer = "hi" if family == "review" else call("add", a=1)

    async def run() -> None:
        await Agent(ScriptedModel(answer, "hi"), tools=[add], hooks=[hangs, done]).run("x")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            group.cancel_scope.cancel()
    assert "hook_failed" not in kinds(done.events)
    assert kinds(done.events)[-1] == "terminate"


async def test_a_failure_while_the_caller_is_cancelled_leaves_the_end_in_order() -> None:
    class Bad(Hook):
        def on_terminate(self, event: TerminateEvent) -> None:
            raise LookupError("my mistake")

    recorder = Recorder()
    with anyio.CancelScope() as scope:
        await Agent(ScriptedModel(interrupting(scope)), hooks=[Bad(), recorder]).run("x")
    assert scope.cancelled_caught
    assert kinds(recorder.events)[-2:] == ["terminate", "hook_failed"]


async def test_a_failure_is_not_news_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await Agent(ScriptedModel("hi"), hooks=[wrong("raises", "locus_on_think")]).run("x")
    assert caplog.records == []


# -- directives that only make sense in a run -----------------------------------------------------------


async def test_the_first_of_two_equal_directives_gives_the_reason() -> None:
    class Stop(Hook):
        def __init__(self, why: str) -> None:
            self.why = why

        async def on_think(self, event: ThinkEvent) -> Cancel:
            return Cancel(self.why)

    result = await Agent(ScriptedModel("hi"), hooks=[Stop("first"), Stop("second")]).run("x")
    assert result.stop_reason == "Cancelled: first"


async def test_a_rejected_start_still_ends_with_a_result_and_an_event() -> None:
    class NoSecond(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> Reject | None:
            return Reject("one is enough") if event.arguments["a"] == 2 else None

    recorder = Recorder()
    model = ScriptedModel([call("add", a=1), call("add", a=2)], "done")
    result = await Agent(model, tools=[add], hooks=[NoSecond(), recorder]).run("x")
    assert results(result) == ["2", "Error: Rejected: one is enough"]
    assert {e.arguments["a"]: e.error for e in of(recorder.events, ToolCompleteEvent)} == {
        1: None,
        2: "Rejected: one is enough",
    }
    assert [e.started for e in result.state.tool_executions] == [True, False]


async def test_a_hook_may_end_the_run_through_the_run_itself() -> None:
    class Stop(Hook):
        def on_tool_complete(self, event: ToolCompleteEvent, run: RunContext) -> None:
            run.cancel("seen enough")

    model = ScriptedModel(call("add", a=1), "never said")
    result = await Agent(model, tools=[add], hooks=[Stop()]).run("x")
    assert result.stop_reason == "Cancelled: seen enough"
    assert results(result) == ["2"]
    assert len(model.requests) == 1


@pytest.mark.parametrize("kind", ["terminate", "checkpoint"])
async def test_a_cancel_that_comes_at_the_end_changes_nothing_any_more(kind: str) -> None:
    class Late(Hook):
        def on_event(self, event: Event) -> Cancel | None:
            last = event.type == "terminate" or getattr(event, "next_node", "") == "end"
            return Cancel("too late") if event.type == kind and last else None

    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Late(), recorder]).run("x")
    assert result.stop_reason == "NoToolCalls"
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["NoToolCalls"]


async def test_what_a_retry_asks_for_in_one_run_does_not_concern_another() -> None:
    @tool
    async def flaky(n: int) -> str:
        """Fails."""
        bodies["flaky"] += 1
        raise RetryableToolError("busy")

    bodies.clear()
    agent = Agent(ScriptedModel(call("flaky", n=1), "done", after="cycle"), tools=[flaky])
    await agent.run("x")
    await agent.run("x")
    assert bodies["flaky"] == 2
