"""Wrappers in a run: around nodes, model calls and tool calls, like the skins of an onion."""

from __future__ import annotations

import math
from typing import Any

import anyio
import pytest
from attrs import evolve
from tests.loop.hook_kit import ASYNC_WAYS, Crash, enough, failures, plugins, wrong
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, collect, confirm, kinds, of, results

from locus import (
    Agent,
    AgentState,
    Hook,
    Message,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelErrorEvent,
    ModelRequest,
    ModelResponse,
    ModelRestartEvent,
    Reject,
    RetryableToolError,
    Role,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolStartEvent,
    Usage,
    tool,
)
from locus.core.directives import Accept, Cancel, Retry
from locus.core.errors import ModelError
from locus.core.journal import Outcome
from locus.core.messages import TextBlock, ThinkingBlock, ToolCall
from locus.core.termination import TokenLimit
from locus.journal import MemoryStore
from locus.models.protocol import Price
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class RetryModel(Hook):
    """Asks the model again when it failed, at most ``times`` times in all."""

    def __init__(self, times: int = 3) -> None:
        self.times = times

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
        for _ in range(self.times - 1):
            try:
                return await call_next(request)
            except ModelError:
                continue
        return await call_next(request)


class Skin(Hook):
    """Says when it is entered and left, around everything."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    @hookimpl
    async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
        self.log.append(f"{self.name} {node} in")
        done = await call_next(state)
        self.log.append(f"{self.name} {node} out")
        return done

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
        self.log.append(f"{self.name} model in")
        done = await call_next(request)
        self.log.append(f"{self.name} model out")
        return done

    @hookimpl
    async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
        self.log.append(f"{self.name} tool in")
        done = await call_next(call)
        self.log.append(f"{self.name} tool out")
        return done


async def test_the_skins_lie_around_each_other_in_the_order_of_the_hooks() -> None:
    log: list[str] = []
    hooks = [Skin("a", log), Skin("b", log)]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert result.message == "done"

    def around(what: str, *inside: str) -> list[str]:
        return [f"a {what} in", f"b {what} in", *inside, f"b {what} out", f"a {what} out"]

    think = around("think", *around("model"))
    assert log == [*think, *around("execute", *around("tool")), *think, *around("terminate")]


# -- the model call -----------------------------------------------------------------------------------


async def test_the_model_gets_what_the_wrappers_made_of_the_request_and_the_run_what_they_made_of_the_answer() -> None:
    class Translate(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> Any:
            last = Message(Role.USER, f"{request.messages[-1].text}, in French")
            response = await call_next(evolve(request, messages=(*request.messages[:-1], last)))
            return evolve(response, message=Message(Role.ASSISTANT, f"translated: {response.message.text}"))

    recorder, model = Recorder(), ScriptedModel("bonjour")
    result = await Agent(model, hooks=[Translate(), recorder]).run("greet me")
    assert [m.text for m in model.requests[0].messages] == ["greet me, in French"]
    assert [m.text for m in result.state.messages] == ["greet me", "translated: bonjour"]
    assert of(recorder.events, ThinkEvent)[0].text == result.message == "translated: bonjour"


async def test_every_attempt_of_a_retry_wrapper_is_charged_in_tokens_and_dollars() -> None:
    class Best(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            answers = [await call_next(request) for _ in range(3)]
            return max(answers, key=lambda r: len(r.message.text))

    recorder = Recorder()
    price = Price(prompt=1_000_000, completion=2_000_000)
    model = ScriptedModel("a", "abc", "ab", usage=Usage(prompt_tokens=10, completion_tokens=1), price=price)
    result = await Agent(model, hooks=[Best(), recorder]).run("x")
    assert result.message == "abc"
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (30, 3)
    assert result.cost == pytest.approx(36.0)
    [complete] = of(recorder.events, ModelCompleteEvent)
    assert (complete.attempts, complete.usage.total_tokens) == (3, 33)
    assert [e.attempt for e in of(recorder.events, ModelRestartEvent)] == [1, 2]


async def test_a_retry_wrapper_hides_failures_from_the_loop_and_pays_for_what_came() -> None:
    recorder = Recorder()
    model = ScriptedModel(ModelError("busy"), ModelError("busy"), "hi")
    result = await Agent(model, hooks=[RetryModel(), recorder]).run("x")
    assert (result.stop_reason, result.message, result.usage.total_tokens) == ("NoToolCalls", "hi", 15)
    assert result.state.errors == ()
    assert of(recorder.events, ModelErrorEvent) == []
    assert of(recorder.events, ModelCompleteEvent)[0].attempts == 3
    assert plugins(result).plugins[0].failures == ()


async def test_the_error_of_the_last_attempt_is_the_models_and_nobody_else_is_blamed() -> None:
    last = ModelError("still busy", retryable=True)
    result = await Agent(ScriptedModel(ModelError("busy"), last), hooks=[RetryModel(times=2)]).run("x")
    assert (result.stop_reason, result.error) == ("ModelError", last)
    assert not hasattr(last, "__notes__")
    assert failures(result, "RetryModel") == ()


async def test_a_wrapper_that_fails_after_the_model_answered_has_still_spent_the_tokens() -> None:
    class Late(Hook):
        name = "late"

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            await call_next(request)
            raise LookupError("my mistake")

    result = await Agent(ScriptedModel("hi"), hooks=[Late()]).run("x")
    assert result.stop_reason == "ModelError"
    assert result.usage.total_tokens == 15
    assert [f.hook for f in failures(result, "late")] == ["locus_wrap_model_call"]


@pytest.mark.parametrize("how", ASYNC_WAYS)
async def test_a_wrapper_of_the_model_that_goes_wrong_is_the_nodes_error_and_named(how: str) -> None:
    recorder, model = Recorder(), ScriptedModel()
    result = await Agent(model, hooks=[wrong(how, "locus_wrap_model_call"), recorder]).run("x")
    assert result.stop_reason == "ModelError"
    assert isinstance(result.error, ModelError)
    cause = result.error.__cause__
    assert "'bad'" in f"{cause} {getattr(cause, '__notes__', '')}"
    assert kinds(recorder.events)[-1] == "terminate"
    assert [(f.hook, f.count, f.quarantined) for f in failures(result)] == [("locus_wrap_model_call", 1, False)]
    assert "hook_failed" in kinds(recorder.events)


async def test_a_hook_may_ask_for_another_try_after_a_wrapper_failed() -> None:
    class Once(Hook):
        name = "once"
        failed = False

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            if not self.failed:
                self.failed = True
                raise ModelError("a bad start", retryable=True)
            return await call_next(request)

        def on_model_error(self, event: ModelErrorEvent) -> Retry:
            return Retry("once more")

    result = await Agent(ScriptedModel("hi"), hooks=[Once()]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "hi")


async def test_budgets_hold_between_the_attempts_that_hooks_ask_for() -> None:
    class Fussy(Hook):
        def on_think(self, event: ThinkEvent) -> Retry:
            return Retry("not good enough")

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            await call_next(request)
            return await call_next(request)

    model = ScriptedModel("hi", after="repeat")
    result = await Agent(model, hooks=[Fussy()], termination=TokenLimit(40), max_iterations=9).run("x")
    assert (result.stop_reason, result.usage.total_tokens, len(model.requests)) == ("TokenLimit", 45, 3)


async def test_cancelling_the_caller_passes_through_wrappers_and_their_cleanup_runs() -> None:
    begun, cleaned = anyio.Event(), []

    async def stuck(request: ModelRequest) -> str:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    class Tidy(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            try:
                return await call_next(request)
            finally:
                cleaned.append("model")

    agent = Agent(ScriptedModel(stuck), hooks=[Tidy()])

    async def run() -> None:
        await agent.run("x")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            group.cancel_scope.cancel()
    assert cleaned == ["model"]


async def test_a_sync_wrapper_may_hand_on_what_call_next_gave_it() -> None:
    class Through(Hook):
        @hookimpl
        def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            return call_next(request)

    assert (await Agent(ScriptedModel("hi"), hooks=[Through()]).run("x")).message == "hi"


async def test_an_error_that_replaces_the_models_is_the_wrappers() -> None:
    class Translates(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            try:
                return await call_next(request)
            except ModelError as e:
                raise ModelError("no luck") from e

    outer = RetryModel(times=1)
    result = await Agent(ScriptedModel(ModelError("busy")), hooks=[outer, Translates()]).run("x")

    assert getattr(result.error, "__notes__", []) == ["in hook locus_wrap_model_call of plugin 'Translates'"]
    assert (len(failures(result, "Translates")), failures(result, "RetryModel")) == (1, ())


@pytest.mark.parametrize("calls", [1, 2], ids=["one call", "two calls at once"])
async def test_a_wrappers_clock_does_not_run_while_the_model_is_at_work(calls: int) -> None:
    inside: list[float] = []
    outside: list[float] = []
    asked = anyio.Event()

    async def answer(request: ModelRequest) -> str:
        inside.append(anyio.current_effective_deadline())
        if len(inside) == calls:
            asked.set()
        await asked.wait()
        return "hi"

    class Timed(Hook):
        hook_timeout = 60
        last: Any = None

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            async def ask() -> None:
                self.last = await call_next(request)

            outside.append(anyio.current_effective_deadline())
            async with anyio.create_task_group() as group:
                for _ in range(calls):
                    group.start_soon(ask)
            outside.append(anyio.current_effective_deadline())
            return self.last

    began = anyio.current_time()
    result = await Agent(ScriptedModel(*[answer] * calls), hooks=[Timed()], model_timeout=None).run("x")

    assert (result.message, inside) == ("hi", [math.inf] * calls)
    before, after = outside
    assert began + 60 <= before <= after < began + 120


# -- holding chunks back ------------------------------------------------------------------------------


class Replace(Hook):
    """Must see the whole answer, and shows another one."""

    buffers = True

    def __init__(self, *content: Any) -> None:
        self.content = content

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
        response = await call_next(request)
        return evolve(response, message=Message(Role.ASSISTANT, self.content)) if self.content else response


async def test_nothing_is_shown_before_a_buffering_wrapper_has_seen_the_whole_answer() -> None:
    recorder = Recorder()
    order: list[str] = []

    class Look(Hook):
        buffers = True

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            response = await call_next(request)
            order.append(f"seen {len(of(recorder.events, ModelChunkEvent))}")
            return response

    await Agent(ScriptedModel("one two three", chunks=True), hooks=[Look(), recorder]).run("x")
    assert order == ["seen 0"]
    assert [c.text for c in of(recorder.events, ModelChunkEvent)] == ["one", " two", " three"]


async def test_one_wrapper_that_buffers_is_enough_to_hold_the_chunks_back() -> None:
    recorder = Recorder()

    class Eager(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            response = await call_next(request)
            assert of(recorder.events, ModelChunkEvent) == []
            return response

    hooks = [Eager(), Replace(TextBlock("clean")), Eager(), recorder]
    await Agent(ScriptedModel("dirty words", chunks=True), hooks=hooks).run("x")
    assert [c.text for c in of(recorder.events, ModelChunkEvent)] == ["clean"]


async def test_of_a_replaced_answer_only_the_new_text_is_shown() -> None:
    recorder = Recorder()
    dirty: list[Any] = [ThinkingBlock("a secret plan"), "hello", ToolCall("c1", "add", {"a": 666})]
    clean = Replace(TextBlock("hello"), ToolCall("c1", "add", {"a": 1}))
    await Agent(ScriptedModel(dirty, "done", chunks=4), tools=[add], hooks=[clean, recorder], max_iterations=1).run("x")
    shown = of(recorder.events, ModelChunkEvent)
    assert "secret" not in "".join(c.text for c in shown)
    assert "666" not in "".join(c.text for c in shown)
    assert "".join(c.text for c in shown if c.kind == "text") == "hello"


async def test_of_an_answer_that_was_refused_nothing_is_shown() -> None:
    class Refuse(Hook):
        buffers = True

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            await call_next(request)
            raise ModelError("the answer may not be shown")

    recorder = Recorder()
    result = await Agent(ScriptedModel("a secret", chunks=True), hooks=[Refuse(), recorder]).run("x")
    assert result.stop_reason == "ModelError"
    assert of(recorder.events, ModelChunkEvent) == []


async def test_of_several_attempts_behind_a_buffer_only_the_last_is_shown() -> None:
    recorder = Recorder()
    model = ScriptedModel("bad", "good one", chunks=True)

    class Again(Hook):
        buffers = True

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            first = await call_next(request)
            return first if first.message.text != "bad" else await call_next(request)

    await Agent(model, hooks=[Again(), recorder]).run("x")
    assert [(c.attempt, c.text) for c in of(recorder.events, ModelChunkEvent)] == [(1, "good"), (1, " one")]


async def test_a_later_attempt_is_numbered_above_all_that_came_before_it() -> None:
    class Fussy(Hook):
        """Tries twice inside the first step, and has the whole Think done again."""

        asked = 0

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            if self.asked == 0:
                await call_next(request)
            return await call_next(request)

        def on_think(self, event: ThinkEvent) -> Retry | None:
            self.asked += 1
            return Retry("again") if self.asked == 1 else None

    shown: list[str] = []
    screen: dict[int, list[str]] = {}
    async for event in Agent(ScriptedModel("a", "b", "c", chunks=True), hooks=[Fussy()]).run("x"):
        if isinstance(event, ModelChunkEvent):
            screen.setdefault(event.attempt, []).append(event.text)
            shown.append(event.text)
        elif isinstance(event, ModelRestartEvent):
            for attempt in [a for a in screen if a < event.attempt]:
                del screen[attempt]
    assert shown == ["a", "b", "c"]
    assert screen == {2: ["c"]}


# -- tools --------------------------------------------------------------------------------------------


async def test_the_body_gets_the_arguments_that_a_wrapper_gave_it() -> None:
    bodies.clear()

    class Limit(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            return await call_next(evolve(call, arguments={"a": min(10, call.arguments["a"])}))

    result = await Agent(ScriptedModel(call("add", a=99), "done"), tools=[add], hooks=[Limit()]).run("x")
    assert results(result) == ["11"]
    assert bodies["add"] == 1


async def test_arguments_of_a_wrapper_are_checked_like_the_models() -> None:
    bodies.clear()

    class Spoil(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            return await call_next(evolve(call, arguments={"a": "many"}))

    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Spoil()]).run("x")
    assert results(result)[0].startswith("Error: ArgumentError: ")
    assert bodies["add"] == 0


async def test_what_a_wrapper_made_of_a_result_is_what_is_recorded_and_reported() -> None:
    class Redact(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            outcome = await call_next(call)
            return evolve(outcome, execution=evolve(outcome.execution, result="[gone]"), content="[gone]")

    recorder, store = Recorder(), MemoryStore()
    agent = Agent(
        ScriptedModel(call("add", a=123456788), "done"), tools=[add], hooks=[Redact(), recorder], checkpointer=store
    )
    result = await agent.run("x", thread_id="t")
    assert results(result) == ["[gone]"]
    assert [e.result for e in result.state.tool_executions] == ["[gone]"]
    assert [e.result for e in of(recorder.events, ToolCompleteEvent)] == ["[gone]"]
    outcomes = [e.body for e in await store.read("t") if isinstance(e.body, Outcome)]
    assert "123456789" not in repr(outcomes)


async def test_a_wrapper_may_enter_a_body_again_and_there_is_one_call_and_one_result() -> None:
    entered: list[int] = []

    @tool
    async def flaky() -> str:
        """Works the second time."""
        entered.append(1)
        if len(entered) == 1:
            raise RetryableToolError("busy")
        return "fetched"

    class Again(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            outcome = await call_next(call)
            return await call_next(call) if outcome.execution.error else outcome

    recorder = Recorder()
    result = await Agent(ScriptedModel(call("flaky"), "done"), tools=[flaky], hooks=[Again(), recorder]).run("x")
    assert len(entered) == 2
    assert results(result) == ["fetched"]
    assert kinds(recorder.events, ToolStartEvent, ToolCompleteEvent) == ["tool_start", "tool_complete"]
    assert len(result.state.tool_executions) == 1


async def test_tool_wrappers_of_one_turn_run_at_the_same_time() -> None:
    both = anyio.Event()
    inside: list[str] = []

    class Meet(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            inside.append(call.id)
            if len(inside) == 2:
                both.set()
            await both.wait()
            return await call_next(call)

    with anyio.fail_after(5):
        result = await Agent(
            ScriptedModel([call("add", a=1), call("add", a=2)], "done"), tools=[add], hooks=[Meet()]
        ).run("x")
    assert results(result) == ["2", "3"]


@pytest.mark.parametrize("how", ASYNC_WAYS)
async def test_a_wrapper_of_a_tool_that_goes_wrong_fails_its_call_and_no_other(how: str) -> None:
    bodies.clear()

    @tool
    async def other() -> str:
        """Another tool."""
        return "fine"

    class Selective(Hook):
        name = "bad"

        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall, run: RunContext) -> Any:
            if call.name == "other":
                return await call_next(call)
            return await broken.locus_wrap_tool_call()  # type: ignore[attr-defined]

    broken = wrong(how, "locus_wrap_tool_call")
    selective = Selective()
    selective.hook_timeout = enough(how)
    recorder = Recorder()
    model = ScriptedModel([call("add", a=1), call("other")], "done")
    result = await Agent(model, tools=[add, other], hooks=[selective, recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    failed, fine = results(result)
    assert failed.startswith("Error: ")
    assert fine == "fine"
    assert bodies["add"] == 0
    assert [(f.hook, f.count) for f in failures(result)] == [("locus_wrap_tool_call", 1)]
    assert {e.tool_name: e.error is None for e in of(recorder.events, ToolCompleteEvent)} == {
        "add": False,
        "other": True,
    }


async def test_an_error_of_the_body_is_not_the_wrappers() -> None:
    @tool
    async def fail() -> str:
        """Fails."""
        raise LookupError("no such thing")

    log: list[str] = []
    result = await Agent(ScriptedModel(call("fail"), "done"), tools=[fail], hooks=[Skin("a", log)]).run("x")
    assert results(result) == ["Error: LookupError: no such thing"]
    assert failures(result, "a") == ()
    assert "a tool out" in log


async def test_a_body_may_ask_a_person_through_its_wrappers() -> None:
    log: list[str] = []
    model = ScriptedModel(call("confirm", what="pay"), "done")
    agent = Agent(model, tools=[confirm], hooks=[Skin("a", log)])
    asked = await agent.run("x")
    assert asked.stop_reason == "Interrupted"
    assert failures(asked, "a") == ()
    result = await agent.resume(asked, "yes")
    assert results(result) == ["pay: yes"]
    assert log.count("a tool in") == 2
    assert log.count("a tool out") == 1


async def test_a_refused_call_never_reaches_the_wrappers() -> None:
    log: list[str] = []

    class Refuse(Hook):
        def on_tool_call(self, call: ToolCall) -> Reject:
            return Reject("no")

    model = ScriptedModel([call("add", a=1), call("nothing"), call("add", a="x")], "done")
    await Agent(model, tools=[add], hooks=[Skin("a", log), Refuse()]).run("x")
    assert "a tool in" not in log


# -- nodes --------------------------------------------------------------------------------------------


async def test_a_node_wrapper_may_look_at_and_change_the_state() -> None:
    class Mark(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState, run: RunContext) -> Any:
            done = await call_next(state)
            return done.with_metadata(f"after {node}", done.iteration)

    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Mark()]).run("x")
    assert dict(result.state.metadata) == {"after think": 1, "after execute": 0, "after terminate": 1}


async def test_a_node_that_a_wrapper_runs_twice_is_paid_for_twice() -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            if node == "think":
                await call_next(state)
            return await call_next(state)

    result = await Agent(ScriptedModel("worse", "better"), hooks=[Twice()]).run("x")
    assert [m.text for m in result.state.messages] == ["x", "better"]
    assert result.usage.total_tokens == 30


async def test_a_node_wrapper_that_continues_from_the_first_result_is_not_charged_for_it_again() -> None:
    class Chain(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            done = await call_next(state)
            return await call_next(done.with_message(Message(Role.USER, "sure?"))) if node == "think" else done

    result = await Agent(ScriptedModel("one", "two"), hooks=[Chain()]).run("x")
    assert [m.text for m in result.state.messages] == ["x", "one", "sure?", "two"]
    assert result.usage.total_tokens == 30


@pytest.mark.parametrize("how", ASYNC_WAYS)
@pytest.mark.parametrize("node", ["think", "execute", "terminate"])
async def test_a_wrapper_of_a_node_that_goes_wrong_ends_the_run_in_good_order(node: str, how: str) -> None:
    class Selective(Hook):
        name = "bad"
        hook_timeout = enough(how)

        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            if node != chosen:
                return await call_next(state)
            return await broken.locus_wrap_node()  # type: ignore[attr-defined]

    chosen, broken, recorder = node, wrong(how, "locus_wrap_node"), Recorder()
    model = ScriptedModel(call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[Selective(), recorder]).run("x")
    assert result.stop_reason == "NodeError"
    assert result.detail.startswith(node)
    assert result.failed
    error = result.error
    assert "'bad'" in f"{error} {getattr(error, '__notes__', '')}"
    assert_valid_history(result.state.messages)
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["NodeError"]
    assert [f.hook for f in failures(result)] == ["locus_wrap_node"]


async def test_a_node_wrapper_that_swallows_every_exception_does_not_swallow_a_question() -> None:
    bodies.clear()

    class Careless(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            for _ in range(2):
                try:
                    return await call_next(state)
                except Exception:  # noqa: BLE001  what careless code does
                    continue
            return state

    turn = [call("add", a=1), call("confirm", what="pay")]
    agent = Agent(ScriptedModel(turn, "done"), tools=[add, confirm], hooks=[Careless()])
    asked = await agent.run("x")
    assert asked.stop_reason == "Interrupted"
    result = await agent.resume(asked, "yes")
    assert results(result) == ["2", "pay: yes"]
    assert bodies["add"] == 1


async def test_a_limit_that_ends_a_run_is_not_undone_by_a_node_wrapper() -> None:
    class Again(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            return await call_next(await call_next(state)) if node == "think" else await call_next(state)

    model = ScriptedModel(call("add", a=1), after="repeat")
    result = await Agent(model, tools=[add], hooks=[Again()], termination=TokenLimit(10), max_iterations=9).run("x")
    assert result.stop_reason == "TokenLimit"
    assert_valid_history(result.state.messages)
    assert len(model.requests) == 1


# -- replay -------------------------------------------------------------------------------------------


class Dies(Hook):
    """The process dies in the review of the first answer; by then the model's step is on record."""

    alive = False

    @hookimpl
    async def locus_review_answer(self) -> Accept:
        if not self.alive:
            raise Crash
        return Accept()


async def test_a_recorded_model_call_is_replayed_without_its_wrappers() -> None:
    class First(Hook):
        @hookimpl
        async def locus_review_answer(self) -> Accept:
            return Accept()

    class Stamp(Hook):
        wrapped = 0

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            self.wrapped += 1
            response = await call_next(request)
            await call_next(request)
            return evolve(response, message=Message(Role.ASSISTANT, f"{response.message.text} (stamped)"))

    store, stamp, dies, recorder = MemoryStore(), Stamp(), Dies(), Recorder()
    model = ScriptedModel("hi", "not used")
    agent = Agent(model, hooks=[stamp, First(), dies, recorder], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    dies.alive = True
    recorder.events.clear()
    result = await agent.resume("t")
    assert (result.message, result.usage.total_tokens) == ("hi (stamped)", 30)
    assert (stamp.wrapped, len(model.requests)) == (1, 2)
    assert of(recorder.events, ModelRestartEvent) == []
    assert [e.replayed for e in of(recorder.events, ModelCompleteEvent)] == [True]


async def test_a_recorded_tool_call_is_replayed_without_its_wrappers() -> None:
    bodies.clear()
    log: list[str] = []

    class DiesAfterAdd(Hook):
        alive = False

        def on_tool_start(self, event: ToolStartEvent) -> None:
            if event.tool_name == "confirm" and not self.alive:
                raise Crash

        def on_tool_complete(self, event: ToolCompleteEvent) -> None:
            """Listeners get an event for each write."""

    dies = DiesAfterAdd()
    agent = Agent(
        ScriptedModel([call("add", a=1), call("confirm", what="pay")], "done"),
        tools=[add, confirm],
        hooks=[Skin("a", log), dies],
        checkpointer=MemoryStore(),
        tool_execution="sequential",
    )
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    assert log.count("a tool in") == 1
    dies.alive = True
    asked = await agent.resume("t")
    assert asked.stop_reason == "Interrupted"
    result = await agent.resume("t", "yes")
    assert results(result) == ["2", "pay: yes"]
    assert bodies["add"] == 1
    assert log.count("a tool in") == 3  # add once, confirm twice


async def test_a_wrapper_may_cancel_through_the_run() -> None:
    class Stop(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall, run: RunContext) -> Any:
            outcome = await call_next(call)
            run.cancel("seen enough")
            return outcome

        def on_terminate(self, event: TerminateEvent) -> Cancel:
            return Cancel("too late")

    model = ScriptedModel(call("add", a=1), "never")
    run = Agent(model, tools=[add], hooks=[Stop()]).run("x")
    events = await collect(run)
    assert results(run.result) == ["2"]
    assert run.result.stop_reason == "Cancelled: seen enough"
    assert kinds(events)[-1] == "terminate"


async def test_a_response_may_come_from_somewhere_else_entirely() -> None:
    class Cached(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            return ModelResponse(message=Message(Role.ASSISTANT, "cached"), usage=Usage(prompt_tokens=99))

    recorder, model = Recorder(), ScriptedModel()
    result = await Agent(model, hooks=[Cached(), recorder]).run("x")
    assert (result.message, result.usage.total_tokens) == ("cached", 0)
    assert of(recorder.events, ModelCompleteEvent)[0].attempts == 0


async def test_a_node_that_a_wrapper_throws_away_is_still_paid_for() -> None:
    class Discard(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            done = await call_next(state)
            if node == "think":
                raise LookupError("not good enough")
            return done

    result = await Agent(ScriptedModel("hi"), hooks=[Discard()]).run("x")
    assert (result.stop_reason, result.usage.total_tokens) == ("NodeError", 15)
    assert [m.text for m in result.state.messages] == ["x"]
