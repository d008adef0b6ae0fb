"""A model that fails, hangs or answers nonsense: the run ends with a reason, or asks again where a hook says so."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, collect, interrupting, kinds, of, results

from locus import (
    Agent,
    Hook,
    Message,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelError,
    ModelErrorEvent,
    ModelRequest,
    ModelResponse,
    ModelRestartEvent,
    Retry,
    Role,
    TerminateEvent,
    ThinkEvent,
    Usage,
)
from locus.core.errors import ContextOverflow, RunFailed
from locus.core.messages import RawBlock, TextBlock, ThinkingBlock, ToolCall
from locus.core.termination import TokenLimit
from locus.journal import MemoryStore
from locus.models.protocol import Chunk, OnChunk, Price
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Saying:
    """A model that returns whatever it was given, model response or not."""

    name = "odd:model"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.asked += 1
        answer: ModelResponse = self.answers.pop(0)
        return answer


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ModelError("rate limited", status=429, retryable=True), "rate limited"),
        (lambda: ContextOverflow("too long"), "too long"),
        (lambda: RuntimeError("socket closed"), "scripted:model failed: RuntimeError: socket closed"),
        (lambda: KeyError("choices"), "scripted:model failed: KeyError: 'choices'"),
        (lambda: ValueError(), "scripted:model failed: ValueError"),
        (lambda: ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "scripted:model failed: ExceptionGroup"),
    ],
)
async def test_a_failing_model_ends_the_run_and_raises_nothing(make: Callable[[], Exception], told: str) -> None:
    error, recorder = make(), Recorder()
    result = await Agent(ScriptedModel(error), hooks=[recorder]).run("x")

    assert (result.stop_reason, result.message, result.failed) == ("ModelError", "", True)
    assert isinstance(result.error, ModelError)
    assert told in str(result.error)
    assert result.error is error or result.error.__cause__ is error
    [failed] = of(recorder.events, ModelErrorEvent)
    assert told in failed.error
    assert failed.retryable is result.error.retryable
    [end] = of(recorder.events, TerminateEvent)
    assert end.reason == "ModelError"
    assert told in str(end.error)
    assert told in result.state.errors[-1]
    with pytest.raises(RunFailed, match="ModelError") as raised:
        result.raise_for_failure()
    assert raised.value.__cause__ is result.error


async def test_a_model_that_fails_after_tools_ran_keeps_what_was_done() -> None:
    result = await Agent(ScriptedModel(call("add", a=1), RuntimeError("down")), tools=[add]).run("x")
    assert result.stop_reason == "ModelError"
    assert results(result) == ["2"]
    assert result.usage.total_tokens == 15
    assert_valid_history(result.state.messages)


async def test_iterating_a_run_whose_model_fails_raises_nothing() -> None:
    run = Agent(ScriptedModel(RuntimeError("down"))).run("x")
    events = await collect(run)
    assert kinds(events)[-1] == "terminate"
    assert run.result.stop_reason == "ModelError"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_a_model_raises_itself_is_its_error() -> None:
    async def confused(request: ModelRequest) -> str:
        task = asyncio.get_running_loop().create_task(asyncio.sleep(3600))
        task.cancel()
        await task
        return "never"

    result = await Agent(ScriptedModel(confused)).run("x")
    assert result.stop_reason == "ModelError"
    assert "CancelledError" in str(result.error)


async def test_cancelling_the_caller_ends_the_model_call() -> None:
    inside, log = anyio.Event(), list[str]()

    async def think(request: ModelRequest) -> str:
        inside.set()
        try:
            await anyio.sleep_forever()
            return "never"
        finally:
            log.append("closed")

    async with anyio.create_task_group() as group:
        group.start_soon(collect, Agent(ScriptedModel(think)).run("x"))
        await inside.wait()
        group.cancel_scope.cancel()
    assert log == ["closed"]


# -- nonsense ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "just text",
        {"message": "hi"},
        ModelResponse(message=Message(Role.USER, "I am you")),
        ModelResponse(message=Message(Role.SYSTEM, "obey")),
        ModelResponse(message="hi"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
async def test_what_is_not_an_answer_is_a_model_error(answer: Any) -> None:
    model = Saying(answer)
    result = await Agent(model).run("x")
    assert result.stop_reason == "ModelError"
    assert "odd:model" in str(result.error)
    assert model.asked == 1


@pytest.mark.parametrize(("said", "counted"), [(-5, 0), (2.7, 2), (math.nan, 0), (math.inf, 0), (None, 0), ("7", 7)])
async def test_usage_that_a_provider_got_wrong_harms_nobody(said: Any, counted: int) -> None:
    class Judge(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.call_model(ModelRequest(messages=(Message(Role.USER, "Well?"),)), purpose="judge")

    wrong = ModelResponse(
        message=Message(Role.ASSISTANT, "hi"), usage=Usage(prompt_tokens=said, completion_tokens=2, cost=math.nan)
    )
    agent = Agent(ScriptedModel(wrong, wrong), hooks=[Judge()], termination=TokenLimit(100), max_iterations=3)
    result = await agent.run("x")
    assert (result.message, result.stop_reason) == ("hi", "NoToolCalls")
    assert (result.state.prompt_tokens_used, result.state.completion_tokens_used) == (2 * counted, 4)
    assert type(result.state).from_checkpoint(result.state.to_checkpoint()) == result.state


async def test_more_cached_tokens_than_the_prompt_has_pay_nothing_back() -> None:
    odd = ModelResponse(message=Message(Role.ASSISTANT, "hi"), usage=Usage(prompt_tokens=1, cached_tokens=1_000_000))
    result = await Agent(ScriptedModel(odd, price=Price(prompt=3.0, completion=15.0, cached=0.3))).run("x")
    assert result.state.cost == 0.0


# -- another try --------------------------------------------------------------------------------------


class RetryTransient(Hook):
    """Asks again after a failure that may pass."""

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        return Retry(event.error) if event.retryable else None


async def test_a_hook_can_ask_for_another_try_after_a_failure() -> None:
    recorder = Recorder()
    model = ScriptedModel(ModelError("busy", retryable=True), ModelError("busy", retryable=True), "hi")
    result = await Agent(model, hooks=[RetryTransient(), recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "hi")
    assert [e.attempt for e in of(recorder.events, ModelErrorEvent)] == [0, 1]
    assert [e.attempt for e in of(recorder.events, ModelRestartEvent)] == [1, 2]
    assert result.state.iteration == 0  # all of it was one Think


async def test_another_try_is_not_asked_for_for_ever() -> None:
    model = ScriptedModel(ModelError("busy", retryable=True), after="repeat")
    result = await Agent(model, hooks=[RetryTransient()]).run("x")
    assert result.stop_reason == "ModelError"
    assert 2 <= len(model.requests) <= 5


async def test_an_answer_can_be_thrown_away_and_its_tokens_are_paid() -> None:
    class Fussy(Hook):
        def on_think(self, event: ThinkEvent) -> Retry | None:
            return Retry("too short") if len(event.text) < 5 else None

    recorder = Recorder()
    result = await Agent(ScriptedModel("no", "well then", chunks=True), hooks=[Fussy(), recorder]).run("x")
    assert result.message == "well then"
    assert [m.text for m in result.state.messages] == ["x", "well then"]
    assert result.usage.total_tokens == 30
    [restart] = of(recorder.events, ModelRestartEvent)
    assert (restart.attempt, restart.reason) == (1, "too short")
    chunks = of(recorder.events, ModelChunkEvent)
    assert [(c.attempt, c.text) for c in chunks] == [(0, "no"), (1, "well"), (1, " then")]


async def test_a_wrapper_that_tries_again_pays_for_both_and_is_one_step() -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> ModelResponse:
            first: ModelResponse = await call_next(request)
            if first.message.text != "bad":
                return first
            second: ModelResponse = await call_next(request)
            return second

    recorder = Recorder()
    result = await Agent(ScriptedModel("bad", "good", chunks=True), hooks=[Twice(), recorder]).run("x")
    assert result.message == "good"
    assert result.usage.total_tokens == 30
    [complete] = of(recorder.events, ModelCompleteEvent)
    assert (complete.attempts, complete.usage.total_tokens) == (2, 30)
    assert [(c.attempt, c.text) for c in of(recorder.events, ModelChunkEvent)] == [(0, "bad"), (1, "good")]
    assert len(of(recorder.events, ModelRestartEvent)) == 1


async def test_a_wrapper_that_gives_up_after_trying_again_has_paid_for_what_came() -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> ModelResponse:
            await call_next(request)
            second: ModelResponse = await call_next(request)
            return second

    result = await Agent(ScriptedModel("bad", RuntimeError("down")), hooks=[Twice()]).run("x")
    assert result.stop_reason == "ModelError"
    assert result.usage.total_tokens == 15


async def test_a_wrapper_can_answer_in_place_of_the_model() -> None:
    class Cache(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> ModelResponse:
            return ModelResponse(message=Message(Role.ASSISTANT, "from the cache"))

    model = ScriptedModel()
    result = await Agent(model, hooks=[Cache()]).run("x")
    assert result.message == "from the cache"
    assert model.requests == ()
    assert result.usage.total_tokens == 0


async def test_a_wrapper_that_raises_is_the_models_error_with_a_note_that_names_it() -> None:
    class Broken(Hook):
        name = "broken"

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> ModelResponse:
            raise LookupError("my mistake")

    result = await Agent(ScriptedModel("hi"), hooks=[Broken()]).run("x")
    assert result.stop_reason == "ModelError"
    assert "broken" in "".join(result.error.__cause__.__notes__)  # type: ignore[union-attr]


async def test_a_wrapper_that_must_see_the_whole_answer_holds_the_chunks_back() -> None:
    class Redact(Hook):
        buffers = True

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> ModelResponse:
            response: ModelResponse = await call_next(request)
            text = response.message.text.replace("secret", "[gone]")
            return ModelResponse(message=Message(Role.ASSISTANT, text), usage=response.usage)

    recorder = Recorder()
    model = ScriptedModel("a secret word", chunks=3)
    result = await Agent(model, hooks=[Redact(), recorder]).run("x")
    assert result.message == "a [gone] word"
    assert "".join(c.text for c in of(recorder.events, ModelChunkEvent)) == "a [gone] word"


# -- streaming ---------------------------------------------------------------------------------------------


async def test_chunks_are_live_and_streaming_changes_no_result() -> None:
    blocks: list[Any] = [ThinkingBlock("let me see", "sig"), TextBlock("one two"), ToolCall("c", "add", {"a": 1})]
    seen: list[tuple[str, str]] = []
    plain = await Agent(ScriptedModel(blocks, "three"), tools=[add]).run("x")
    run = Agent(ScriptedModel(blocks, "three", chunks=True), tools=[add]).run("x")
    async for event in run:
        if isinstance(event, ModelChunkEvent):
            seen.append((event.kind, event.text))
    assert seen == [
        ("reasoning", "let"),
        ("reasoning", " me"),
        ("reasoning", " see"),
        ("text", "one"),
        ("text", " two"),
        ("tool_call", '{"a":'),
        ("tool_call", " 1}"),
        ("text", "three"),
    ]
    assert run.result.state.messages == plain.state.messages


async def test_a_chunk_reaches_the_consumer_before_the_model_is_done() -> None:
    heard = anyio.Event()

    class Live:
        name = "live:model"

        async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
            assert on_chunk is not None
            await on_chunk(Chunk("first"))
            await heard.wait()
            await on_chunk(Chunk(" second"))
            return ModelResponse(message=Message(Role.ASSISTANT, "first second"))

    with anyio.fail_after(5):
        async for event in Agent(Live()).run("x"):
            if isinstance(event, ModelChunkEvent):
                heard.set()


async def test_nobody_listening_means_no_streaming() -> None:
    asked: list[Any] = []

    class Model:
        name = "quiet:model"

        async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
            asked.append(on_chunk)
            return ModelResponse(message=Message(Role.ASSISTANT, "hi"))

    await Agent(Model()).run("x")
    assert asked == [None]


async def test_reasoning_is_shown_and_kept_apart_from_the_text() -> None:
    recorder = Recorder()
    model = ScriptedModel([ThinkingBlock("hm", "sig"), "hello"], "plain")
    agent = Agent(model, hooks=[recorder], checkpointer=MemoryStore())
    result = await agent.run("x", thread_id="t")
    await agent.run("y", thread_id="t")
    assert result.message == "hello"
    assert [(t.reasoning, t.text) for t in of(recorder.events, ThinkEvent)] == [("hm", "hello"), (None, "plain")]
    assert result.state.reasoning_steps[0].thought == "hm"


async def test_a_turn_goes_back_to_its_provider_exactly_as_it_came() -> None:
    turn = Message(
        Role.ASSISTANT,
        (
            ThinkingBlock("private", "signature==", extras={"kind": "redacted"}),
            RawBlock("acme", {"type": "citations", "items": [1, 2]}),
            TextBlock("text", extras={"id": "t1"}),
            ToolCall("id-1", "add", {"b": 2, "a": 1}, extras={"index": 0}),
        ),
        extras={"response_id": "r-1"},
    )
    model = ScriptedModel(turn, "done")
    await Agent(model, tools=[add]).run("x")
    assert model.requests[1].messages[1] is turn


async def test_a_model_without_an_end_is_stopped_by_the_runs_time() -> None:
    from_hook: list[float] = []

    class Look(Hook):
        def on_model_error(self, event: ModelErrorEvent) -> None:
            from_hook.append(event.attempt)

    with anyio.CancelScope() as scope:
        await Agent(ScriptedModel(interrupting(scope)), hooks=[Look()]).run("x")
    assert scope.cancelled_caught
    assert from_hook == []  # the caller's own timeout is no failure of the model
