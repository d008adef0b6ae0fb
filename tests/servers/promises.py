"""What a provider promises wherever a real server answers it; a subclass says how its model is made.

No test here asserts a model's judgement.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve
from tests.servers.real import RealServer

from locus import Agent
from locus.core.errors import ContextOverflow
from locus.core.events import ModelChunkEvent, ModelCompleteEvent, ToolCompleteEvent
from locus.core.messages import Message, Role, TextBlock, ToolResult
from locus.journal import MemoryStore
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, ModelSettings, StopReason
from locus.tools.definition import ToolSpec
from locus_wire.errors import ContextTooLong, KeyRefused

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


def asked(*messages: Message | str, **fields: Any) -> ModelRequest:
    given = tuple(Message(Role.USER, m) if isinstance(m, str) else m for m in messages)
    return ModelRequest(messages=given, **{"settings": GREEDY, **fields})


async def heard(model: Model, request: ModelRequest) -> tuple[ModelResponse, list[Chunk]]:
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    return await model.complete(request, listen), chunks


class ServerPromises:
    """The promises.

    Attributes:
        cut_off: what the server says of an answer that ran into its limit.
    """

    cut_off: ClassVar[StopReason] = "length"

    def make_model(self, server: RealServer) -> Model:
        """The provider's model at a server."""
        raise NotImplementedError(f"{type(self).__name__} needs make_model(self, server), which gives a Model")

    def said(self, response: ModelResponse) -> object:
        """What is the same in every answer to the same greedy request."""
        return response.message.content

    @pytest.fixture
    def model(self, real_server: RealServer) -> Model:
        return self.make_model(real_server)

    @pytest.fixture
    def refused(self, real_server: RealServer) -> Model:
        """A model with a key that the server does not know."""
        return self.make_model(evolve(real_server, key="sk-wrong-0123456789"))

    async def test_streamed_and_whole_answers_are_the_same(self, model: Model) -> None:
        request = asked("Count from one to five in words.")
        whole = await model.complete(request)
        streamed, chunks = await heard(model, request)
        assert whole.message.text
        assert self.said(streamed) == self.said(whole)
        assert "".join(chunk.text for chunk in chunks if chunk.kind == "text") == whole.message.text
        assert len(chunks) > 3
        assert (streamed.stop_reason, streamed.model) == (whole.stop_reason, whole.model)
        assert whole.usage.prompt_tokens == streamed.usage.prompt_tokens > 0
        assert whole.usage.completion_tokens == streamed.usage.completion_tokens > 0

    async def test_a_tool_is_called_and_its_result_read(self, model: Model) -> None:
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

    async def test_a_wrong_key_is_refused(self, refused: Model) -> None:
        with pytest.raises(KeyRefused, match="write api_key") as caught:
            await refused.complete(asked("Hi."))
        assert (caught.value.status, caught.value.retryable) == (401, False)
        assert "0123456789" not in str(caught.value)

    @pytest.mark.parametrize("listening", [False, True])
    async def test_a_request_that_is_too_long_says_so(
        self, model: Model, real_server: RealServer, listening: bool
    ) -> None:
        request = asked("word " * (2 * real_server.window))
        with pytest.raises(ContextTooLong) as caught:
            await (heard(model, request) if listening else model.complete(request))
        assert isinstance(caught.value, ContextOverflow)
        assert not caught.value.retryable

    async def test_an_answer_that_is_cut_off_says_so(self, model: Model) -> None:
        request = asked("Count from one to one hundred.", settings=ModelSettings(temperature=0.0, max_tokens=5))
        assert (await model.complete(request)).stop_reason == self.cut_off
        assert (await heard(model, request))[0].stop_reason == self.cut_off

    async def test_more_of_the_prompt_is_cached_from_turn_to_turn_of_a_run(self, model: Model) -> None:
        """The prefix is really stable: what was sent in one turn is found again in the next."""
        pages = iter(range(1, 100))

        def read(topic: str) -> str:
            """Read the next page about a topic."""
            return f"Page {next(pages)}: rivers carry water from the mountains to the sea. There is a next page."

        agent: Agent[Any, Any] = Agent(
            model,
            tools=[read],
            system_prompt="You read pages with the tool read, one after another.",
            # Beside other work the same small model may find other words, and be content with the first page.
            model_settings=ModelSettings(temperature=0.0, max_tokens=48, tool_choice="required"),
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

    async def test_a_cancelled_call_frees_the_server(self, model: Model) -> None:
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

    async def test_a_thread_continues_after_a_key_was_refused(self, model: Model, refused: Model) -> None:
        store = MemoryStore()
        first = await Agent(refused, checkpointer=store, model_settings=GREEDY).run("Say hello.", thread_id="t")
        assert first.stop_reason == "ModelError"
        again = await Agent(model, checkpointer=store, model_settings=GREEDY).run("Say hello.", thread_id="t")
        assert again.text

    async def test_an_agent_streams_and_calls_its_tools(self, model: Model) -> None:
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

    async def test_text_of_every_kind_goes_both_ways(self, model: Model) -> None:
        odd = 'e\u0301 中文 עב 👩\u200d💻 "\\" \t\n \ud83d'
        said = Message(Role.ASSISTANT, TextBlock(f"You said: {odd}"))
        assert (await model.complete(asked(odd, said, "Say hello."))).message.text
