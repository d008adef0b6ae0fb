"""A run in a workflow is the run that it is without one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from temporalio.worker import Replayer
from temporalio.workflow import ActivityConfig

from locus import Agent, tool
from locus.core.events import Event
from locus.core.messages import Message, Role, Usage
from locus.core.state import AgentState
from locus.core.termination import TokenLimit
from locus.models import ModelRequest
from locus.plugin import Interrupt, hookimpl
from locus.tools import ToolContext
from locus_plugin_temporal import AgentTask, AgentWorkflow, DevServer, LocusPlugin
from locus_testkit import ScriptedModel, Turn, call

from .shop import DONE, Sell, Shop
from .world import PATIENCE, ending, working

pytestmark = pytest.mark.anyio


async def _sell(client: Client, queue: str) -> AgentState:
    state: AgentState = await asyncio.wait_for(
        client.execute_workflow("Sell", "Sell.", id=queue, task_queue=queue, result_type=AgentState), PATIENCE
    )
    return state


async def _begin(client: Client, queue: str, agent: str = "shop", **task: Any) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        AgentWorkflow.run, AgentTask(agent=agent, prompt="Go.", **task), id=queue, task_queue=queue
    )


@asynccontextmanager
async def _until(wanted: Any) -> AsyncIterator[None]:
    """Wait until something is so, and then go on."""
    async with asyncio.timeout(PATIENCE):
        while not await wanted():  # noqa: ASYNC110  # what is asked is in another process
            await asyncio.sleep(0.02)
    yield


async def test_it_ends_as_it_does_without_a_workflow(server: DevServer, queue: str, tmp_path: Path) -> None:
    heard: dict[str, list[str]] = {"here": [], "there": []}

    class Listening:
        def __init__(self, where: str) -> None:
            self.where = where

        @hookimpl
        def locus_on_event(self, event: Event, run: Any) -> None:
            heard[self.where].append(f"{event.iteration} {event.type}")

    (tmp_path / "plain").mkdir()
    expected = await Shop(tmp_path / "plain").agent(hooks=[Listening("here")]).run("Sell.")
    shop = Shop(tmp_path)
    async with working(server.address, queue, LocusPlugin([shop.agent(hooks=[Listening("there")])])) as client:
        state = await _sell(client, queue)
        history = await client.get_workflow_handle(queue).fetch_history()
    assert ending(state) == ending(expected.state)
    assert shop.done() == DONE
    assert heard["there"] == heard["here"]
    # Six effects, and what the loop does in between needs nothing.
    kinds = [e.WhichOneof("attributes") for e in history.events]
    assert kinds.count("activity_task_scheduled_event_attributes") == 6
    assert not any("timer" in str(kind) or "marker" in str(kind) for kind in kinds)


async def test_without_a_cache_of_workflows_it_ends_the_same(server: DevServer, queue: str, tmp_path: Path) -> None:
    """Each task of the workflow replays it, and each activity asks the workflow what it is about."""
    (tmp_path / "plain").mkdir()
    expected = await Shop(tmp_path / "plain").agent(tool_execution="concurrent").run("Sell.")
    shop = Shop(tmp_path)
    plugin = LocusPlugin([shop.agent(tool_execution="concurrent")])
    async with working(server.address, queue, plugin, max_cached_workflows=0) as client:
        assert ending(await _sell(client, queue)) == ending(expected.state)
    assert sorted(shop.done()) == sorted(DONE)


async def test_a_tool_may_run_on_another_worker_that_asks_the_workflow(
    server: DevServer, queue: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "far").mkdir()
    expected = await Shop(tmp_path / "plain").agent().run("Sell.")
    near, far = Shop(tmp_path), Shop(tmp_path / "far")
    options = {"ship": ActivityConfig(task_queue=f"{queue}-far")}
    async with (
        working(server.address, queue, LocusPlugin([near.agent()], options=options)) as client,
        working(server.address, f"{queue}-far", LocusPlugin([far.agent()])),
    ):
        state = await _sell(client, queue)
    assert ending(state) == ending(expected.state), "the tool there has read the conversation"
    assert far.done() == ["ship"]
    assert near.done() == [each for each in DONE if each != "ship"]


def _growing(turns: int, size: int) -> Agent[Any, Any]:
    @tool(effect="pure")
    async def read(n: int) -> str:
        """Read."""
        return f"{n}" * size

    script: list[Turn] = [*(call("read", n=n % 10) for n in range(turns)), "Done."]
    return Agent(ScriptedModel(script=lambda _: script, ids="per_turn"), tools=[read], name="shop", max_iterations=50)


async def test_the_history_grows_by_what_is_said_and_by_no_conversation(server: DevServer, queue: str) -> None:
    sizes = []
    for turns in (6, 12):
        async with working(server.address, f"{queue}{turns}", LocusPlugin([_growing(turns, 5_000)])) as client:
            handle = await _begin(client, f"{queue}{turns}")
            assert (await asyncio.wait_for(handle.result(), PATIENCE)).text == "Done."
            history = await handle.fetch_history()
        sizes.append(sum(event.ByteSize() for event in history.events))
        asked = [
            e.activity_task_scheduled_event_attributes.input
            for e in history.events
            if e.HasField("activity_task_scheduled_event_attributes")
        ]
        assert len(asked) == 2 * turns + 1
        assert max(each.ByteSize() for each in asked) < 1_000
    assert sizes[1] < 2.1 * sizes[0]


async def test_a_question_waits_for_the_answer_of_a_signal(server: DevServer, queue: str) -> None:
    done: list[str] = []

    @tool(effect="once")
    async def sign(ctx: ToolContext[Any]) -> str:
        """Sign."""

        async def book() -> str:
            done.append("book")
            return "B1"

        booked = await ctx.step("book", book)
        name = ctx.interrupt("Who signs?", options=["Ann", "Bob"])
        done.append("sign")
        return f"{booked} signed by {name}"

    class Asking:
        @hookimpl
        def locus_decide_tool_call(self, call: Any, run: Any) -> Any:
            return Interrupt("May it sign?")

    turns: list[Turn] = [call("sign"), "Done."]
    agent = Agent(ScriptedModel(script=lambda _: turns), tools=[sign], name="shop", hooks=[Asking()])
    async with working(server.address, queue, LocusPlugin([agent])) as client:
        handle = await _begin(client, queue)

        async def asks(question: str) -> bool:
            shown = await handle.query("locus.state")
            return any(q["question"] == question for run in shown for q in run.get("questions", {}).values())

        async with _until(lambda: asks("May it sign?")):
            (waiting,) = await handle.query("locus.state")
            assert waiting["status"] == "waiting"
            await handle.signal("locus.answer", "allow")
        async with _until(lambda: asks("Who signs?")):
            (waiting,) = await handle.query("locus.state")
            ((interrupt_id, shown),) = waiting["questions"].items()
            assert shown["options"] == ["Ann", "Bob"]
            await handle.signal("locus.answer", {interrupt_id: "Bob"})
        answer = await asyncio.wait_for(handle.result(), PATIENCE)
        assert await handle.query("locus.state") == []
    assert answer.stop_reason == "NoToolCalls"
    assert done == ["book", "sign"], "what the body had done before it asked is not done again"


async def test_a_cancel_cuts_the_model_off_and_lets_a_tool_end(server: DevServer, queue: str) -> None:
    thinking, going = asyncio.Event(), asyncio.Event()

    async def never(_: ModelRequest) -> Turn:
        thinking.set()
        await asyncio.Event().wait()
        raise AssertionError

    @tool(effect="once")
    async def work() -> str:
        """Work."""
        thinking.set()
        await going.wait()
        return "worked"

    slow = Agent(ScriptedModel(never), name="slow")
    busy = Agent(ScriptedModel(call("work"), "Done."), tools=[work], name="busy")
    async with working(server.address, queue, LocusPlugin([slow, busy])) as client:
        handle = await client.start_workflow(
            AgentWorkflow.run, AgentTask(agent="slow", prompt="Go."), id=f"{queue}-slow", task_queue=queue
        )
        await asyncio.wait_for(thinking.wait(), PATIENCE)
        await handle.signal("locus.cancel", "enough")
        answer = await asyncio.wait_for(handle.result(), PATIENCE)
        assert answer.stop_reason == "Cancelled: enough"
        assert answer.tokens > 0, "what was sent is charged, as an estimate"
        thinking.clear()
        handle = await client.start_workflow(
            AgentWorkflow.run, AgentTask(agent="busy", prompt="Go."), id=f"{queue}-busy", task_queue=queue
        )
        await asyncio.wait_for(thinking.wait(), PATIENCE)
        (running,) = await handle.query("locus.state")
        assert (running["status"], running["agent"], running["iteration"]) == ("running", "busy", 0)
        await handle.signal("locus.cancel", "enough")
        going.set()
        answer = await asyncio.wait_for(handle.result(), PATIENCE)
        assert answer.stop_reason == "Cancelled: enough"
        history = await handle.fetch_history()
    kinds = [e.WhichOneof("attributes") for e in history.events]
    assert kinds.count("activity_task_completed_event_attributes") == 2, "the tool has ended, and is on record"


async def test_a_cancelled_workflow_cancels_its_run(server: DevServer, queue: str) -> None:
    thinking, left = asyncio.Event(), asyncio.Event()

    async def never(_: ModelRequest) -> Turn:
        thinking.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    agent = Agent(ScriptedModel(never), name="shop")
    options = {"locus.model": ActivityConfig(heartbeat_timeout=timedelta(seconds=2))}
    async with working(server.address, queue, LocusPlugin([agent], options=options)) as client:
        handle = await _begin(client, queue)
        await asyncio.wait_for(thinking.wait(), PATIENCE)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), PATIENCE)
        assert isinstance(caught.value.cause, CancelledError), caught.value.cause
        await asyncio.wait_for(left.wait(), PATIENCE)


async def test_a_long_history_continues_as_a_new_one_with_the_same_result(server: DevServer, queue: str) -> None:
    expected = await _growing(8, 10).run("Go.")
    async with working(server.address, queue, LocusPlugin([_growing(8, 10)])) as client:
        handle = await _begin(client, queue, history_limit=20, metadata={"order": 7})
        answer = await asyncio.wait_for(handle.result(), PATIENCE)
        runs = [run async for run in client.list_workflows(f"WorkflowId = '{queue}'")]
        newest = await client.get_workflow_handle(queue).fetch_history()
    assert (answer.text, answer.stop_reason) == (expected.text, expected.stop_reason)
    assert (answer.tokens, answer.iterations) == (expected.usage.total_tokens, expected.iterations)
    assert answer.metadata["order"] == 7
    assert len(newest.events) < 50
    assert newest.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    assert len(runs) != 1 or runs[0].run_id != handle.first_execution_run_id


async def test_what_is_spent_in_activities_is_charged_and_bounded(server: DevServer, queue: str) -> None:
    def agent() -> Agent[Any, Any]:
        @tool(effect="once")
        async def judge(ctx: ToolContext[Any]) -> str:
            """Judge."""
            request = ModelRequest(messages=(Message(Role.USER, "Is it?"),))
            said = await ctx.call_model(request, purpose="judge")
            helper = Agent(ScriptedModel("Helped.", usage=Usage(prompt_tokens=30)), name="helper")
            helped = await ctx.run_child(helper, "Help.")
            return f"{said.message.text} {helped.text} {ctx.deps}"

        def script(request: ModelRequest) -> list[Turn]:
            return ["Yes."] if request.messages[-1].text == "Is it?" else [call("judge"), call("judge"), "Done."]

        return Agent(
            ScriptedModel(script=script, ids="per_turn"),
            tools=[judge],
            name="shop",
            termination=TokenLimit(100),
            max_iterations=9,
        )

    expected = await agent().run("Sell.", deps="deps")
    async with working(server.address, queue, LocusPlugin([agent()], deps="deps")) as client:
        state = await _sell(client, queue)
    assert ending(state) == ending(expected.state)
    assert expected.stop_reason == "TokenLimit"
    assert state.tool_executions[0].result == "Yes. Helped. deps"


async def test_a_failing_model_ends_the_run_and_a_failing_tool_does_not(server: DevServer, queue: str) -> None:
    @tool(effect="once")
    def fail() -> str:
        """Fail."""
        raise ValueError("no luck")

    agent = Agent(ScriptedModel(call("fail"), ValueError("odd")), tools=[fail], name="shop")
    async with working(server.address, queue, LocusPlugin([agent])) as client:
        answer = await asyncio.wait_for((await _begin(client, queue)).result(), PATIENCE)
    assert answer.stop_reason == "ModelError"
    assert "ValueError: odd" in answer.error


async def test_pure_steps_of_plugins_run_beside_the_workflow(server: DevServer, queue: str) -> None:
    ran: list[str] = []

    class Stepping:
        @hookimpl
        async def locus_on_iteration(self, event: Any, run: Any) -> None:
            async def read() -> dict[str, Any]:
                ran.append("read")
                return {"of": (os.getpid(), 1)}

            run.report("stepping", await run.step("read", read, effect="pure"))

        @hookimpl
        async def locus_review_answer(self, answer: Any, state: Any, run: Any) -> Any:
            asked = ModelRequest(messages=(Message(Role.USER, "Is it?"),))
            await run.call_model(asked, purpose="review")
            ran.append("reviewed")

    def script(request: ModelRequest) -> list[Turn]:
        return ["Yes."] if request.messages[-1].text == "Is it?" else ["Done."]

    agent = Agent(ScriptedModel(script=script), name="shop", hooks=[Stepping()])
    async with working(server.address, queue, LocusPlugin([agent])) as client:
        handle = await _begin(client, queue)
        assert (await asyncio.wait_for(handle.result(), PATIENCE)).text == "Done."
        history = await handle.fetch_history()
    assert ran[0] == "read"
    names = [
        e.activity_task_scheduled_event_attributes.activity_type.name
        for e in history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    assert names == ["locus.model", "locus.model"]
    assert any(e.HasField("marker_recorded_event_attributes") for e in history.events), "a local activity"


async def test_runs_side_by_side_in_one_workflow_have_answers_of_their_own(server: DevServer, queue: str) -> None:
    @tool(effect="once")
    async def sign(ctx: ToolContext[Any]) -> str:
        """Sign."""
        return f"signed by {ctx.interrupt('Who signs?')}"

    turns: list[Turn] = [[call("sign"), call("sign")], "Done."]
    agent = Agent(ScriptedModel(script=lambda _: turns, ids="per_turn"), tools=[sign], name="shop")
    async with working(server.address, queue, LocusPlugin([agent])) as client:
        handle = await client.start_workflow("Both", id=queue, task_queue=queue, result_type=list)

        async def both() -> bool:
            return [run["status"] for run in await handle.query("locus.state")] == ["waiting"] * 2

        async with _until(both):
            waiting = await handle.query("locus.state")
        await handle.signal("locus.answer", "Eve")  # names no thread: it is not used
        for run in waiting:
            for number, interrupt_id in enumerate(run["questions"]):
                answer = {interrupt_id: f"{run['thread_id']} {number}"}
                await handle.signal("locus.answer", args=[answer, run["thread_id"]])
        results = await asyncio.wait_for(handle.result(), PATIENCE)
    assert results == [[f"signed by {name} {n}" for n in range(2)] for name in ("left", "right")]


async def test_a_cancel_in_the_middle_of_parallel_tools_can_be_replayed(server: DevServer, queue: str) -> None:
    begun: list[int] = []

    @tool(effect="once")
    async def wait(n: int) -> str:
        """Wait."""
        begun.append(n)
        await asyncio.Event().wait()
        return "never"

    def agent() -> Agent[Any, Any]:
        turns: list[Turn] = [[call("wait", n=n) for n in range(8)], "Done."]
        return Agent(ScriptedModel(script=lambda _: turns, ids="per_turn"), tools=[wait], name="shop")

    options = {"wait": ActivityConfig(heartbeat_timeout=timedelta(seconds=2))}
    async with working(server.address, queue, LocusPlugin([agent()], options=options)) as client:
        handle = await _begin(client, queue)

        async def all_begun() -> bool:
            return len(begun) == 8

        async with _until(all_begun):
            await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), PATIENCE)
        history = await handle.fetch_history()
    kinds = [e.WhichOneof("attributes") for e in history.events]
    assert kinds.count("activity_task_cancel_requested_event_attributes") == 8
    for _ in range(5):  # the tasks lie elsewhere in memory each time
        await Replayer(workflows=[Sell], plugins=[LocusPlugin([agent()])]).replay_workflow(history)
