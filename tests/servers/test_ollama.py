"""The provider `ollama` on a real model: its protocol by the strict emulator, the answers by the real server behind it.

No server of Ollama's own was to be had; see plugins/ollama/README.md. No test here asserts a model's judgement.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from attrs import frozen
from tests.servers.promises import ADD
from tests.servers.real import RealServer

from locus import Agent
from locus.core.errors import ContextOverflow
from locus.core.events import ModelChunkEvent, ModelCompleteEvent, ToolCompleteEvent
from locus.core.messages import Message, Role, ToolResult
from locus.models.protocol import Chunk, ModelRequest
from locus_plugin_ollama.listing import models
from locus_plugin_ollama.model import OllamaModel, make
from locus_plugin_ollama.settings import OllamaSettings

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@frozen
class City:
    name: str
    inhabitants: int


@pytest.fixture
def model(real_server: RealServer) -> OllamaModel:
    return make(real_server.model, OllamaSettings(base_url=real_server.ollama, temperature=0.0, max_tokens=64))


def asked(*messages: Message | str, **fields: Any) -> ModelRequest:
    return ModelRequest(messages=tuple(Message(Role.USER, m) if isinstance(m, str) else m for m in messages), **fields)


async def test_a_tool_is_called_and_its_result_read_streamed_and_not(model: OllamaModel) -> None:
    request = asked("What is 12 plus 30? Use the tool.", tools=(ADD,))
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    whole, streamed = await model.complete(request), await model.complete(request, listen)

    (call,) = whole.tool_calls
    assert (call.name, dict(call.arguments), whole.stop_reason) == ("add", {"a": 12, "b": 30}, "tool_calls")
    assert [(each.name, each.arguments) for each in streamed.tool_calls] == [(call.name, call.arguments)]
    assert [chunk.kind for chunk in chunks] == ["tool_call"]
    result = Message(Role.TOOL, ToolResult(call.id, "42", name="add"))
    answer = await model.complete(asked(*request.messages, whole.message, result, tools=(ADD,)), listen)
    assert answer.message.text or answer.tool_calls
    assert answer.usage.prompt_tokens > whole.usage.prompt_tokens > 0
    assert answer.usage.cached_tokens > 0.9 * whole.usage.prompt_tokens, "the prefix is stable"


async def test_an_agent_streams_calls_its_tools_and_finds_its_prompt_cached(model: OllamaModel) -> None:
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    agent: Agent[Any, Any] = Agent(model, tools=[add], max_iterations=3, tool_loop_threshold=100)
    results, calls = [], []
    async for event in agent.run("What is 12 plus 30? Use the tool."):
        if isinstance(event, ToolCompleteEvent):
            results.append(event.result)
        elif isinstance(event, ModelCompleteEvent):
            calls.append(event.usage)
    assert results[0] == "42"
    assert all(later.cached_tokens > earlier.cached_tokens for earlier, later in pairwise(calls)), calls


async def test_text_streams_as_it_is_in_the_end(model: OllamaModel) -> None:
    agent: Agent[Any, Any] = Agent(model)
    streamed = ""
    async with agent.run("Count from one to five in words.") as run:
        async for event in run:
            if isinstance(event, ModelChunkEvent):
                streamed += event.text
    assert streamed
    assert run.result.text == streamed


async def test_an_answer_is_decoded_by_its_schema(model: OllamaModel) -> None:
    result = await Agent(model, output_schema=City).run("Describe Paris. Answer as JSON.")
    result.raise_for_failure()
    assert isinstance(result.parsed, City)
    assert result.iterations == 1


async def test_a_request_that_is_too_long_says_so(model: OllamaModel, real_server: RealServer) -> None:
    with pytest.raises(ContextOverflow, match="num_ctx"):
        await model.complete(asked("word " * (2 * real_server.window)))


async def test_an_answer_that_is_cut_off_says_so(real_server: RealServer) -> None:
    model = make(real_server.model, OllamaSettings(base_url=real_server.ollama, temperature=0.0, max_tokens=5))
    assert (await model.complete(asked("Count from one to one hundred."))).stop_reason == "length"


def test_the_server_lists_its_model(real_server: RealServer) -> None:
    assert [name for name, _ in models(OllamaSettings(base_url=real_server.ollama))] == [f"ollama:{real_server.model}"]
