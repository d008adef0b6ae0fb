"""What the promises of a model have in common: features, the model under test, and how it is asked."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import pytest
from attrs import frozen

from locus.core import freeze
from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.models import Model, ModelRequest, ModelResponse
from locus.tools import ToolSpec
from locus_testkit.contracts.base import Contract
from locus_testkit.scripted_model import Turn

__all__ = [
    "TEMPERATURE",
    "Differs",
    "MakeModel",
    "ModelFeatures",
    "Promises",
    "SentRequest",
    "build_request",
    "check_calls",
    "check_text",
    "result_of",
    "system",
    "user",
]

#: In what two models of one provider differ.
Differs: TypeAlias = Literal["host", "family"]

#: Makes the model under test; see `ModelContract.make_model`.
MakeModel: TypeAlias = Callable[..., Awaitable[Model]]


@frozen(kw_only=True)
class ModelFeatures:
    """What a model, or the test's way of making one, offers.

    Args:
        exact: it gives exactly the answers that `make_model` got (a fake server, a script, a cassette).
        streaming: it calls ``on_chunk``.
        tools: it can ask for tool calls.
        parallel_tools: several in one turn.
        structured_output: it follows an `OutputSpec`.
        max_tokens: it stops at ``ModelSettings.max_tokens``.
        thinking: its answers may hold thinking blocks with signatures.
        raw_blocks: its answers may hold blocks that only its provider understands.
        failures: an exception among the answers makes the provider fail that way; needs ``exact``.
        deadline: it ends by ``ModelRequest.deadline`` by itself (the loop enforces the deadline in any case).
        wire: `ModelContract.sent_requests` shows what the provider was given.
        moves: what only another model can read of a conversation is left out of its requests, with notes; needs
            ``exact``, ``tools`` and `ModelContract.sent_requests`, and with ``wire`` `ModelContract.make_relative`.
    """

    exact: bool = False
    streaming: bool = True
    tools: bool = True
    parallel_tools: bool = False
    structured_output: bool = False
    max_tokens: bool = False
    thinking: bool = False
    raw_blocks: bool = False
    failures: bool = False
    deadline: bool = False
    wire: bool = False
    moves: bool = False


@frozen(kw_only=True)
class SentRequest:
    """One request as the provider was given it, as plain data that ``json.dumps`` takes.

    Args:
        system: the system prompt; None where it is among the messages.
        tools: the tools on offer.
        messages: the encoded messages, oldest first, cache markers left out.
    """

    messages: Sequence[Any]
    system: Any = None
    tools: Any = None


@pytest.mark.anyio
class Promises(Contract):
    """The fixtures of the promises."""

    features: ClassVar[ModelFeatures] = ModelFeatures()

    #: Seconds within which a cancelled or late call must be over.
    patience: ClassVar[float] = 5.0

    #: Under which keys of a block's extras the model keeps what its provider said beside the block, such as ids. What
    #: is under any other key was not sent.
    block_extras: ClassVar[frozenset[str]] = frozenset()

    def make_model(self, *answers: Turn) -> Model | Awaitable[Model]:
        """The model under test; may be a coroutine function.

        Args:
            answers: what it should answer, request by request: text, ``call(...)``, lists of those, a
                `Message`, a `ModelResponse`, an exception to fail with, or `never` for no answer at all. A
                fake server or a cassette arranges that (feature ``exact``); a live model ignores it, since
                the questions ask for the same.
        """
        raise NotImplementedError(f"{type(self).__name__} needs make_model(self, *answers), which gives a Model")

    def make_relative(self, differs: Differs, *answers: Turn) -> Model | Awaitable[Model]:
        """A model of the same provider that cannot read what the one of `make_model` signs (feature ``moves``).

        Args:
            differs: whether its server has another host, or the model is of another family (``"llama"``, not
                ``"qwen"``). Without a server, its family differs for both.
            answers: see `make_model`.
        """
        raise NotImplementedError(f"{type(self).__name__} declares moves and needs make_relative(self, differs, ...)")

    async def close_model(self, model: Model) -> None:
        """Close a model: awaits its ``aclose()`` where it has one."""
        close = getattr(model, "aclose", None)
        if close is not None:
            await close()

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        """What the provider was given, request by request (feature ``wire``)."""
        raise NotImplementedError(f"{type(self).__name__} declares wire and needs sent_requests(self, model)")

    @pytest.fixture
    async def make(self) -> AsyncIterator[MakeModel]:
        """Makes models; all are closed at the end."""
        made: list[Model] = []

        async def one_more(*answers: Turn, differs: Differs | None = None) -> Model:
            given = self.make_model(*answers) if differs is None else self.make_relative(differs, *answers)
            model = await given if inspect.isawaitable(given) else given
            made.append(model)
            return model

        yield one_more
        for model in made:
            await self.close_model(model)


#: The tool that models are asked to call.
TEMPERATURE = ToolSpec(
    name="temperature",
    description="Gives the temperature of a city in degrees Celsius.",
    parameters=freeze(
        {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "the name of the city"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    ),
)


def system(text: str) -> Message:
    """A system prompt."""
    return Message(Role.SYSTEM, text)


def user(text: str) -> Message:
    """A user's turn."""
    return Message(Role.USER, text)


def build_request(*messages: Message | str, **settings: Any) -> ModelRequest:
    """A request; text is a user's turn.

    Args:
        messages: the conversation.
        settings: further fields of the request.
    """
    return ModelRequest(messages=tuple(user(m) if isinstance(m, str) else m for m in messages), **settings)


def result_of(call: ToolCall, content: str = "21", *, is_error: bool = False) -> Message:
    """The message that answers a call, as the loop makes it."""
    return Message(Role.TOOL, ToolResult(call.id, content, is_error, call.name))


def check_text(response: ModelResponse) -> str:
    """The text of a final answer, after checking that it is one."""
    assert isinstance(response, ModelResponse)
    assert response.message.role is Role.ASSISTANT
    assert response.tool_calls == ()
    assert response.stop_reason in ("stop", "length")
    return response.message.text


def check_calls(response: ModelResponse) -> tuple[ToolCall, ...]:
    """The calls of a turn that asks for some, after checking that they can be run."""
    assert isinstance(response, ModelResponse)
    assert response.message.role is Role.ASSISTANT
    assert response.stop_reason == "tool_calls"
    assert response.tool_calls, "the model was told to use the tool and did not"
    for call in response.tool_calls:
        assert call.name == "temperature"
        assert isinstance(call.id, str)
        assert call.id, "a call needs an id: the provider's, or one that the model makes up"
        assert call.malformed is None
        assert set(call.arguments) == {"city"}
        assert isinstance(call.arguments["city"], str)
    return response.tool_calls
