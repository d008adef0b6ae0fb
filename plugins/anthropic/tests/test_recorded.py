"""Answers in the shapes that the vendor documents, whole and as streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from locus.core.messages import RawBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models.protocol import ModelResponse
from locus_plugin_anthropic.reply import check_message, response_of, usage_of
from locus_plugin_anthropic.stream import Stream
from locus_wire.replies import Body
from locus_wire.streams import Event, ServerSentEvents

from .kit import at_once

DATA = Path(__file__).parent / "data"
USED = Usage(
    prompt_tokens=5132, completion_tokens=187, cached_tokens=4096, cache_write_tokens=1024, reasoning_tokens=96
)


def _whole(name: str) -> ModelResponse:
    data = check_message(json.loads((DATA / f"{name}.json").read_text(encoding="utf-8")))
    return response_of(data, {}, usage_of(data), name="asked")


async def _events(pieces: list[bytes]) -> list[Event]:
    async def content() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    request = httpx2.Request("POST", "http://127.0.0.1/")
    response = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=content(), request=request)
    body = Body(response)
    stream, found = ServerSentEvents(body, 100_000), []
    while (event := await stream.next()) is not None:
        found.append(event)
    await body.aclose()
    return found


def _stream(name: str, size: int) -> ModelResponse:
    stream = Stream()
    told = (DATA / f"{name}.sse").read_bytes()
    ended = False
    for event in anyio.run(_events, [told[at : at + size] for at in range(0, len(told), size)]):
        assert not ended
        ended = at_once(stream.take(event))
    assert ended
    return response_of(stream.message, stream.raw, usage_of(stream.message), name="asked")


@pytest.mark.parametrize("size", [1, 37, 100_000])
@pytest.mark.parametrize("name", ["tools", "search", "refusal"])
def test_stream_is_the_same_answer(name: str, size: int) -> None:
    assert _stream(name, size) == _whole(name)


def test_calls_with_thinking_before_them() -> None:
    response = _whole("tools")
    direct: dict[str, Any] = {"caller": {"type": "direct"}}
    assert response.message.content == (
        ThinkingBlock("Two cities; two calls.", "EqQBCkYIARgCKkD6d2hhdGV2ZXIgaXQgaXM="),
        TextBlock("I'll look both up.", extras={"citations": None}),
        ToolCall("toolu_01A09q90qw90lq917835lq9", "temperature", {"city": "Paris"}, extras=direct),
        ToolCall("toolu_01B19q90qw90lq917835lqb", "temperature", {"city": "Łódź"}, extras=direct),
    )
    assert response.stop_reason == "tool_calls"
    assert response.usage == USED
    assert response.model == "claude-sonnet-5-5"


def test_search_by_the_server_and_its_citations() -> None:
    response = _whole("search")
    assert response.message.text == "It lies on the Oder"
    assert [type(block) for block in response.message.content] == [RawBlock, RawBlock, TextBlock, TextBlock]
    assert response.stop_reason == "stop"


def test_refusal() -> None:
    response = _whole("refusal")
    assert response.stop_reason == "refusal"
    assert response.message.extras["anthropic"]["stop_details"]["category"] == "cyber"
