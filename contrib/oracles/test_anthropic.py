"""Anthropic's SDK reads the recorded answers as the provider does, and knows every field that is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import anthropic
import anyio
import pytest
from anthropic import types
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import TypeAdapter

from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models import Chunk, ModelRequest, ModelResponse, ModelSettings, OutputSpec
from locus.plugins.secret import Secret
from locus.tools.definition import ToolSpec
from locus_plugin_anthropic.model import make
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_testkit.localserver import Answer, LocalServer

DATA = Path(__file__).parents[2] / "plugins" / "anthropic" / "tests" / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.sse"))
KEY = "sk-ant-test-0123456789"
LOOK = ToolSpec(
    name="look",
    description="Look something up.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)
MESSAGES = (
    Message(Role.SYSTEM, "Be brief."),
    Message(Role.USER, "Say pong."),
    Message(
        Role.ASSISTANT,
        (ThinkingBlock("I look.", signature="c2ln"), TextBlock("I look."), ToolCall("c1", "look", {"q": "a"})),
    ),
    Message(Role.TOOL, ToolResult("c1", "found", False, "look")),
    Message(Role.ASSISTANT, "pong"),
    Message(Role.USER, "Again."),
)
PARAMS: dict[str, Any] = {
    "text": types.TextBlockParam,
    "thinking": types.ThinkingBlockParam,
    "tool_use": types.ToolUseBlockParam,
    "tool_result": types.ToolResultBlockParam,
}


def model(server: LocalServer) -> Any:
    return make("claude-sonnet-5-5", AnthropicSettings(base_url=server.url, api_key=Secret(KEY)))


def asked(server: LocalServer, request: ModelRequest, *, stream: bool) -> ModelResponse:
    async def ask() -> ModelResponse:
        async def take(chunk: Chunk) -> None:
            pass

        return await model(server).complete(request, take if stream else None)  # type: ignore[no-any-return]

    return anyio.run(ask)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_answers_are_what_the_sdk_takes(name: str) -> None:
    types.Message.model_validate_json((DATA / f"{name}.json").read_text("utf-8"), strict=True)
    for part in (DATA / f"{name}.sse").read_text("utf-8").split("\n\n"):
        if part.strip() and "event: ping" not in part:
            TypeAdapter(RawMessageStreamEvent).validate_json(part.split("data: ", 1)[1], strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_is_read_as_the_sdk_reads_it(name: str) -> None:
    stream = Answer(body=(DATA / f"{name}.sse").read_bytes(), media_type="text/event-stream")
    with LocalServer() as server:
        server.then(stream, stream)
        client = anthropic.Anthropic(api_key=KEY, base_url=server.url, max_retries=0)
        question: Any = [{"role": "user", "content": "Say pong."}]
        with client.messages.stream(model="claude-sonnet-5-5", max_tokens=100, messages=question) as events:
            theirs = events.get_final_message()
        got = asked(server, ModelRequest(messages=MESSAGES[1:2]), stream=True)
    text = "".join(block.text for block in theirs.content if block.type == "text")
    calls = [(block.id, block.name) for block in theirs.content if block.type == "tool_use"]
    assert got.message.text == text
    assert [(each.id, each.name) for each in got.tool_calls] == calls
    assert got.usage.completion_tokens == theirs.usage.output_tokens
    assert got.usage.cached_tokens == (theirs.usage.cache_read_input_tokens or 0)
    assert got.usage.cache_write_tokens == (theirs.usage.cache_creation_input_tokens or 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_sdk_knows_every_field_that_is_sent(*, stream: bool) -> None:
    request = ModelRequest(
        messages=MESSAGES,
        tools=(LOOK,),
        settings=ModelSettings(max_tokens=100, tool_choice="look", stop=("END",)),
        output=OutputSpec(name="answer", schema={"type": "object", "properties": {"a": {"type": "integer"}}}),
    )
    answer = (
        Answer(body=(DATA / "tools.sse").read_bytes(), media_type="text/event-stream")
        if stream
        else Answer(body=(DATA / "tools.json").read_bytes(), media_type="application/json")
    )
    with LocalServer() as server:
        server.then(answer)
        asked(server, request, stream=stream)
        (sent,) = [each.json for each in server.received]
    assert set(sent) - set(get_type_hints(MessageCreateParamsBase)) - {"stream"} == set()
    for message in sent["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            kind = PARAMS[block["type"]]
            TypeAdapter(kind).validate_python(block)
            assert set(block) <= set(get_type_hints(kind))
    for tool in sent["tools"]:
        TypeAdapter(types.ToolParam).validate_python(tool)
        assert set(tool) <= set(get_type_hints(types.ToolParam))
    TypeAdapter(types.ToolChoiceParam).validate_python(sent["tool_choice"])
