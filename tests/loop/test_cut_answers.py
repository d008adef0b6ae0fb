"""The caller's cancel ends an answer that is on its way: what had come is kept and charged, and the next turn works."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.kit import Recorder, add, assert_valid_history, collect, kinds, of, results

from locus import (
    Agent,
    AgentResult,
    Cancel,
    Event,
    Hook,
    Message,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelErrorEvent,
    ModelRequest,
    ModelResponse,
    Role,
    TerminateEvent,
    ToolContext,
    tool,
)
from locus.core.errors import OutcomeUnknown
from locus.core.journal import Outcome, Transition
from locus.core.messages import ThinkingBlock, ToolCall, Usage
from locus.journal import MemoryStore
from locus.models import Chunk, ModelCallResult, OnChunk, Price, estimate_tokens
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call, never

pytestmark = pytest.mark.anyio

PIECES = (Chunk("I am ", "reasoning"), Chunk("Once "), Chunk("upon "), Chunk('{"a": ', "tool_call"), Chunk("a time"))


class Stream:
    """Streams pieces of an answer that has no end; then, and when asked again, it answers as it was told to."""

    name = "stream:model"
    price: Price | None = None

    def __init__(self, *pieces: Chunk, after: str = "And then?") -> None:
        self.pieces, self.after = pieces or PIECES, after
        self.requests: list[ModelRequest] = []
        self.waits, self.left = anyio.Event(), anyio.Event()
        self.finish = anyio.Event()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.requests.append(request)
        if len(self.requests) > 1:
            return ModelResponse(message=Message(Role.ASSISTANT, self.after), usage=Usage(prompt_tokens=5))
        try:
            for piece in self.pieces if on_chunk is not None else ():
                assert on_chunk is not None
                await on_chunk(piece)
            self.waits.set()
            await self.finish.wait()
        finally:
            self.left.set()
        return ModelResponse(message=Message(Role.ASSISTANT, "Once upon a time there was an end."))


class Listen(Hook):
    """Has answers streamed."""

    def on_model_chunk(self, event: ModelChunkEvent) -> None: ...


Cancelling = Callable[[Agent[Any, Any], Any], Awaitable[None]]


async def by_handle(agent: Agent[Any, Any], run: Any) -> None:
    run.cancel("enough")


async def by_agent(agent: Agent[Any, Any], run: Any) -> None:
    assert agent.cancel("enough") == 1


async def by_thread(agent: Agent[Any, Any], run: Any) -> None:
    other = threading.Thread(target=agent.cancel, args=("enough",))
    other.start()
    await anyio.to_thread.run_sync(other.join)


async def cut(model: Any, how: Cancelling = by_handle, **options: Any) -> tuple[AgentResult[Any], list[Event]]:
    """A run whose caller cancels it when its model waits, and its events where anything listens to chunks."""
    recorder = Recorder()
    hooks = options.pop("hooks", (Listen(),))
    agent: Agent[Any, Any] = Agent(model, hooks=(*hooks, recorder) if hooks else (), **options)
    run = agent.run("Tell me a story", thread_id="t")
    found: list[AgentResult[Any]] = []

    async def main() -> None:
        found.append(await run)

    with anyio.fail_after(10):  # for a run that hangs
        async with anyio.create_task_group() as group:
            group.start_soon(main)
            await model.waits.wait()
            await how(agent, run)
    return found[0], recorder.events


@pytest.mark.parametrize("how", [by_handle, by_agent, by_thread])
async def test_a_stream_ends_at_once_and_what_had_come_is_kept(how: Cancelling) -> None:
    model, store = Stream(), MemoryStore()
    result, events = await cut(model, how, checkpointer=store)
    assert model.left.is_set()
    assert result.stop_reason == "Cancelled: enough"
    [end] = of(events, TerminateEvent)
    assert (end.reason, end.satisfied, end.final_message) == ("Cancelled: enough", ("Cancelled",), "Once upon a time")
    last = result.state.messages[-1]
    assert (last.role, last.content, last.text) == (Role.ASSISTANT, last.content[:1], "Once upon a time")
    assert last.is_cut
    assert not result.failed
    assert not of(events, ModelErrorEvent)
    # The thread is free, and the model reads on the next turn what it had said.
    agent: Agent[Any, Any] = Agent(model, checkpointer=store)
    again = await agent.run("Go on", thread_id="t")
    assert again.message == "And then?"
    assert [m.text for m in model.requests[1].messages] == ["Tell me a story", "Once upon a time", "Go on"]


async def test_a_model_that_does_not_stream_ends_at_once_too() -> None:
    model, store = Stream(), MemoryStore()
    result, _ = await cut(model, by_thread, hooks=(), checkpointer=store)
    assert result.stop_reason == "Cancelled: enough"
    assert [m.role for m in result.state.messages] == [Role.USER]  # no empty turn, which providers refuse
    assert result.message == ""
    assert not result.state.reasoning_steps
    again = await Agent[Any, Any](model, checkpointer=store).run("Go on", thread_id="t")
    assert again.message == "And then?"


async def test_what_was_not_counted_is_estimated_and_says_so() -> None:
    model = Stream()
    model.price = Price(prompt=1.0, completion=2.0)
    result, events = await cut(model)
    [done] = of(events, ModelCompleteEvent)
    prompt, completion = estimate_tokens(model.requests[0].messages[0]), len('I am Once upon {"a": a time') // 4 + 1
    assert done.stop_reason == "cancelled"
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (prompt, completion)
    assert done.usage.estimated_tokens == prompt + completion
    assert result.usage.total_tokens == prompt + completion
    assert result.usage.estimated_tokens == prompt + completion
    assert result.usage.cost == pytest.approx((prompt + 2 * completion) / 1_000_000)


async def test_what_the_stream_has_counted_is_charged_as_it_is() -> None:
    counted = Usage(prompt_tokens=1_000, completion_tokens=1, cached_tokens=900)
    model = Stream(
        Chunk("", "usage", counted), Chunk("Once upon "), Chunk("", "usage", evolve(counted)), Chunk("a time")
    )
    result, events = await cut(model)
    [done] = of(events, ModelCompleteEvent)
    assert done.usage == evolve(counted, completion_tokens=4, estimated_tokens=3)
    assert result.state.cached_tokens_used == 900
    assert result.usage.estimated_tokens == 3
    assert [e.text for e in of(events, ModelChunkEvent)] == ["Once upon ", "a time"]


async def test_a_hook_s_cancel_lets_the_answer_finish() -> None:
    class Stop(Hook):
        def on_model_chunk(self, event: ModelChunkEvent) -> Cancel:
            model.finish.set()
            return Cancel("seen enough")

    model = Stream()
    result = await Agent(model, hooks=[Stop()]).run("x")
    assert result.stop_reason == "Cancelled: seen enough"
    assert result.message == "Once upon a time there was an end."
    assert not result.state.messages[-1].is_cut


async def test_the_caller_s_cancel_cuts_what_a_hook_s_has_let_finish() -> None:
    class Stop(Hook):
        def on_model_chunk(self, event: ModelChunkEvent) -> Cancel:
            return Cancel("seen enough")

    result, _ = await cut(Stream(), hooks=(Stop(),))
    assert result.stop_reason == "Cancelled: seen enough"  # the first reason counts
    assert result.message == "Once upon a time"


async def test_a_consumer_may_cancel_in_the_middle_of_its_loop() -> None:
    model, store = Stream(), MemoryStore()
    agent: Agent[Any, Any] = Agent(model, checkpointer=store)
    run = agent.run("x", thread_id="t")
    seen: list[Event] = []
    with anyio.fail_after(10):
        async for event in run:
            seen.append(event)
            if isinstance(event, ModelChunkEvent) and event.text == "upon ":
                run.cancel()
    assert kinds(seen, TerminateEvent) == ["terminate"]
    assert run.result.stop_reason == "Cancelled"
    assert run.result.message.startswith("Once upon ")
    assert (await agent.run("y", thread_id="t")).message == "And then?"


class Redact(Hook):
    """Sees whole answers, and keeps one word out of them."""

    buffers = True

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> ModelResponse:
        response: ModelResponse = await call_next(request)
        text = response.message.text.replace("upon", "[...]")
        return evolve(response, message=Message(Role.ASSISTANT, text))


async def test_a_wrapper_sees_what_is_kept() -> None:
    result, events = await cut(Stream(), hooks=(Redact(), Listen()))
    last = result.state.messages[-1]
    assert (last.text, last.is_cut) == ("Once [...] a time", True)
    assert [e.text for e in of(events, ModelChunkEvent)] == ["Once [...] a time"]


async def test_nothing_is_left_of_calls_and_reasoning_that_were_cut() -> None:
    result, _ = await cut(Stream(Chunk("hmm", "reasoning"), Chunk('{"a"', "tool_call"), Chunk("\n ")))
    assert [m.role for m in result.state.messages] == [Role.USER]
    assert result.usage.completion_tokens > 0
    whole = result.state.messages[0].content
    assert not any(isinstance(block, ThinkingBlock | ToolCall) for block in whole)


async def test_a_model_call_of_a_plugin_ends_at_once_too() -> None:
    class Judge(Hook):
        @hookimpl
        async def locus_review_answer(self, answer: Message, run: RunContext) -> None:
            request = ModelRequest(messages=(Message(Role.USER, "Is it true?"),))
            await run.call_model(request, model=judge, purpose="judge")

    judge = Stream()
    recorder = Recorder()
    agent: Agent[Any, Any] = Agent(ScriptedModel("an answer"), hooks=[Judge(), recorder])
    found: list[AgentResult[Any]] = []

    async def main() -> None:
        found.append(await agent.run("x"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(main)
            await judge.waits.wait()
            agent.cancel("enough")
    assert judge.left.is_set()
    assert found[0].stop_reason == "Cancelled: enough"
    assert found[0].message == "an answer"
    assert found[0].usage.total_tokens > 15  # the judge's prompt is charged, too


async def test_the_model_of_a_child_ends_at_once_and_its_parent_with_it() -> None:
    model, recorder = Stream(), Recorder()
    child: Agent[Any, Any] = Agent(model, hooks=[Listen()])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Runs a child."""
        result = await ctx.run_child(child, "tell a story")
        return f"{result.stop_reason}: {result.message}"

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("delegate"), call("delegate")], "never"), tools=[delegate], hooks=[recorder]
    )
    found: list[AgentResult[Any]] = []

    async def main() -> None:
        found.append(await agent.run("x"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(main)
            await model.waits.wait()
            agent.cancel("enough")
    assert found[0].stop_reason == "Cancelled: enough"
    assert "Cancelled: enough: Once upon a time" in [e.result for e in found[0].state.tool_executions]
    assert found[0].usage.completion_tokens > 10
    assert_valid_history(found[0].state.messages)


async def test_a_cancel_of_a_child_leaves_its_parent_alone() -> None:
    model = Stream()
    child: Agent[Any, Any] = Agent(model, hooks=[Listen()])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Runs a child."""
        return str((await ctx.run_child(child, "tell a story")).stop_reason)

    agent: Agent[Any, Any] = Agent(ScriptedModel(call("delegate"), "went on"), tools=[delegate])
    found: list[AgentResult[Any]] = []

    async def main() -> None:
        found.append(await agent.run("x"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(main)
            await model.waits.wait()
            assert child.cancel("enough") == 1
    assert found[0].message == "went on"
    assert [e.result for e in found[0].state.tool_executions] == ["Cancelled: enough"]


# -- bodies of tools -----------------------------------------------------------------------------------


@pytest.mark.parametrize("knows", [True, False])
async def test_a_body_may_have_a_block_of_it_cut(knows: bool) -> None:
    entered = anyio.Event()

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Waits for a service that does not answer."""
        with ctx.cut_scope() as scope:
            entered.set()
            await anyio.sleep_forever()
        assert scope.is_cut
        await anyio.lowlevel.checkpoint()  # the body goes on
        if not knows:
            raise OutcomeUnknown("ask")
        return "gave up"

    @tool
    async def write() -> str:
        """Finishes."""
        await entered.wait()
        agent.cancel("enough")
        for _ in range(9):
            await anyio.lowlevel.checkpoint()
        return "written"

    agent: Agent[Any, Any] = Agent(ScriptedModel([call("ask"), call("write")]), tools=[ask, write])
    with anyio.fail_after(10):
        result = await agent.run("x")
    assert result.stop_reason == "Cancelled: enough"
    said, written = results(result)
    assert said == "gave up" if knows else said.startswith("Error: outcome unknown: ")
    assert written == "written"


async def test_a_block_that_is_not_cut_is_left_as_any_other() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Answers."""
        with ctx.cut_scope() as scope:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(LookupError), ctx.cut_scope():
            raise LookupError
        return str(scope.is_cut)

    result = await Agent[Any, Any](ScriptedModel(call("ask"), "done"), tools=[ask]).run("x")
    assert (results(result), result.message) == (["False"], "done")


# -- together with a cancellation of the task ----------------------------------------------------------


async def test_a_scope_of_the_caller_that_ends_at_the_same_moment_is_obeyed() -> None:
    model, store, recorder = Stream(), MemoryStore(), Recorder()
    agent: Agent[Any, Any] = Agent(model, hooks=[Listen(), recorder], checkpointer=store)
    run = agent.run("x", thread_id="t")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:

            async def main() -> None:
                with anyio.CancelScope() as scope:
                    scopes.append(scope)
                    await run
                after.append(scope.cancelled_caught)

            scopes: list[anyio.CancelScope] = []
            after: list[bool] = []
            group.start_soon(main)
            await model.waits.wait()
            run.cancel("enough")
            scopes[0].cancel()
    assert after == [True]
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled: enough"]
    await _ends_or_goes_on(agent)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_at_the_same_moment_is_cancelled() -> None:
    model, store, recorder = Stream(), MemoryStore(), Recorder()
    agent: Agent[Any, Any] = Agent(model, hooks=[Listen(), recorder], checkpointer=store)
    run = agent.run("x", thread_id="t")
    task = asyncio.create_task(run)
    await model.waits.wait()
    run.cancel("enough")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled: enough"]
    await _ends_or_goes_on(agent)


async def _ends_or_goes_on(agent: Agent[Any, Any]) -> None:
    again = await agent.run("y", thread_id="t")
    assert again.stop_reason == "NoToolCalls"
    assert_valid_history(again.state.messages)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_is_not_marked_as_cancelled_afterwards() -> None:
    async def main() -> tuple[str, int]:
        task = asyncio.current_task()
        assert task is not None
        result = await run
        await asyncio.sleep(0)
        return result.stop_reason, task.cancelling()

    model = Stream()
    run = Agent[Any, Any](model, hooks=[Listen()]).run("x")
    task = asyncio.create_task(main())
    await model.waits.wait()
    run.cancel()
    assert await task == ("Cancelled", 0)


# -- on record -----------------------------------------------------------------------------------------------


async def test_a_crash_after_the_cut_ends_the_same_way_and_asks_no_model() -> None:
    store = MemoryStore()
    result, _ = await cut(Stream(), checkpointer=store)
    entries = await store.read("t")
    answered = next(i for i, e in enumerate(entries) if isinstance(e.body, Outcome)) + 1
    value = entries[answered - 1].body.value  # type: ignore[union-attr]
    assert isinstance(value, ModelCallResult)
    assert value.cancelled == "enough"
    crashed = MemoryStore()
    claim = await crashed.claim("t", "dies")
    await crashed.append(claim, tuple(e.body for e in entries[:answered]))
    await crashed.release(claim)
    model = ScriptedModel(name="stream:model")
    again = await Agent[Any, Any](model, hooks=[Listen()], checkpointer=crashed).resume("t")
    assert not model.requests
    assert again.stop_reason == result.stop_reason
    assert again.state.messages == result.state.messages
    assert again.usage == result.usage
    last = (await crashed.read("t"))[-1].body
    assert isinstance(last, Transition)
    assert last.why == "Cancelled: enough"


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    pieces=st.lists(
        st.builds(Chunk, st.text(max_size=4), st.sampled_from(["text", "reasoning", "tool_call"])), max_size=6
    ),
    at=st.integers(0, 6),
    turns=st.integers(0, 2),
    elsewhere=st.booleans(),
)
def test_wherever_the_caller_cancels_a_stream_the_text_so_far_is_the_answer(
    pieces: list[Chunk], at: int, turns: int, elsewhere: bool
) -> None:
    async def main() -> None:
        heard = 0

        class Model:
            name = "m:m"
            asked = 0

            async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
                nonlocal heard
                self.asked += 1
                if self.asked <= turns:
                    return ModelResponse(message=Message(Role.ASSISTANT, ToolCall("1", "add", {"a": 1})))
                assert on_chunk is not None
                for piece in pieces:
                    if heard == at:
                        cancel()
                    await on_chunk(piece)
                    heard += 1
                cancel()
                await anyio.sleep_forever()
                raise AssertionError

        def cancel() -> None:
            if elsewhere:
                thread = threading.Thread(target=agent.cancel)
                thread.start()
                thread.join()
            else:
                agent.cancel()

        recorder = Recorder()
        agent: Agent[Any, Any] = Agent(Model(), tools=[add], hooks=[Listen(), recorder], max_iterations=9)
        result = await agent.run("x")
        assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]
        shown = "".join(e.text for e in of(recorder.events, ModelChunkEvent) if e.kind == "text")
        assert result.message == (shown if shown.strip() else "")
        assert_valid_history(result.state.messages)

    anyio.run(main, backend="asyncio")
    anyio.run(main, backend="trio")


async def test_a_cancel_before_the_model_waits_is_not_lost() -> None:
    """The scripted model never comes back, and the cancel comes while it is asked: before it waits for anything."""

    def turn(_: ModelRequest) -> Any:
        agent.cancel("early")
        return never

    agent: Agent[Any, Any] = Agent(ScriptedModel(turn))
    with anyio.fail_after(10):
        result = await agent.run("x")
    assert result.stop_reason == "Cancelled: early"


async def test_iterating_shows_the_same_events_as_before_and_one_end() -> None:
    model = Stream()
    agent: Agent[Any, Any] = Agent(model)
    run = agent.run("x")
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            await model.waits.wait()
            run.cancel("enough")

        group.start_soon(stop)
        events = await collect(run)
    assert kinds(events)[-1] == "terminate"
    assert len(of(events, TerminateEvent)) == 1
    assert run.result.message == "Once upon a time"
