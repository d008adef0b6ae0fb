"""The official client as a witness: its types fit what is said and sent here, and it can talk to the emulator."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ollama import ChatResponse, Client, Tool
from ollama._client import _copy_messages
from ollama._types import ChatRequest, ListResponse, Options

from locus.core.frozen import freeze
from locus.core.messages import MediaBlock, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.core.messages import Message as Turn
from locus.models.protocol import ModelRequest, OutputSpec
from locus.tools.definition import ToolSpec
from locus_plugin_ollama.answers import Answer
from locus_plugin_ollama.request import body_of
from locus_plugin_ollama.settings import OllamaSettings
from locus_testkit import call
from locus_testkit.localserver import LocalServer

from .emulator import Emulator, final, lines, message_of

LOOK: dict[str, Any] = {
    "type": "object",
    "properties": {"at": {"type": "string", "description": "where"}},
    "required": ["at"],
}
SETTINGS = OllamaSettings(num_ctx=4096, temperature=0.5, top_p=0.9, top_k=3, seed=1, stop=("a",), think="low")
CONVERSATION = (
    Turn(Role.SYSTEM, "Be brief."),
    Turn(Role.USER, (TextBlock("What is this?"), MediaBlock("image", "image/png", data=b"png"))),
    Turn(Role.ASSISTANT, (ThinkingBlock("hm"), TextBlock("Let me see."), ToolCall("1", "look", {"at": "sea"}))),
    Turn(Role.TOOL, ToolResult("1", "blue")),
)


def known_fields(model: Any) -> set[str]:
    return set(type(model).model_fields)


def test_what_is_sent_is_what_the_official_client_would_send() -> None:
    tool = ToolSpec(name="look", description="Looks.", parameters=freeze(LOOK))
    output = OutputSpec(name="x", schema=freeze({"type": "object", "properties": {}}))
    request = ModelRequest(messages=CONVERSATION, tools=(tool,), output=output)
    body = json.loads(body_of(request, "tiny", SETTINGS, stream=True))

    official = ChatRequest.model_validate(body)

    # The two that it does not know are read by the server (api/types.go).
    assert set(body) - known_fields(official) == {"truncate", "shift"}
    written = official.model_dump(exclude_none=True)
    assert {name: written[name] for name in written if name not in ("messages", "options", "tools")} == {
        name: body[name] for name in body if name in written and name not in ("messages", "options", "tools")
    }
    assert set(body["options"]) <= set(Options.model_fields)
    assert [message.model_dump(exclude_none=True) for message in _copy_messages(body["messages"])] == body["messages"]
    assert Tool.model_validate(body["tools"][0]).model_dump(exclude_none=True) == body["tools"][0]


@pytest.mark.parametrize("turn", ["pong", [ThinkingBlock("hm"), "So:", call("look", at="sea"), call("look", at="air")]])
def test_what_the_emulator_says_is_what_the_official_client_reads(turn: Any) -> None:
    message = message_of(turn)
    told = {**final({"model": "tiny", "messages": []}, message), "message": message}

    for line in [told, *lines(message, final({"model": "tiny", "messages": []}, message), 2)]:
        read = ChatResponse.model_validate(line)
        assert set(line) <= known_fields(read)
        assert set(line["message"]) <= known_fields(read.message)


def test_the_official_client_reads_of_an_answer_what_is_read_here() -> None:
    emulator = Emulator([ThinkingBlock("hm"), "So:", call("look", at="sea")], "It is blue.")
    with LocalServer(emulator) as server, Client(host=server.url) as client:
        asked = [{"role": "user", "content": "Look."}]
        tools = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": LOOK}}]
        first = client.chat("tiny", asked, tools=tools, options={"seed": 1}, keep_alive="5m", think=True)
        results = [{"role": "tool", "content": "blue", "tool_name": "look"}]
        second = list(client.chat("tiny", [*asked, first.message, *results], tools=tools, stream=True))
        listed = client.list()
    assert emulator.refused == []
    answer = Answer("tiny", 1)
    answer.add(first.model_dump(exclude_none=True))
    response = answer.response()
    assert response.message.reasoning == first.message.thinking == "hm"
    assert response.message.text == first.message.content == "So:"
    assert first.message.tool_calls is not None
    assert [dict(each.arguments) for each in response.tool_calls] == [
        each.function.arguments for each in first.message.tool_calls
    ]
    assert "".join(part.message.content or "" for part in second) == "It is blue."
    assert isinstance(listed, ListResponse)
    assert [each.model for each in listed.models] == ["tiny:latest"]
