"""The provider `anthropic` on a real server of the Messages API. No test here asserts a model's judgement."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anyio
import attrs
import pytest
from tests.servers.real import RealServer

from locus import Agent
from locus.core.errors import ContextOverflow
from locus.core.events import ModelChunkEvent, ModelCompleteEvent, ToolCompleteEvent
from locus.core.messages import Message, Role, TextBlock, ToolResult
from locus.hooks.secret import Secret
from locus.memory import MemoryStore
from locus.models.protocol import Chunk, ModelRequest, ModelSettings
from locus.tools.spec import ToolSpec
from locus_plugin_anthropic.listing import models
from locus_plugin_anthropic.model import AnthropicModel, make
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_wire.errors import ContextTooLong, KeyRefused

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

ADD = ToolSpec(
    name="add",
    description="Add two whole numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
GREEDY = ModelSettings(temperature=0.0, max_tokens=64)


def settings(server: RealServer, **more: Any) -> AnthropicSettings:
    return AnthropicSettings(**{"base_url": server.url, "api_key": Secret(server.key), **more})


@pytest.fixture
def anyio_backend() -> str:
    # The real server is slow, and the plugin's own tests speak to sockets on both.
    return "asyncio"


@pytest.fixture
def model(real_server: RealServer) -> AnthropicModel:
    return make(real_server.model, settings(real_server))


def asked(*messages: Message | str, **fields: Any) -> ModelRequest:
    given = tuple(Message(Role.USER, m) if isinstance(m, str) else m for m in messages)
    return ModelRequest(messages=given, **{"settings": GREEDY, **fields})


async def heard(model: AnthropicModel, request: ModelRequest) -> tuple[Any, list[Chunk]]:
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    return await model.complete(request, listen), chunks


async def test_streamed_and_whole_answers_are_the_same(model: AnthropicModel) -> None:
    request = asked("Count from one to five in words.")
    whole = await model.complete(request)
    streamed, chunks = await heard(model, request)
    assert whole.message.text
    assert streamed.message.content == whole.message.content
    assert "".join(chunk.text for chunk in chunks if chunk.kind == "text") == whole.message.text
    assert len(chunks) > 3
    assert (streamed.stop_reason, streamed.model) == (whole.stop_reason, whole.model)
    assert whole.usage.prompt_tokens == streamed.usage.prompt_tokens > 0
    assert whole.usage.completion_tokens == streamed.usage.completion_tokens > 0


async def test_a_tool_is_called_and_its_result_read(model: AnthropicModel) -> None:
    request = asked("What is 12 plus 30? Use the tool.", tools=(ADD,))
    whole = await model.complete(request)
    streamed, chunks = await heard(model, request)
    (call,) = whole.tool_calls
    assert (call.name, dict(call.arguments), whole.stop_reason) == ("add", {"a": 12, "b": 30}, "tool_calls")
    assert [(c.name, c.arguments) for c in streamed.tool_calls] == [(call.name, call.arguments)]
    assert "".join(c.text for c in chunks if c.kind == "tool_call").replace(" ", "") == '{"a":12,"b":30}'
    result = Message(Role.TOOL, ToolResult(call.id, "42", name="add"))
    answer = await model.complete(asked(*request.messages, whole.message, result, tools=(ADD,)))
    assert answer.message.text or answer.tool_calls
    assert answer.usage.prompt_tokens > whole.usage.prompt_tokens


async def test_a_prompt_is_counted_as_it_is_charged(model: AnthropicModel) -> None:
    request = asked(Message(Role.SYSTEM, "Be brief."), "What is 12 plus 30?", tools=(ADD,))
    assert await model.count_tokens(request) == (await model.complete(request)).usage.prompt_tokens


@attrs.frozen
class City:
    name: str
    inhabitants: int


async def test_an_answer_by_a_tool_is_decoded_by_its_schema(model: AnthropicModel) -> None:
    agent: Agent[Any, City] = Agent(model, output_schema=City, model_settings=GREEDY)
    result = await agent.run("Describe Paris.")
    result.raise_for_failure()
    assert isinstance(result.parsed, City)


async def test_a_wrong_key_is_refused(real_server: RealServer) -> None:
    wrong = make(real_server.model, settings(real_server, api_key=Secret("sk-wrong-0123456789")))
    with pytest.raises(KeyRefused, match="write api_key") as caught:
        await wrong.complete(asked("Hi."))
    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert "0123456789" not in str(caught.value)


@pytest.mark.parametrize("listening", [False, True])
async def test_a_request_that_is_too_long_says_so(
    model: AnthropicModel, real_server: RealServer, listening: bool
) -> None:
    request = asked("word " * (2 * real_server.window))
    with pytest.raises(ContextTooLong) as caught:
        await (heard(model, request) if listening else model.complete(request))
    assert isinstance(caught.value, ContextOverflow)
    assert not caught.value.retryable


async def test_an_answer_that_is_cut_off_says_so(model: AnthropicModel) -> None:
    request = asked("Count from one to one hundred.", settings=ModelSettings(temperature=0.0, max_tokens=5))
    assert (await model.complete(request)).stop_reason == "length"
    assert (await heard(model, request))[0].stop_reason == "length"


async def test_more_of_the_prompt_is_cached_from_turn_to_turn_of_a_run(model: AnthropicModel) -> None:
    """The prefix is really stable: what was sent in one turn is found again in the next."""
    pages = iter(range(1, 100))

    def read(topic: str) -> str:
        """Read the next page about a topic."""
        return f"Page {next(pages)}: rivers carry water from the mountains to the sea. There is a next page."

    agent: Agent[Any, Any] = Agent(
        model,
        tools=[read],
        system_prompt="You read pages with the tool read, one after another.",
        model_settings=ModelSettings(temperature=0.0, max_tokens=48),
        tool_loop_threshold=100,
        max_iterations=5,
    )
    calls: list[ModelCompleteEvent] = []
    async for event in agent.run("Read about rivers with the tool, page after page, until there is no next page."):
        if isinstance(event, ModelCompleteEvent):
            calls.append(event)
    cached = [call.usage.cached_tokens for call in calls]
    prompts = [call.usage.prompt_tokens for call in calls]
    assert len(calls) >= 3
    assert all(later > earlier for earlier, later in pairwise(cached)), f"{cached} of {prompts}"
    # All but a little of the prompt before is found again; the server recomputes the last token or so.
    assert all(found >= 0.9 * before for before, found in zip(prompts, cached[1:], strict=False)), (
        f"{cached} of {prompts}"
    )


async def test_a_cancelled_call_frees_the_server(model: AnthropicModel) -> None:
    async def listen(chunk: Chunk) -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await model.complete(
            asked("Write a long story about a river.", settings=ModelSettings(max_tokens=2000)), listen
        )
    assert scope.cancelled_caught
    with anyio.fail_after(30):  # the server has one slot: it is free again
        assert (await model.complete(asked("Say hello."))).message.text


async def test_a_thread_goes_on_after_a_key_was_refused(real_server: RealServer) -> None:
    store = MemoryStore()
    wrong = make(real_server.model, settings(real_server, api_key=Secret("sk-wrong-0123456789")))
    first = await Agent(wrong, checkpointer=store, model_settings=GREEDY).run("Say hello.", thread_id="t")
    assert first.stop_reason == "ModelError"
    right = make(real_server.model, settings(real_server))
    again = await Agent(right, checkpointer=store, model_settings=GREEDY).run("Say hello.", thread_id="t")
    assert again.text


async def test_an_agent_streams_and_calls_its_tools(model: AnthropicModel) -> None:
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    agent: Agent[Any, Any] = Agent(model, tools=[add], model_settings=GREEDY, max_iterations=3)
    pieces, results = 0, []
    async for event in agent.run("What is 12 plus 30? Use the tool."):
        if isinstance(event, ModelChunkEvent):
            pieces += 1
        elif isinstance(event, ToolCompleteEvent):
            results.append(event.result)
    assert results[0] == "42"
    assert pieces > 3


async def test_text_of_every_kind_goes_both_ways(model: AnthropicModel) -> None:
    odd = 'e\u0301 中文 עב 👩\u200d💻 "\\" \t\n \ud83d'
    said = Message(Role.ASSISTANT, TextBlock(f"You said: {odd}"))
    assert (await model.complete(asked(odd, said, "Say hello."))).message.text


def test_the_server_lists_its_model(real_server: RealServer) -> None:
    ((name, _),) = models(settings(real_server))
    assert name.startswith("anthropic:")
