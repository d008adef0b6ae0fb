"""What the texts of a run leave on its spans: nothing, or what was asked for, and that filtered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from locus import Agent, ConfigError, Hook, Message, ModelError, Role, ToolCall
from locus.core.messages import MediaBlock, RawBlock, TextBlock, ThinkingBlock, ToolResult
from locus.plugin import hookimpl
from locus_plugin_telemetry import TelemetrySettings
from locus_plugin_telemetry.content import Content, is_content_wanted, news
from locus_testkit import ScriptedModel, call

from .kit import Traced, about

pytestmark = pytest.mark.anyio

WORDS = ("SYSTEM", "PROMPT", "ARGUMENT", "RESULT", "ANSWER", "FAILURE")


def find(query: str) -> str:
    """Find."""
    return "RESULT"


def break_down() -> str:
    """Break."""
    raise ValueError("FAILURE")


def script() -> ScriptedModel:
    return ScriptedModel([call("find", query="ARGUMENT"), call("break_down")], "ANSWER")


def everything(traced: Traced) -> str:
    return "".join(span.to_json() for span in traced.spans)


@pytest.mark.parametrize("content", [False, True])
async def test_content_is_on_the_spans_only_when_asked_for(content: bool) -> None:
    traced = Traced()
    agent = traced.agent(script(), content=content, tools=[find, break_down], system_prompt="SYSTEM")
    await agent.run("PROMPT")
    text = everything(traced)
    assert [word in text for word in WORDS] == [content] * len(WORDS)


async def test_messages_are_written_as_the_conventions_write_them() -> None:
    traced = Traced()
    agent = traced.agent(script(), content=True, tools=[find, break_down], system_prompt="SYSTEM")
    await agent.run("PROMPT")
    run, (first, second) = traced.one("invoke_agent calc"), traced.spans_named("chat model")
    read = {name: json.loads(value) for name, value in about(run).items() if str(value).startswith("[")}
    user = {"role": "user", "parts": [{"type": "text", "content": "PROMPT"}]}
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "ANSWER"}], "finish_reason": "stop"}
    assert read == {
        "gen_ai.system_instructions": [{"type": "text", "content": "SYSTEM"}],
        "gen_ai.input.messages": [user],
        "gen_ai.output.messages": [answer],
    }
    assert json.loads(about(first)["gen_ai.input.messages"]) == [user]
    (asked,) = json.loads(about(first)["gen_ai.output.messages"])
    assert asked["finish_reason"] == "tool_call"
    assert asked["parts"][0] == {
        "type": "tool_call",
        "id": "call_1_1",
        "name": "find",
        "arguments": {"query": "ARGUMENT"},
    }
    # Of a later call what is new, so that a trace grows as the run does.
    told = json.loads(about(second)["gen_ai.input.messages"])
    assert [(m["role"], m["parts"][0]["response"]) for m in told] == [
        ("tool", "RESULT"),
        ("tool", "Error: ValueError: FAILURE"),
    ]
    assert json.loads(about(second)["gen_ai.output.messages"]) == [answer]
    tool = about(traced.one("execute_tool find"))
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"query": "ARGUMENT"}
    assert tool["gen_ai.tool.call.result"] == "RESULT"
    assert traced.one("execute_tool break_down").status.description == "ValueError: FAILURE"


@pytest.mark.parametrize("first", [True, False])
async def test_what_others_cut_out_is_on_no_span_wherever_this_plugin_is(first: bool) -> None:
    class Cutting(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Any) -> str:
            return "[cut]"

        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            outcome = await call_next(evolve(call, arguments={"query": "ARGUMENT and a key"}))
            execution = evolve(outcome.execution, result="[cut]", arguments=call.arguments)
            return evolve(outcome, content="[cut]", execution=execution)

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            response = await call_next(evolve(request, messages=[Message(Role.USER, "SYSTEM")]))
            message = response.message
            if message.tool_calls:
                cut = [evolve(message.tool_calls[0], arguments={"query": "[cut]"})]
                return evolve(response, message=evolve(message, content=cut))
            return evolve(response, message=Message(Role.ASSISTANT, "[cut]"))

    traced = Traced()
    hooks = [traced.hook(content=True), Cutting()]
    from_script = ScriptedModel(call("find", query="ARGUMENT"), "ANSWER")
    agent: Agent[Any, Any] = Agent(from_script, tools=[find], hooks=hooks if first else hooks[::-1])
    await agent.run("PROMPT")
    text = everything(traced)
    assert text.count("[cut]") >= 6
    assert [word for word in WORDS if word in text] == []


async def test_messages_of_errors_are_content() -> None:
    for content in (False, True):
        traced = Traced()
        await traced.agent(ScriptedModel(ModelError("FAILURE")), content=content).run("?")
        descriptions = [traced.one(name).status.description for name in ("chat model", "invoke_agent calc")]
        assert descriptions == (["FAILURE", "ModelError: FAILURE"] if content else [None, None])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *(("true", True), ("True", True), ("1", True), ("SPAN_ONLY", True), ("span_and_event", True)),
        *(("false", False), ("", False), ("no_content", False), ("event_only", False)),
    ],
)
def test_the_environment_variable_decides_where_the_setting_does_not(
    value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    assert is_content_wanted(setting=None) is wanted
    assert is_content_wanted(setting=False) is False
    assert is_content_wanted(setting=True) is True


async def test_the_environment_variable_is_heard_by_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    traced = Traced()
    await traced.agent(script(), tools=[find, break_down]).run("PROMPT")
    assert "PROMPT" in everything(traced)


def test_long_texts_are_cut_wherever_they_are() -> None:
    long = "x" * 50
    cut = "x" * 10 + "... (50 characters)"
    content = Content(10)
    call_ = ToolCall("1", "t", {"a": long, "b": [long, {"c": long}]})
    (told,) = json.loads(content.messages([Message(Role.ASSISTANT, [TextBlock(long), ThinkingBlock(long), call_])]))
    assert told["parts"] == [
        {"type": "text", "content": cut},
        {"type": "reasoning", "content": cut},
        {"type": "tool_call", "id": "1", "name": "t", "arguments": {"a": cut, "b": [cut, {"c": cut}]}},
    ]
    assert content.text(long) == cut
    assert len(content.arguments({"a": long})) < 40
    (answer,) = json.loads(content.answer(long, long, (call_,), "stop"))
    assert [part.get("content") for part in answer["parts"]] == [cut, cut, None]


def test_no_block_is_unknown_and_no_bytes_are_written() -> None:
    result = ToolResult("1", (TextBlock("a"), MediaBlock("image", "image/png", data=b"bytes")))
    malformed = ToolCall("2", "t", malformed="{")
    raw = RawBlock("acme", {"x": 1})
    (told,) = json.loads(Content(100).messages([Message(Role.TOOL, [result, malformed, raw])]))
    assert told["parts"] == [
        {
            "type": "tool_call_response",
            "id": "1",
            "response": [
                {"type": "text", "content": "a"},
                {"type": "media", "modality": "image", "mime_type": "image/png"},
            ],
        },
        {"type": "tool_call", "id": "2", "name": "t", "arguments": "{"},
        {"type": "other"},
    ]


def test_news_are_what_follows_the_last_answer() -> None:
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER, Role.USER]
    messages = tuple(Message(role, str(n)) for n, role in enumerate(roles))
    assert [m.text for m in news(messages)] == ["3", "4"]
    assert [m.text for m in news(messages[:2])] == ["1"]


@pytest.mark.parametrize("wrong", [{"max_chars": 0}, {"tracer_provider": 5}, {"content": "yes"}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Traced().agent(ScriptedModel(), plugins=[], config=None).__class__(ScriptedModel(), telemetry=wrong)


def test_settings_have_the_defaults_of_the_document() -> None:
    assert TelemetrySettings() == TelemetrySettings(content=None, max_chars=10_000, metrics=True, link=True)
