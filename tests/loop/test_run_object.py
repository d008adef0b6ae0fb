"""A Run: awaited, made a task, iterated, entered; once; live; and nothing is left when it is dropped."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.loop.kit import Recorder, add, collect, kinds, of, results

from locus import (
    Agent,
    AgentResult,
    Event,
    Hook,
    ModelChunkEvent,
    Run,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolStartEvent,
    tool,
)
from locus.core.errors import NotSerialisable, RunAlreadyUsed, RunNotFinished
from locus.journal import MemoryStore
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

where: ContextVar[str] = ContextVar("where", default="nowhere")


def adding(**options: Any) -> Agent[Any, str]:
    model = ScriptedModel(script=lambda request: [call("add", a=1), "two"], chunks=True)
    return Agent[Any, str](model, tools=[add], **options)


async def used(run: Run[Any], how: str) -> AgentResult[Any]:
    """Use a run to its end in one of the three ways."""
    if how == "awaited":
        return await run
    if how == "iterated":
        await collect(run)
    else:
        async with run:
            await collect(run)
    return run.result


# -- ways to use it -----------------------------------------------------------------------------------


async def test_it_is_awaited() -> None:
    result = await adding().run("x")
    assert isinstance(result, AgentResult)
    assert result.message == "two"


async def test_it_is_a_coroutine_and_an_async_iterator() -> None:
    run = adding().run("x")
    assert isinstance(run, Coroutine)
    assert isinstance(run, Awaitable)
    assert isinstance(run, AsyncIterator)
    assert inspect.isawaitable(run)
    run.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_becomes_a_task_of_asyncio() -> None:
    agent = adding()
    first, second = asyncio.create_task(agent.run("x")), asyncio.create_task(agent.run("y"))
    assert [(await t).message for t in (first, second)] == ["two", "two"]
    assert [r.message for r in await asyncio.gather(agent.run("x"), agent.run("y"))] == ["two", "two"]
    assert (await asyncio.wait_for(agent.run("x"), 5)).message == "two"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(agent.run("x"))
    assert task.result().message == "two"


async def test_it_is_iterated_and_has_its_result_then() -> None:
    run = adding().run("x")
    events = await collect(run)
    assert kinds(events) == [
        "run_start",
        "checkpoint",
        "iteration",
        "model_chunk",
        "model_chunk",
        "model_complete",
        "think",
        "checkpoint",
        "tool_start",
        "tool_complete",
        "checkpoint",
        "iteration",
        "model_chunk",
        "model_complete",
        "think",
        "checkpoint",
        "checkpoint",
        "terminate",
    ]
    assert run.result.message == "two"


async def test_events_match_by_keyword_in_a_match_statement() -> None:
    seen: list[str] = []
    async for event in adding().run("x", thread_id="th-q3-2026"):
        match event:
            case ThinkEvent(reasoning=r) if r:
                seen.append(f"thinks {r}")
            case ToolStartEvent(tool_name=n):
                seen.append(f"calls {n}")
            case TerminateEvent(reason=why):
                seen.append(f"ends {why}")
    assert seen == ["calls add", "ends NoToolCalls"]


async def test_it_is_entered_and_iterated() -> None:
    async with adding().run("x") as run:
        events = await collect(run)
    assert kinds(events)[-1] == "terminate"
    assert run.result.message == "two"


async def test_leaving_the_block_early_cancels_the_run_and_raises_nothing() -> None:
    recorder = Recorder()
    async with adding(hooks=[recorder]).run("x") as run:
        async for event in run:
            if isinstance(event, ToolStartEvent):
                break
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]
    with pytest.raises(RunNotFinished):
        _ = run.result


async def test_an_error_in_the_block_is_the_error_that_comes_out() -> None:
    recorder = Recorder()

    async def block() -> None:
        async with adding(hooks=[recorder]).run("x") as run:
            async for event in run:
                if isinstance(event, ToolStartEvent):
                    raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await block()
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]


async def test_hooks_hear_the_same_whichever_way_a_run_is_used() -> None:
    heard: dict[str, list[str]] = {}
    for how in ("awaited", "iterated", "entered"):
        recorder = Recorder()
        await used(adding(hooks=[recorder]).run("x"), how)
        heard[how] = kinds(recorder.events)
    assert heard["awaited"] == heard["iterated"] == heard["entered"]


# -- once -----------------------------------------------------------------------------------------------


async def test_a_run_serves_once() -> None:
    async def awaited(run: Any) -> None:
        await run

    async def entered(run: Any) -> None:
        async with run:
            pass

    for first in (awaited, collect, entered):
        for second in (awaited, collect, entered):
            run = adding().run("x")
            await first(run)
            with pytest.raises(RunAlreadyUsed, match="run") as caught:
                await second(run)
            # A run whose block was left before its first event has no result.
            assert ("run.result is what came of it" in str(caught.value)) is (first is not entered)


async def test_asking_for_the_next_event_is_a_use_as_well() -> None:
    run = adding().run("x")
    assert isinstance(await anext(run), RunStartEvent)
    with pytest.raises(RunAlreadyUsed):
        await run
    await run.aclose()
    run = adding().run("x")
    await run
    with pytest.raises(RunAlreadyUsed):
        await anext(run)


async def test_no_result_exists_before_the_end() -> None:
    run = adding().run("x")
    with pytest.raises(RunNotFinished, match="await it, or iterate it"):
        _ = run.result
    async for _ in run:
        with pytest.raises(RunNotFinished):
            _ = run.result
        break
    await run.aclose()


async def test_a_run_that_nobody_uses_did_nothing() -> None:
    model = ScriptedModel("hi")
    with pytest.warns(RuntimeWarning, match="never awaited"):
        Agent(model).run("x")
    assert model.requests == ()


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["awaited", "iterated", "entered"])
async def test_misuse_is_raised_where_the_run_is_used(how: str) -> None:
    run = adding().run("x", metadata={"bad": object()})
    with pytest.raises(NotSerialisable):
        await used(run, how)


class Stop(GeneratorExit):
    """An exception that is neither a failure nor a cancellation."""


@pytest.mark.parametrize("how", ["awaited", "iterated", "entered"])
async def test_what_must_stop_the_program_comes_out_where_the_run_is_used(how: str) -> None:
    @tool
    async def stop() -> str:
        """Raises what nobody may swallow."""
        raise Stop

    run = Agent(ScriptedModel(call("stop")), tools=[stop]).run("x")
    with anyio.fail_after(5), pytest.raises(Stop):
        await used(run, how)


# -- live --------------------------------------------------------------------------------------------------------


async def test_a_slow_consumer_slows_the_run_and_loses_nothing() -> None:
    behind: list[tuple[int, int]] = []
    told = 0

    class Count(Hook):
        def on_event(self, event: Event) -> None:
            nonlocal told
            told += not isinstance(event, ModelChunkEvent)

    seen = 0
    whole = kinds(await collect(adding().run("x")))
    got: list[Event] = []
    async for event in adding(hooks=[Count()]).run("x"):
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        got.append(event)
        if not isinstance(event, ModelChunkEvent):
            seen += 1
            behind.append((told, seen))
    assert kinds(got) == whole
    assert all(told == seen for told, seen in behind)


async def test_many_chunks_for_a_slow_consumer_arrive_in_order_and_are_not_piled_up() -> None:
    produced = 0

    class Count(Hook):
        def on_model_chunk(self, event: ModelChunkEvent) -> None:
            nonlocal produced
            produced += 1

    text = "".join(chr(97 + n % 26) for n in range(2000))
    got, most = "", 0
    async for event in Agent(ScriptedModel(text, chunks=1), hooks=[Count()]).run("x"):
        if isinstance(event, ModelChunkEvent):
            await anyio.lowlevel.checkpoint()
            got += event.text
            most = max(most, produced - len(got))
    assert got == text
    assert most <= 64


async def test_completions_of_parallel_tools_reach_the_consumer_one_by_one() -> None:
    gates = [anyio.Event() for _ in range(3)]

    @tool
    async def wait(n: int) -> int:
        """Wait for its turn."""
        await gates[n].wait()
        return n

    order = [2, 0, 1]
    seen: list[str | None] = []
    with anyio.fail_after(5):
        async for event in Agent(ScriptedModel([call("wait", n=n) for n in range(3)], "done"), tools=[wait]).run("x"):
            if isinstance(event, ToolStartEvent) and event.arguments["n"] == 2:
                gates[order[0]].set()
            if isinstance(event, ToolCompleteEvent):
                seen.append(event.result)
                if len(seen) < 3:
                    gates[order[len(seen)]].set()
    assert seen == ["2", "0", "1"]


async def test_two_runs_can_be_consumed_in_turns() -> None:
    agent = adding()
    one, two = agent.run("x"), agent.run("y")
    left, right = aiter(one), aiter(two)
    pairs = 0
    while True:
        a, b = await anext(left, None), await anext(right, None)
        if a is None or b is None:
            assert a is b
            break
        assert a.type == b.type
        assert a.run_id != b.run_id
        pairs += 1
    assert pairs > 10


# -- context ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["awaited", "iterated", "entered"])
async def test_context_variables_of_the_caller_are_seen_by_tools(how: str) -> None:
    @tool
    async def look() -> str:
        """Where am I?"""
        return where.get()

    @tool
    def look_in_thread() -> str:
        """Where am I?"""
        return where.get()

    agent = Agent(ScriptedModel([call("look"), call("look_in_thread")], "done"), tools=[look, look_in_thread])
    token = where.set("here")
    try:
        result = await used(agent.run("x"), how)
    finally:
        where.reset(token)
    assert results(result) == ["here", "here"]


async def test_the_consumer_may_use_cancel_scopes_around_single_steps() -> None:
    run = adding().run("x")
    iterator = aiter(run)
    got: list[str] = []
    while True:
        with anyio.fail_after(5):
            event = await anext(iterator, None)
        if event is None:
            break
        got.append(event.type)
    assert got[-1] == "terminate"


async def test_cancelling_the_consumer_while_it_waits_ends_the_run_before_it_continues() -> None:
    inside, recorder = anyio.Event(), Recorder()

    @tool
    async def hang() -> str:
        """Hang."""
        inside.set()
        await anyio.sleep_forever()
        return "never"

    store = MemoryStore()
    agent = Agent(ScriptedModel(call("hang")), tools=[hang], hooks=[recorder], checkpointer=store)
    async with anyio.create_task_group() as group:
        group.start_soon(collect, agent.run("x", thread_id="t"))
        await inside.wait()
        group.cancel_scope.cancel()
    # By now everything is over: told, saved, released.
    assert kinds(recorder.events)[-1] == "terminate"
    assert (await store.threads())[0].holder is None


# -- whole programs ------------------------------------------------------------------------------------------

_PROGRAM = """
import gc, logging, sys
import anyio
from locus import Agent, ToolStartEvent, tool
from locus_testkit import ScriptedModel, call

logging.getLogger("asyncio").setLevel(logging.ERROR)  # a slow machine is no fault of the program
kept = []

@tool
async def hang() -> str:
    "Hang."
    await anyio.sleep_forever()

@tool
async def add() -> int:
    "Add."
    return 2

def run(name):
    return Agent(ScriptedModel(call(name), "done"), tools=[add, hang]).run("x")

async def leave(name):
    async for event in run(name):
        if isinstance(event, ToolStartEvent):
            break

async def going_on():
    "Left, dropped and used up, and then long enough to see what becomes of them."
    await leave("add")
    await leave("hang")
    half = run("hang")
    await anext(half)
    del half
    await run("add")
    [event async for event in run("add")]
    gc.collect()
    await anyio.sleep(0.01)

async def leaving_last():
    await leave("hang")

async def holding():
    kept.append(run("add"))
    await anext(kept[0])

anyio.run(globals()[sys.argv[1]], backend=sys.argv[2])
print("fine")
"""


@pytest.mark.parametrize("what", ["going_on", "leaving_last", "holding"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_program_that_leaves_runs_behind_ends_without_a_word(what: str, backend: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::EncodingWarning", str(program), what, backend],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "fine", "")


async def test_start_events_come_first_and_carry_the_prompt() -> None:
    events = await collect(adding(name="adder").run("what is 1 + 1?"))
    start = events[0]
    assert isinstance(start, RunStartEvent)
    assert (start.prompt, start.agent_id, start.model, start.resumed) == (
        "what is 1 + 1?",
        "adder",
        "scripted:model",
        False,
    )
