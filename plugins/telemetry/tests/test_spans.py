"""The spans of a run: their tree, their names and attributes, and how each way to end a run ends them."""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio
import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

import locus_plugin_timetravel as timetravel
from locus import Agent, Hook, Message, ModelError, ModelSettings, Role, RunStartEvent, ToolContext
from locus.core.messages import Usage
from locus.hooks.builtin import TelemetryHook as Builtin
from locus.journal import MemoryStore
from locus.models import ModelRequest, ModelResponse, Price
from locus.plugin import Cancel, Reject, hookimpl
from locus_plugin_telemetry import TelemetryHook, TelemetrySettings, conventions
from locus_plugin_telemetry.failures import FailureLog
from locus_plugin_telemetry.hook import METADATA
from locus_plugin_telemetry.segment import Kit, Segment
from locus_plugin_telemetry.spans import Open
from locus_testkit import ScriptedModel, call

from .kit import Traced, about, add, tree

pytestmark = pytest.mark.anyio


@pytest.fixture
def traced() -> Traced:
    return Traced()


def script(**options: Any) -> ScriptedModel:
    return ScriptedModel(call("add", a=1, b=2), "It is 3.", **options)


# -- the tree -------------------------------------------------------------------------------------


async def test_a_run_has_its_iterations_and_those_their_calls(traced: Traced) -> None:
    model = script(name="openai:gpt-9", price=Price(prompt=1.0, completion=1.0))
    result = await traced.agent(model).run("?", thread_id="t")
    assert tree(traced.spans) == [
        [
            "invoke_agent calc",
            ["iteration", ["chat gpt-9"], ["execute_tool add"]],
            ["iteration", ["chat gpt-9"]],
        ]
    ]
    run = traced.one("invoke_agent calc")
    assert about(run) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-9",
        "gen_ai.agent.name": "calc",
        "gen_ai.conversation.id": "t",
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 10,
        "locus.run_id": result.run_id,
        "locus.segment": 0,
        "locus.resumed": False,
        "locus.stop_reason": "NoToolCalls",
        "locus.iterations": 2,
        "locus.tool_calls": 1,
        "locus.confidence": 0.0,
        "locus.cost_usd": result.cost,
    }
    chat, tool = traced.spans_named("chat gpt-9")[0], traced.one("execute_tool add")
    assert about(chat) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-9",
        "gen_ai.response.model": "gpt-9",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "locus.cost_usd": pytest.approx(15e-6),
    }
    assert about(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1_1",
    }
    assert [about(span) for span in traced.spans_named("iteration")] == [{"locus.iteration": 1}, {"locus.iteration": 2}]
    assert (run.kind, chat.kind, tool.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    assert {span.status.status_code for span in traced.spans} == {StatusCode.UNSET}
    scope = run.instrumentation_scope
    assert scope is not None
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"


async def test_every_span_lies_within_its_parent(traced: Traced) -> None:
    await traced.agent(ScriptedModel([call("add", a=1, b=2), call("fail", why="no")], "3.")).run("?")
    by_id = {span.context.span_id: span for span in traced.spans}
    for span in traced.spans:
        if span.parent is not None:
            parent = by_id[span.parent.span_id]
            assert span.start_time is not None
            assert span.end_time is not None
            assert (parent.start_time or 0) <= span.start_time <= span.end_time <= (parent.end_time or 0)


@pytest.mark.parametrize("how", ["keyword", "settings", "plugins", "hooks", "builtin"])
async def test_every_way_to_enable_it_is_the_same(traced: Traced, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", traced.tracer)  # what the program has set
    options: dict[str, dict[str, Any]] = {
        "keyword": {"telemetry": True},
        "settings": {"telemetry": TelemetrySettings()},
        "plugins": {"plugins": ["telemetry"]},
        "hooks": {"hooks": [TelemetryHook()]},
        "builtin": {"hooks": [Builtin(tracer_provider=traced.tracer)]},
    }
    await Agent(script(), tools=[add], **options[how]).run("?")
    assert len(traced.spans) == 6


async def test_no_provider_is_set_and_without_one_nothing_is_traced() -> None:
    result = await Agent(script(), tools=[add], telemetry=True).run("?")
    assert result.text == "It is 3."
    assert trace._TRACER_PROVIDER is None


def test_the_names_of_the_conventions_are_those_that_they_publish() -> None:
    modules = (gen_ai_attributes, error_attributes, gen_ai_metrics)
    published = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    for name, value in vars(conventions).items():
        told = value[0] if isinstance(value, tuple) else value
        if isinstance(told, str) and name.isupper() and told.startswith(("gen_ai.", "error.")):
            assert told in published, name
    operations = {member.value for member in gen_ai_attributes.GenAiOperationNameValues}
    assert {conventions.INVOKE_AGENT, conventions.CHAT, conventions.EXECUTE_TOOL} <= operations
    providers = {member.value for member in gen_ai_attributes.GenAiProviderNameValues}
    assert set(conventions.PROVIDERS.values()) <= providers


async def test_what_the_request_asked_for_is_on_its_span(traced: Traced) -> None:
    settings = ModelSettings(temperature=0.5, max_tokens=7, seed=3, stop=("x",))
    agent = traced.agent(ScriptedModel('{"n": 1}'), model_settings=settings)
    await agent.run("?", output_schema=dict[str, int])
    found = about(traced.one("chat model"))
    assert found["gen_ai.request.temperature"] == 0.5
    assert (found["gen_ai.request.max_tokens"], found["gen_ai.request.seed"]) == (7, 3)
    assert found["gen_ai.request.stop_sequences"] == ("x",)
    assert found["gen_ai.output.type"] == "json"


async def test_tokens_of_the_cache_and_of_reasoning_are_distinguished(traced: Traced) -> None:
    usage = Usage(prompt_tokens=100, completion_tokens=20, cached_tokens=60, cache_write_tokens=30, reasoning_tokens=9)
    await traced.agent(ScriptedModel("Yes.", usage=lambda *_: usage, name="mistral:large")).run("?")
    found = about(traced.one("chat large"))
    assert found["gen_ai.usage.cache_read.input_tokens"] == 60
    assert found["gen_ai.usage.cache_creation.input_tokens"] == 30
    assert found["gen_ai.usage.reasoning.output_tokens"] == 9
    assert found["gen_ai.provider.name"] == "mistral_ai"


# -- context --------------------------------------------------------------------------------------


async def test_a_body_runs_in_its_span_also_in_a_thread_and_beside_others(traced: Traced) -> None:
    tracer = traced.tracer.get_tracer("tool")

    async def on_the_loop(n: int) -> str:
        """Async."""
        await anyio.lowlevel.checkpoint()
        with tracer.start_as_current_span(f"async {n}"):
            return str(baggage.get_baggage("tenant"))

    def in_a_thread(n: int) -> str:
        """Sync."""
        with tracer.start_as_current_span(f"sync {n}"):
            return f"{baggage.get_baggage('tenant')} {threading.current_thread() is threading.main_thread()}"

    calls = [call("on_the_loop", n=1), call("in_a_thread", n=2), call("on_the_loop", n=3), call("in_a_thread", n=4)]
    agent = traced.agent(ScriptedModel(calls, "Done.", ids="same"), tools=[on_the_loop, in_a_thread])
    token = otel_context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        result = await agent.run("?")
    finally:
        otel_context.detach(token)
    assert [e.result for e in result.state.tool_executions] == ["acme", "acme False", "acme", "acme False"]
    (first, *_), *_ = (branches for _, *branches in tree(traced.spans))
    inner = sorted((name, *(child[0] for child in below)) for name, *below in first[1:] if name != "chat model")
    assert inner == [
        ("execute_tool in_a_thread", "sync 2"),
        ("execute_tool in_a_thread", "sync 4"),
        ("execute_tool on_the_loop", "async 1"),
        ("execute_tool on_the_loop", "async 3"),
    ]


async def test_a_run_is_part_of_the_trace_that_it_is_called_in_and_leaves_it_alone(traced: Traced) -> None:
    tracer = traced.tracer.get_tracer("program")
    with tracer.start_as_current_span("request") as request:
        await traced.agent(script()).run("?")
        assert trace.get_current_span() is request
        async for _ in traced.agent(script()).run("?"):
            assert trace.get_current_span() is request
    assert [name for name, *_ in tree(traced.spans)[0][1:]] == ["invoke_agent calc", "invoke_agent calc"]


async def test_a_child_run_hangs_below_the_call_that_ran_it(traced: Traced) -> None:
    expert = traced.agent(ScriptedModel("Forty-two."), tools=[], name="expert")

    async def consult(ctx: ToolContext[Any]) -> str:
        """Ask an expert."""
        return str((await ctx.run_child(expert, "?")).text)

    await traced.agent(ScriptedModel(call("consult"), "It is 42."), tools=[consult]).run("?")
    (_, first, _), *_ = tree(traced.spans)
    assert first == [
        "iteration",
        ["chat model"],
        ["execute_tool consult", ["invoke_agent expert", ["iteration", ["chat model"]]]],
    ]


async def test_parallel_runs_of_one_agent_have_traces_of_their_own(traced: Traced) -> None:
    async def slow(n: int) -> str:
        """Wait for the others."""
        waiting.append(n)
        while len(waiting) < 5:
            await anyio.lowlevel.checkpoint()
        return "done"

    waiting: list[int] = []
    agent = traced.agent(ScriptedModel(script=lambda _: [call("slow", n=1), "Done."]), tools=[slow])
    async with anyio.create_task_group() as group:
        for n in range(5):
            group.start_soon(agent.run, f"{n}")
    traces = {span.context.trace_id for span in traced.spans}
    assert len(traces) == 5
    for one in traces:
        own = tree([span for span in traced.spans if span.context.trace_id == one])
        first, second = ["iteration", ["chat model"], ["execute_tool slow"]], ["iteration", ["chat model"]]
        assert own == [["invoke_agent calc", first, second]]


async def test_a_plugins_own_call_of_a_model_has_a_span_of_what_it_took(traced: Traced) -> None:
    class Judge(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: Any, run: Any) -> Any:
            if node == "execute":
                await run.call_model(ModelRequest(messages=state.messages[:1]), model=other, purpose="judge")
            return await call_next(state)

    other = ScriptedModel("Fine.", name="anthropic:haiku")
    await traced.agent(script(), hooks=[Judge()]).run("?")
    judged = traced.one("chat haiku")
    assert about(judged)["locus.purpose"] == "judge"
    assert about(judged)["gen_ai.provider.name"] == "anthropic"
    assert judged.parent is not None
    assert judged.parent.span_id == traced.spans_named("iteration")[0].context.span_id


# -- what goes wrong ------------------------------------------------------------------------------


async def test_a_failed_call_has_the_class_of_its_error_and_the_run_continues(traced: Traced) -> None:
    await traced.agent(ScriptedModel(call("fail", why="ann@example.com"), "Well.")).run("?")
    failed = traced.one("execute_tool fail")
    assert failed.status.status_code is StatusCode.ERROR
    assert about(failed)["error.type"] == "ValueError"
    assert failed.status.description is None
    assert failed.events == ()
    assert traced.one("invoke_agent calc").status.status_code is StatusCode.UNSET


async def test_a_model_that_fails_ends_chat_and_run_in_error(traced: Traced) -> None:
    await traced.agent(ScriptedModel(ModelError("overloaded"))).run("?")
    chat, run = traced.one("chat model"), traced.one("invoke_agent calc")
    assert chat.status.status_code is run.status.status_code is StatusCode.ERROR
    assert about(chat)["error.type"] == about(run)["error.type"] == "ModelError"
    assert about(run)["locus.stop_reason"] == "ModelError"


async def test_an_answer_that_was_cut_ends_the_run_in_error(traced: Traced) -> None:
    cut = ModelResponse(message=Message(Role.ASSISTANT, "So far"), stop_reason="length")
    await traced.agent(ScriptedModel(cut)).run("?")
    run = traced.one("invoke_agent calc")
    assert (run.status.status_code, about(run)["error.type"]) == (StatusCode.ERROR, "Truncated")


@pytest.mark.parametrize("content", [False, True])
async def test_a_call_that_was_refused_has_a_span_that_says_that_it_never_started(
    traced: Traced, content: bool
) -> None:
    class Refusing(Hook):
        def on_tool_call(self, asked: Any) -> Any:
            return Reject("no") if asked.name == "fail" else None

    model = ScriptedModel([call("fail", why="x"), call("my secret\nname"), call("add", a="x", b=1)], "Well.")
    await traced.agent(model, content=content, hooks=[Refusing()]).run("?")
    found = {span.name: about(span) for span in traced.spans if span.name.startswith("execute_tool")}
    assert {name: (a["error.type"], a["locus.tool.started"]) for name, a in found.items()} == {
        "execute_tool fail": ("Rejected", False),
        "execute_tool _OTHER": ("UnknownTool", False),
        "execute_tool add": ("ArgumentError", False),
    }


async def test_retries_inside_are_one_call_and_noted(traced: Traced) -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            try:
                return await call_next(request)
            except ModelError:
                return await call_next(request)

    await traced.agent(ScriptedModel(ModelError("busy"), "Yes."), hooks=[Twice()]).run("?")
    chat = traced.one("chat model")
    assert about(chat)["locus.attempts"] == 2
    assert [event.name for event in chat.events] == ["locus.model_restart"]
    assert chat.status.status_code is StatusCode.UNSET


async def test_retries_outside_are_a_span_each_and_only_the_failed_one_is_an_error(traced: Traced) -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            try:
                return await call_next(request)
            except ModelError:
                return await call_next(request)

    agent: Agent[Any, Any] = Agent(ScriptedModel(ModelError("busy"), "Yes."), hooks=[Twice(), traced.hook()])
    await agent.run("?")
    assert [s.status.status_code for s in traced.spans_named("chat model")] == [StatusCode.ERROR, StatusCode.UNSET]


async def test_a_cancelled_run_ends_every_span_as_cancelled(traced: Traced) -> None:
    async def wait() -> str:
        """Wait."""
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.CancelScope() as scope:
        await traced.agent(ScriptedModel([call("wait"), call("wait")]), tools=[wait]).run("?")
    ended = {span.name: about(span).get("error.type") for span in traced.spans}
    assert len(traced.spans) == 5
    assert ended == {
        "invoke_agent calc": "cancelled",
        "iteration": "cancelled",
        "chat model": None,
        "execute_tool wait": "cancelled",
    }


async def test_a_run_that_a_hook_cancels_is_cancelled_and_its_calls_are_not(traced: Traced) -> None:
    class Stopping(Hook):
        def on_tool_complete(self, event: Any) -> Cancel:
            return Cancel("enough of ann@example.com")

    await traced.agent(script(), hooks=[Stopping()]).run("?")
    run = traced.one("invoke_agent calc")
    assert about(run)["error.type"] == "cancelled"
    assert about(run)["locus.stop_reason"] == "Cancelled"
    assert traced.one("execute_tool add").status.status_code is StatusCode.UNSET


async def test_a_run_that_is_dropped_while_the_model_answers_leaves_no_span_open(traced: Traced) -> None:
    started: list[int] = []

    class Counting(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            started.append(1)

    async def never(request: ModelRequest) -> str:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    traced.tracer.add_span_processor(Counting())
    with anyio.CancelScope() as scope:
        await traced.agent(ScriptedModel(never)).run("?")
    assert len(started) == len(traced.spans) == 3
    assert about(traced.one("chat model"))["error.type"] == "cancelled"


class _Broken(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on_end")


async def test_a_provider_that_fails_harms_no_run_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    provider = TracerProvider()
    provider.add_span_processor(_Broken())
    hook = TelemetryHook(tracer_provider=provider, content=True)
    result = await Agent(script(), tools=[add], hooks=[hook]).run("?")
    assert result.text == "It is 3."
    assert hook.failures.failed > 1
    assert [r.getMessage() for r in caplog.records if r.name == "locus.telemetry"] == [
        "telemetry failed, and is tried again: RuntimeError: on_start"
    ]
    (plugin,) = result.reports["plugins"].plugins
    assert plugin.failures == ()


async def test_an_attempt_that_somebody_gives_up_is_cancelled_and_the_next_one_is_not(traced: Traced) -> None:
    class Impatient(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            with anyio.CancelScope() as patience:
                scopes.append(patience)
                return await call_next(request)
            return await call_next(request)

    async def never(request: ModelRequest) -> str:
        scopes[0].cancel()
        await anyio.sleep_forever()
        raise AssertionError

    scopes: list[anyio.CancelScope] = []
    agent: Agent[Any, Any] = Agent(ScriptedModel(never, "Yes."), hooks=[Impatient(), traced.hook()])
    assert (await agent.run("?")).text == "Yes."
    assert [about(s).get("error.type") for s in traced.spans_named("chat model")] == ["cancelled", None]


async def test_calls_with_one_id_are_not_taken_for_each_other(traced: Traced) -> None:
    second_is_told = anyio.Event()

    class Telling(Hook):
        def on_tool_complete(self, event: Any) -> None:
            second_is_told.set()

    async def work(n: int) -> str:
        """The first ends when the second was told of, and fails."""
        trace.get_current_span().set_attribute("n", n)
        if n == 1:
            await second_is_told.wait()
            raise ValueError("late")
        return "done"

    model = ScriptedModel([call("work", n=1), call("work", n=2)], "Done.", ids="same")
    await traced.agent(model, tools=[work], hooks=[Telling()]).run("?")
    ended = {about(s)["n"]: about(s).get("error.type") for s in traced.spans_named("execute_tool work")}
    assert ended == {1: "ValueError", 2: None}


def test_a_segment_that_is_dropped_without_a_word_leaves_no_span_open(traced: Traced) -> None:
    kit = Kit(traced.tracer.get_tracer("test"), FailureLog())
    segment = Segment(kit, RunStartEvent(model="a:b"), Usage(), ())
    segment.enter(0)
    segment.begin_chat({})
    segment.begin_tool(call("add"))
    del segment
    assert {span.name: about(span)["error.type"] for span in traced.spans} == {
        "invoke_agent": "cancelled",
        "iteration": "cancelled",
        "chat b": "cancelled",
        "execute_tool add": "cancelled",
    }


def test_a_span_ends_when_its_work_did_and_not_when_that_is_reported(traced: Traced) -> None:
    span = Open(traced.tracer.get_tracer("test"), "work", otel_context.get_current(), {}, FailureLog())
    span.over()
    ended = span.ended
    while time.time_ns() == ended:
        pass
    span.close()
    assert traced.one("work").end_time == ended


# -- questions, crashes, replays -------------------------------------------------------------------


def ask(ctx: ToolContext[Any]) -> str:
    """Ask."""
    return str(ctx.interrupt("Sure?"))


async def test_a_question_ends_the_trace_well_and_the_resumed_one_links_to_it(traced: Traced) -> None:
    store = MemoryStore()
    options: dict[str, Any] = {"tools": [ask], "checkpointer": store}
    model = ScriptedModel(call("ask"), "Good.")
    await traced.agent(model, **options).run("?", thread_id="t")
    first = traced.one("invoke_agent calc")
    assert about(first)["locus.stop_reason"] == "Interrupted"
    assert [event.name for event in first.events] == ["locus.interrupt"]
    assert {s.name: s.status.status_code for s in traced.spans} == {
        "invoke_agent calc": StatusCode.OK,
        "iteration": StatusCode.OK,
        "chat model": StatusCode.UNSET,
        "execute_tool ask": StatusCode.OK,
    }
    assert about(traced.one("execute_tool ask"))["locus.interrupted"] is True

    # Another process goes on.
    again = Traced()
    await again.agent(model, **options).resume("t", "yes")
    second = again.one("invoke_agent calc")
    (link,) = second.links
    assert (link.context.trace_id, link.context.span_id) == (first.context.trace_id, first.context.span_id)
    assert dict(link.attributes or {}) == {"locus.link": "resumed"}
    assert second.context.trace_id != first.context.trace_id
    assert tree(again.spans) == [
        ["invoke_agent calc", ["iteration", ["execute_tool ask"]], ["iteration", ["chat model"]]]
    ]
    assert about(second)["gen_ai.usage.input_tokens"] == 10
    assert about(second)["locus.segment"] == 1


async def test_another_turn_of_the_thread_links_to_nothing(traced: Traced) -> None:
    agent = traced.agent(ScriptedModel("One.", "Two."), checkpointer=MemoryStore())
    await agent.run("?", thread_id="t")
    result = await agent.run("?", thread_id="t")
    assert [span.links for span in traced.spans_named("invoke_agent calc")] == [(), ()]
    assert result.state.metadata[METADATA]["run_id"] == result.run_id


class _Dies(Hook):
    """Stands for a process that dies in Think, after its model has answered or before."""

    def __init__(self, event: str, scope: anyio.CancelScope) -> None:
        async def die(event: Any) -> None:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        setattr(self, f"on_{event}", die)


@pytest.mark.parametrize("event", ["iteration", "think", "tool_start", "tool_complete"])
async def test_wherever_a_run_breaks_off_the_resumed_one_links_and_traces_nothing_twice(
    traced: Traced, event: str
) -> None:
    store, model = MemoryStore(), script()
    with anyio.CancelScope() as scope:
        await traced.agent(model, checkpointer=store, hooks=[_Dies(event, scope)]).run("?", thread_id="t")
    first = traced.one("invoke_agent calc")
    again = Traced()
    result = await again.agent(model, checkpointer=store).resume("t")
    assert result.text == "It is 3."
    links = [link.context.span_id for link in again.one("invoke_agent calc").links]
    # Before its first Think nothing of a run is on record but its prompt.
    assert links == ([] if event == "iteration" else [first.context.span_id])
    chats = len(traced.spans_named("chat model")) + len(again.spans_named("chat model"))
    assert chats == len(model.requests) == 2


async def test_a_call_that_is_on_record_is_not_traced_again(traced: Traced) -> None:
    options: dict[str, Any] = {"tools": [ask, add], "checkpointer": MemoryStore()}
    model = ScriptedModel([call("add", a=1, b=2), call("ask")], "Good.")
    await traced.agent(model, **options).run("?", thread_id="t")
    again = Traced()
    await again.agent(model, **options).resume("t", "yes")
    assert len(traced.spans_named("execute_tool add")) == 1
    assert again.spans_named("execute_tool add") == []


async def test_a_replay_is_as_recorded_and_traces_nothing(traced: Traced) -> None:
    store = MemoryStore()
    agent = traced.agent(ScriptedModel(call("ask"), "Good."), tools=[ask], checkpointer=store)
    await agent.run("?", thread_id="t")
    await agent.resume("t", "yes")
    traced.spans_in.clear()
    replay = await timetravel.replay(Traced().agent(ScriptedModel(), tools=[ask], checkpointer=store), "t")
    assert replay.ok, replay.difference
    assert traced.spans == []


async def test_without_links_nothing_is_kept(traced: Traced) -> None:
    agent: Agent[Any, Any] = Agent(script(), tools=[add], telemetry=traced.settings(link=False))
    result = await agent.run("?")
    assert METADATA not in result.state.metadata
