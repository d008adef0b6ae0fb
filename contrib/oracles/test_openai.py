"""The SDK of OpenAI reads what the tests answer as the provider reads it, and knows every field that is sent."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import anyio
import openai
import pytest
from openai.types import responses as items
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from plugins.openai.tests.emulator import Emulator
from plugins.openai.tests.kit import KEY, model_at
from pydantic import TypeAdapter

from locus.core.frozen import thaw
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models import Chunk, ModelRequest, ModelResponse, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_testkit import call

LOOK = ToolSpec(
    name="look",
    description="Look something up.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)
TURNS: list[list[Any]] = [
    [TextBlock("pong")],
    [TextBlock("żółw \U0001f40d " * 40)],
    [call("look", q="a")],
    [TextBlock("Both."), call("look", q="a"), call("look", q='"b"\n')],
]
QUESTION = (Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "Say pong."))


def asked(model: Any, request: ModelRequest, *, stream: bool) -> ModelResponse:
    async def ask() -> ModelResponse:
        async def take(chunk: Chunk) -> None:
            pass

        return await model.complete(request, take if stream else None)  # type: ignore[no-any-return]

    return anyio.run(ask)


def ours(form: str, turn: list[Any], *, stream: bool) -> tuple[Any, ...]:
    emulator = Emulator(form, turn)
    with emulator.server as server:
        request = ModelRequest(messages=QUESTION, tools=(LOOK,))
        got = asked(model_at(f"{server.url}/v1", form), request, stream=stream)
    calls = [(each.name, thaw(each.arguments)) for each in got.tool_calls]
    return got.message.text, calls, (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.cached_tokens)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("turn", TURNS, ids=["text", "long", "call", "calls"])
def test_chat_is_read_as_the_sdk_reads_it(turn: list[Any], *, stream: bool) -> None:
    emulator = Emulator("chat", turn)
    with emulator.server as server:
        client = openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)
        messages: Any = [{"role": "user", "content": "Say pong."}]
        if stream:
            with client.chat.completions.stream(
                model="gpt-test", messages=messages, stream_options={"include_usage": True}
            ) as events:
                for event in events:
                    if event.type == "chunk":
                        TypeAdapter(ChatCompletionChunk).validate_python(event.chunk.to_dict())
                done: Any = events.get_final_completion()
        else:
            done = client.chat.completions.create(model="gpt-test", messages=messages)
            ChatCompletion.model_validate(done.to_dict(), strict=True)
    said, usage = done.choices[0].message, done.usage
    calls = [(each.function.name, json.loads(each.function.arguments)) for each in said.tool_calls or ()]
    cached = usage.prompt_tokens_details.cached_tokens
    theirs = (said.content or "", calls, (usage.prompt_tokens, usage.completion_tokens, cached))
    assert ours("chat", turn, stream=stream) == theirs


@pytest.mark.parametrize("turn", TURNS, ids=["text", "long", "call", "calls"])
def test_responses_are_read_as_the_sdk_reads_them(turn: list[Any]) -> None:
    emulator = Emulator("responses", turn)
    with emulator.server as server:
        client = openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)
        done = client.responses.create(model="gpt-test", input="Say pong.")
    calls = [
        (each.name, json.loads(each.arguments))
        for each in done.output
        if isinstance(each, items.ResponseFunctionToolCall)
    ]
    assert done.usage is not None
    cached = done.usage.input_tokens_details.cached_tokens
    theirs = (done.output_text, calls, (done.usage.input_tokens, done.usage.output_tokens, cached))
    assert ours("responses", turn, stream=False) == theirs
    assert ours("responses", turn, stream=True) == theirs


#: A conversation with everything that is sent.
MESSAGES = (
    *QUESTION,
    Message(
        Role.ASSISTANT,
        (ThinkingBlock("I look.", signature="c2ln"), TextBlock("I look."), ToolCall("c1", "look", {"q": "a"})),
    ),
    Message(Role.TOOL, ToolResult("c1", "found", False, "look")),
    Message(Role.ASSISTANT, "pong"),
    Message(Role.USER, "Again."),
)
REQUEST = ModelRequest(
    messages=MESSAGES,
    tools=(LOOK,),
    settings=ModelSettings(temperature=0.5, max_tokens=100, tool_choice="look", stop=("END",), seed=7),
    output=OutputSpec(name="answer", schema={"type": "object", "properties": {"a": {"type": "integer"}}}),
)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("form", "known"), [("chat", CompletionCreateParamsBase), ("responses", ResponseCreateParamsBase)]
)
def test_the_sdk_knows_every_field_that_is_sent(form: str, known: Any, *, stream: bool) -> None:
    emulator = Emulator(form, "pong")
    with emulator.server as server:
        asked(model_at(f"{server.url}/v1", form), REQUEST, stream=stream)
        (sent,) = [request.json for request in server.received]
    assert set(sent) - set(get_type_hints(known)) - {"stream"} == set()
    if form == "chat":
        for message in sent["messages"]:
            TypeAdapter(ChatCompletionMessageParam).validate_python(message)
    else:
        for item in sent["input"]:
            TypeAdapter(items.ResponseInputItemParam).validate_python(item)
