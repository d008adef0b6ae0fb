"""The tools of one turn: together or in turn, and what becomes of those that fail, hang or return oddities."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.from_thread
import attrs
import pytest
from tests.loop.kit import Recorder, add, answers, assert_valid_history, collect, kinds, of, results

from locus import (
    Agent,
    TerminateEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolError,
    ToolProgressEvent,
    ToolStartEvent,
    tool,
)
from locus.core.messages import MediaBlock, TextBlock
from locus.tools.definition import RESULT_CHARS
from locus_testkit import ScriptedModel, call, malformed_call

pytestmark = pytest.mark.anyio


async def answer(*tools: Any, calls: Any, **options: Any) -> list[str]:
    """What the model reads of one turn's calls."""
    result = await Agent(ScriptedModel(calls, "done"), tools=tools, **options).run("go")
    assert result.stop_reason == "NoToolCalls", result
    assert_valid_history(result.state.messages)
    return results(result)


# -- together ---------------------------------------------------------------------------------------


async def test_the_calls_of_one_turn_run_at_the_same_time_and_keep_their_order() -> None:
    arrived = {name: anyio.Event() for name in "ab"}
    finished: list[str] = []

    @tool
    async def meet(me: str, other: str) -> str:
        """Returns only when the other is there; "a" returns last."""
        arrived[me].set()
        await arrived[other].wait()
        while me == "a" and not finished:
            await anyio.lowlevel.checkpoint()
        finished.append(me)
        return me

    with anyio.fail_after(5):
        got = await answer(meet, calls=[call("meet", me="a", other="b"), call("meet", me="b", other="a")])

    assert finished == ["b", "a"]
    assert got == ["a", "b"]


async def test_sync_bodies_run_at_the_same_time_in_threads() -> None:
    barrier = threading.Barrier(3)

    @tool
    def meet(n: int) -> str:
        """Returns only when all are there."""
        barrier.wait(timeout=5)
        return f"{n}"

    assert await answer(meet, calls=[call("meet", n=n) for n in range(3)]) == ["0", "1", "2"]


async def test_each_completion_is_reported_when_it_happens_and_not_when_all_are_done() -> None:
    told = anyio.Event()

    @tool
    async def quick() -> str:
        """Returns at once."""
        return "quick"

    @tool
    async def slow() -> str:
        """Returns when somebody has heard of the other's completion."""
        await told.wait()
        return "slow"

    order: list[str] = []
    with anyio.fail_after(5):
        async for event in Agent(ScriptedModel([call("slow"), call("quick")], "done"), tools=[quick, slow]).run("go"):
            if isinstance(event, ToolCompleteEvent):
                order.append(event.tool_name)
                told.set()
    assert order == ["quick", "slow"]


async def test_sequential_calls_run_one_after_another_each_started_right_before_its_body() -> None:
    log: list[str] = []

    @tool
    async def step(n: int) -> str:
        """Logs when it runs."""
        log.append(f"enter {n}")
        await anyio.lowlevel.checkpoint()
        log.append(f"leave {n}")
        return str(n)

    agent = Agent(ScriptedModel([call("step", n=n) for n in (1, 2)], "done"), tools=[step], tool_execution="sequential")
    async for event in agent.run("go"):
        if isinstance(event, ToolStartEvent | ToolCompleteEvent):
            log.append(f"{event.type} {event.arguments['n']}")

    assert log == [
        "tool_start 1",
        "enter 1",
        "leave 1",
        "tool_complete 1",
        "tool_start 2",
        "enter 2",
        "leave 2",
        "tool_complete 2",
    ]


async def test_a_body_is_not_entered_before_its_start_event_was_taken() -> None:
    entered: list[str] = []

    @tool
    async def touch() -> str:
        """Logs."""
        entered.append("touch")
        return "touched"

    run = Agent(ScriptedModel(call("touch"), "done"), tools=[touch]).run("go")
    async for event in run:
        if isinstance(event, ToolStartEvent):
            assert entered == []
            break
    await run.aclose()
    assert entered == []


# -- failing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_a_failing_tool_neither_stops_its_siblings_nor_the_run(mode: str) -> None:
    failed = anyio.Event()

    @tool
    async def fail() -> str:
        """Fails."""
        failed.set()
        raise ValueError("no such customer")

    @tool
    async def wait() -> str:
        """Is still running when the other has failed."""
        await failed.wait()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        return "waited"

    recorder = Recorder()
    with anyio.fail_after(5):
        got = await answer(
            fail,
            wait,
            calls=[call("fail"), call("wait"), call("fail")],
            tool_execution=mode,
            hooks=[recorder],
        )
    error = "Error: ValueError: no such customer"
    assert got == [error, "waited", error]
    assert [e.error for e in of(recorder.events, ToolCompleteEvent) if e.tool_name == "fail"] == [error[7:]] * 2


async def test_the_state_knows_of_a_failure_what_the_model_knows() -> None:
    @tool
    async def fail() -> str:
        """Fails."""
        raise LookupError("gone")

    result = await Agent(ScriptedModel([call("fail"), call("add", a=1)], "done"), tools=[fail, add]).run("go")
    failed, added = result.state.tool_executions
    assert (failed.error, failed.result, failed.succeeded) == ("LookupError: gone", None, False)
    assert (added.error, added.result, added.succeeded) == (None, "2", True)
    assert result.state.errors == ("fail: LookupError: gone",)
    assert [a.is_error for a in answers(result.state)] == [True, False]
    assert result.state.tool_history == ("fail", "add")


class Shy(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no comment")


class Panic(BaseException):
    """What an extension module raises when it breaks: no `Exception`."""


def _group() -> BaseException:
    return ExceptionGroup("both", [ValueError("one"), TypeError("two")])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ValueError("bad value"), "ValueError: bad value"),
        (lambda: ToolError("try tomorrow"), "ToolError: try tomorrow"),
        (lambda: KeyError("who"), "KeyError: 'who'"),
        (lambda: ValueError(), "ValueError: no message"),
        (lambda: StopIteration(3), ""),
        (lambda: Panic("rust says no"), "Panic: rust says no"),
        (lambda: BaseExceptionGroup("both", [Panic("no"), ValueError("two")]), "Panic: no; ValueError: two"),
        (lambda: TimeoutError("mine"), "TimeoutError: mine"),
        (Shy, "Shy: no message"),
        (_group, "ValueError: one; TypeError: two"),
        (lambda: RecursionError("deep"), "RecursionError: deep"),
        (lambda: AssertionError("must hold"), "AssertionError: must hold"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_the_model_reads_the_type_and_the_message_of_whatever_a_body_raises(
    make: Callable[[], BaseException], told: str, kind: str
) -> None:
    @tool(name="fail")
    async def fail_async() -> str:
        """Fails."""
        raise make()

    @tool(name="fail")
    def fail_sync() -> str:
        """Fails."""
        raise make()

    fail = fail_async if kind == "async" else fail_sync
    [alone] = await answer(fail, calls=call("fail"))
    assert alone.startswith("Error: ")
    assert told in alone
    beside = await answer(fail, add, calls=[call("fail"), call("add", a=1)])
    assert beside == [alone, "2"]


async def test_a_cancellation_that_a_tool_raises_itself_is_its_own_error(anyio_backend_name: str) -> None:
    if anyio_backend_name == "trio":
        # Trio lets nobody but itself raise Cancelled; what a tool can do is to cancel a part of itself.
        @tool(name="confused")
        async def confused_trio() -> str:
            """Cancels a part of itself."""
            with anyio.CancelScope() as scope:
                scope.cancel()
                await anyio.sleep_forever()
            raise RuntimeError("was cancelled")

        assert await answer(confused_trio, add, calls=[call("confused"), call("add", a=1)]) == [
            "Error: RuntimeError: was cancelled",
            "2",
        ]
        return

    @tool
    async def confused() -> str:
        """Awaits a task that somebody cancelled."""
        task = asyncio.get_running_loop().create_task(asyncio.sleep(3600))
        task.cancel()
        await task
        return "never"

    @tool
    async def blunt() -> str:
        """Raises it."""
        raise asyncio.CancelledError

    for calls in ([call("confused")], [call("confused"), call("blunt"), call("add", a=1)]):
        got = await answer(confused, blunt, add, calls=calls)
        assert got[0].startswith("Error: CancelledError")
        assert got[2:] == ["2"][: len(got) - 2]


@pytest.mark.parametrize("beside", [False, True])
async def test_a_tool_that_never_returns_is_stopped_by_its_timeout(beside: bool) -> None:
    @tool(timeout=0.02)
    async def hang() -> str:
        """Never returns."""
        await anyio.sleep_forever()
        return "never"

    calls = [call("hang"), call("add", a=1)] if beside else [call("hang")]
    with anyio.fail_after(30):
        got = await answer(hang, add, calls=calls)
    assert got[0] == "Error: TimeoutError: the tool did not finish within 0.02 s and was stopped"
    assert got[1:] == ["2"][: len(calls) - 1]


async def test_a_timeout_stops_its_tool_only() -> None:
    late = anyio.Event()

    @tool(timeout=0.02)
    async def hang() -> str:
        """Never returns."""
        try:
            await anyio.sleep_forever()
            return "never"
        finally:
            late.set()

    @tool
    async def patient() -> str:
        """Outlives the other."""
        await late.wait()
        await anyio.lowlevel.checkpoint()
        return "patient"

    got = await answer(hang, patient, calls=[call("hang"), call("patient")])
    assert got[1] == "patient"


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_an_async_body_behind_a_plain_decorator_is_awaited(seconds: float | None) -> None:
    def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    @tool(timeout=seconds)
    @logged
    async def double(n: int, ctx: ToolContext[Any]) -> int:
        """Double a number."""
        await anyio.lowlevel.checkpoint()
        if n < 0:
            ctx.interrupt("Really?")
        return 2 * n

    calls = [call("double", n=2), call("double", n=3)]
    assert await answer(double, calls=calls[0]) == ["4"]
    assert await answer(double, calls=calls) == ["4", "6"]
    asked = await Agent(ScriptedModel(call("double", n=-1), "done"), tools=[double]).run("go")
    assert [q.question for q in asked.interrupts] == ["Really?"]


# -- what the model asks for wrongly -------------------------------------------------------------------


async def test_bad_arguments_come_back_with_the_path_and_the_expected_type() -> None:
    entered: list[str] = []

    @attrs.frozen
    class Guest:
        name: str
        age: int

    @tool
    async def invite(guests: list[Guest], room: int) -> str:
        """Invite guests."""
        entered.append("invite")
        return "invited"

    guests = [{"name": "Ann", "age": 3}, {"name": "Bob", "age": "old"}]
    [told] = await answer(invite, calls=call("invite", guests=guests, room="first"))
    assert "$.guests[1].age" in told
    assert "$.room" in told
    assert told.count("integer") >= 2
    assert entered == []


async def test_missing_and_superfluous_arguments_are_named() -> None:
    [told] = await answer(add, calls=call("add", b=2, c=3))
    assert "$.a" in told
    assert "missing" in told
    assert "$.c" in told


async def test_an_unknown_tool_comes_back_with_the_valid_names_and_the_closest() -> None:
    @tool
    async def search_flights(origin: str) -> str:
        """Search."""
        return origin

    [told] = await answer(search_flights, add, calls=call("serch_flight", origin="JFK"))
    assert "'serch_flight'" in told
    assert "did you mean 'search_flights'?" in told
    assert "search_flights, add" in told

    [told] = await answer(calls=call("anything"))
    assert "no tools are available" in told


async def test_arguments_that_are_not_a_json_object_come_back_as_they_were() -> None:
    [told] = await answer(add, calls=malformed_call("add", '{"a": 1,'))
    assert "not a JSON object" in told
    assert '{"a": 1,' in told


async def test_a_refused_call_was_never_started(anyio_backend_name: str) -> None:
    recorder = Recorder()
    model = ScriptedModel([call("nope"), call("add", a="x"), malformed_call("add", "[]")], "done")
    result = await Agent(model, tools=[add], hooks=[recorder]).run("go")
    assert [e.started for e in result.state.tool_executions] == [False] * 3
    assert kinds(recorder.events, ToolStartEvent) == []
    assert len(of(recorder.events, ToolCompleteEvent)) == 3


# -- what a body returns ---------------------------------------------------------------------------------


class Odd:
    """Has no data form."""

    def __repr__(self) -> str:
        return "<Odd>"


class Broken:
    """Not even a repr."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@attrs.frozen
class Money:
    amount: int
    currency: str


def _cyclic() -> list[Any]:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    return cycle


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: None, "(done, no result)"),
        (lambda: "", ""),
        (lambda: "plain", "plain"),
        (lambda: 42, "42"),
        (lambda: True, "true"),
        (lambda: {"b": [1, None], "a": "é"}, '{"b":[1,null],"a":"é"}'),
        (lambda: Money(3, "EUR"), '{"amount":3,"currency":"EUR"}'),
        (lambda: datetime(2030, 1, 2, tzinfo=UTC), "2030-01-02T00:00:00Z"),
        (lambda: b"bytes", "bytes"),
        (lambda: b"\xff\x00", "(2 bytes of binary data)"),
        (Odd, "<Odd>"),
        (Broken, "<Broken whose repr fails>"),
        (lambda: {"odd": Odd()}, '{"odd":"<Odd>"}'),
        (lambda: float("nan"), "nan"),
        (lambda: "half \ud800", "half \ufffd"),
        (lambda: {1, 2}, "[1,2]"),
        (lambda: ValueError("returned, not raised"), "ValueError: returned, not raised"),
    ],
)
async def test_whatever_a_body_returns_reaches_the_model_as_sensible_text(make: Callable[[], Any], told: str) -> None:
    @tool
    async def give() -> Any:
        """Give something."""
        return make()

    result = await Agent(ScriptedModel(call("give"), "done"), tools=[give]).run("go")
    assert results(result) == [told]
    # And it can be kept: through real JSON and back.
    again = type(result.state).from_checkpoint(json.loads(json.dumps(result.state.to_checkpoint())))
    assert again == result.state


async def test_a_value_without_end_is_cut_somewhere() -> None:
    @tool
    async def give() -> Any:
        """Give something that holds itself."""
        return _cyclic()

    [told] = await answer(give, calls=call("give"))
    assert 0 < len(told) <= RESULT_CHARS


async def test_a_huge_result_is_cut_in_the_middle_and_says_so() -> None:
    @tool(max_result_chars=1000)
    async def dump() -> str:
        """Return far too much."""
        return "begin" + "x" * 5_000_000 + "end"

    recorder = Recorder()
    [told] = await answer(dump, calls=call("dump"), hooks=[recorder])
    assert len(told) <= 1000
    assert told.startswith("begin")
    assert told.endswith("end")
    assert "5,000,008 characters in all" in told
    [done] = of(recorder.events, ToolCompleteEvent)
    assert done.result == told


async def test_a_huge_result_is_bounded_by_default() -> None:
    @tool
    async def dump() -> dict[str, str]:
        """Return far too much."""
        return {"text": "x" * 1_000_000}

    [told] = await answer(dump, calls=call("dump"))
    assert len(told) <= RESULT_CHARS


async def test_media_reaches_the_model_as_media() -> None:
    picture = MediaBlock("image", "image/png", data=b"png")

    @tool
    async def look() -> Any:
        """Take a picture."""
        return ["here:", picture]

    model = ScriptedModel(call("look"), "done")
    result = await Agent(model, tools=[look]).run("go")
    assert answers(result.state)[0].content == (TextBlock("here:"), picture)
    assert model.requests[1].messages == result.state.messages[:-1]
    assert result.state.tool_executions[0].result == "here:"


# -- provider ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["same", "per_turn"])
async def test_nothing_depends_on_call_ids_being_unique(ids: Any) -> None:
    turn = [call("add", a=1), call("add", a=2), call("nope")]
    model = ScriptedModel(turn, turn, "done", ids=ids)
    result = await Agent(model, tools=[add]).run("go")
    got = results(result)
    assert got[:2] + got[3:5] == ["2", "3", "2", "3"]
    assert_valid_history(result.state.messages)


# -- context -----------------------------------------------------------------------------------------------


async def test_a_body_is_given_its_context_and_the_model_does_not_see_it() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def look(what: str, ctx: ToolContext[str]) -> str:
        """Look."""
        seen.update(deps=ctx.deps, run=ctx.run_id, thread=ctx.thread_id, key=ctx.idempotency_key, call=ctx.call_id)
        await ctx.emit_progress(1, total=2, message="half")
        return what

    recorder = Recorder()
    model = ScriptedModel(call("look", what="up"), "done")
    agent = Agent[str, str](model, tools=[look], hooks=[recorder])
    result = await agent.run("go", deps="the deps", thread_id="t")

    assert seen["deps"] == "the deps"
    assert (seen["run"], seen["thread"]) == (result.run_id, "t")
    # Never the provider's id: that one repeats.
    assert seen["key"] == f"{result.run_id}/0/0"
    assert list(model.requests[0].tools[0].parameters["properties"]) == ["what"]
    [progress] = of(recorder.events, ToolProgressEvent)
    assert (progress.progress, progress.total, progress.message) == (1, 2, "half")


async def test_deps_are_not_kept_anywhere() -> None:
    class Secret:
        pass

    @tool
    async def look(ctx: ToolContext[Secret]) -> str:
        """Look."""
        return type(ctx.deps).__name__

    result = await Agent[Secret, str](ScriptedModel(call("look"), "done"), tools=[look]).run("go", deps=Secret())
    assert results(result) == ["Secret"]
    assert "Secret object" not in repr(result.state)


async def test_a_sync_body_can_talk_to_the_run_through_its_thread() -> None:
    @tool
    def look(ctx: ToolContext[Any]) -> str:
        """Look."""
        anyio.from_thread.run(ctx.emit_progress, 1)
        return "looked"

    recorder = Recorder()
    assert await answer(look, calls=call("look"), hooks=[recorder]) == ["looked"]
    assert len(of(recorder.events, ToolProgressEvent)) == 1


async def test_what_a_body_does_to_its_arguments_stays_with_it() -> None:
    @tool
    async def eat(items: list[str]) -> str:
        """Empties its argument."""
        items.clear()
        return "eaten"

    events = await collect(Agent(ScriptedModel(call("eat", items=["a"]), "done"), tools=[eat]).run("go"))
    [done] = of(events, ToolCompleteEvent)
    assert done.arguments["items"] == ("a",)
    assert len(of(events, TerminateEvent)) == 1
