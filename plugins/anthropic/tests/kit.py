"""The Messages API, scripted: what it was sent, and what it answers, in one piece or as a stream."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from locus.core.errors import ContextOverflow, ModelError
from locus.core.frozen import thaw
from locus.core.messages import Block, RawBlock, TextBlock, ThinkingBlock, ToolCall
from locus.models.protocol import ModelRequest, ModelResponse
from locus_plugin_anthropic.model import AnthropicModel
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_testkit.hostile import Answer, ReceivedRequest
from locus_testkit.scripted_model import blocks_of
from locus_wire.errors import ConnectionLost
from locus_wire.failures import ErrorDetails, status_error
from locus_wire.pools import Pools, Session
from locus_wire.streams import Event

__all__ = ["Api", "answering", "at_once", "events_of", "message_of", "model_of", "stream_of"]

T = TypeVar("T")

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}

_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def message_of(*content: Mapping[str, Any], stop_reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A message as the API sends it."""
    called = any(block.get("type") == "tool_use" for block in content)
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [dict(block) for block in content],
        "stop_reason": stop_reason or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": USAGE,
        **more,
    }


def at_once(made: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that waits for nothing; an event loop for each would be most of a test's time."""
    try:
        made.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waited")


def events_of(message: Mapping[str, Any], size: int = 7) -> Iterator[dict[str, Any]]:
    """The events that tell the same message, in pieces of so many characters."""
    told = ("stop_reason", "stop_sequence", "stop_details", "container")
    delta = {key: message[key] for key in told if key in message}
    begin = {**message, "content": [], **dict.fromkeys(delta), "usage": {**message["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begin}
    yield {"type": "ping"}
    for at, block in enumerate(message["content"]):
        start, deltas = _deltas(block, size)
        yield {"type": "content_block_start", "index": at, "content_block": start}
        for each in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": each}
        yield {"type": "content_block_stop", "index": at}
        yield {"type": "of_the_future", "index": at, "what": [1]}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _cut(text: str, size: int) -> list[str]:
    size = max(size, len(text) // 500)  # a long text need not be a million events
    return [text[at : at + size] for at in range(0, len(text), size)]


def _deltas(block: Mapping[str, Any], size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block:
        case {"type": "text", "text": str(text)}:
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in _cut(text, size)]
            start = {**block, "text": ""}
            if block.get("citations"):
                start["citations"] = None
                deltas += [{"type": "citations_delta", "citation": each} for each in block["citations"]]
            return start, deltas
        case {"type": "thinking", "thinking": str(text)}:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _cut(text, size)]
            if "signature" not in block:
                return {**block, "thinking": ""}, deltas
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
        case {"type": "tool_use" | "server_tool_use", "input": Mapping() as given} if given:
            text = json.dumps(thaw(given), ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_cut(text, size)]]
            return {**block, "input": {}}, deltas
    return dict(block), []


class Api:
    """A server in this very process, in the place of `locus_wire.client.Client`.

    Args:
        answers: what it answers, request by request, see `ModelContract.make_model`; also whole messages of the API,
            and lists of events.
    """

    def __init__(self, *answers: Any) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self._answers = list(answers)
        self._pools = Pools(secure=False, connections=1, connect_timeout=1, silence=1)

    def session(self) -> Session:
        return self._pools.session()

    async def post(self, path: str, body: bytes, read: Callable[[Any], Any], *, deadline: float | None = None) -> Any:
        with _within(deadline):
            return read(await self._answer(path, body))
        raise _late()

    async def get(self, path: str, read: Callable[[Any], Any], *, deadline: float | None = None) -> Any:
        return await self.post(path, b"{}", read, deadline=deadline)

    async def events(
        self, path: str, body: bytes, take: Callable[[Event], Any], *, deadline: float | None = None
    ) -> Mapping[str, str]:
        with _within(deadline):
            message = await self._answer(path, body)
            for event in message if isinstance(message, list) else events_of(message):
                await anyio.lowlevel.checkpoint()
                if await take(Event(json.dumps(event), event["type"])):
                    return {}
            raise ConnectionLost("the stream ended before the answer was complete", provider="anthropic")
        raise _late()

    async def _answer(self, path: str, body: bytes) -> Any:
        await anyio.lowlevel.checkpoint()
        self.paths.append(path)
        self.bodies.append(json.loads(body))
        turn = self._answers.pop(0)
        if isinstance(turn, BaseException):
            raise _refusal(turn)
        if callable(turn):
            turn = turn(ModelRequest(messages=()))
            turn = await turn if inspect.isawaitable(turn) else turn
        return turn if _is_wire(turn) else _turn_form(turn, len(self.bodies), self.bodies[-1])


def _is_wire(turn: Any) -> bool:
    return isinstance(turn, Mapping) or (isinstance(turn, list) and all(isinstance(each, Mapping) for each in turn))


def _within(deadline: float | None) -> anyio.CancelScope:
    return anyio.CancelScope() if deadline is None else anyio.CancelScope(deadline=deadline)


def _late() -> ModelError:
    return ModelError("anthropic had not answered at the deadline")


def _refusal(turn: BaseException) -> BaseException:
    if not isinstance(turn, ModelError):
        return turn
    words = "prompt is too long: 9 tokens > 8 maximum" if isinstance(turn, ContextOverflow) else str(turn)
    kind = "not_found_error" if turn.status == 404 else None
    return status_error("anthropic", turn.status or 500, ErrorDetails(words, kind=kind))


def _turn_form(turn: Any, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    usage, reason = USAGE, None
    if isinstance(turn, ModelResponse):
        usage = {"input_tokens": turn.usage.prompt_tokens, "output_tokens": turn.usage.completion_tokens}
        reason = _REASONS[turn.stop_reason]
    blocks = [_block(block, f"toolu_{number}_{at}") for at, block in enumerate(blocks_of(turn))]
    chosen = body.get("tool_choice", {}).get("name")
    if chosen and len(blocks) == 1 and blocks[0]["type"] == "text":
        # The model does as it is told: its answer is the call.
        blocks = [{"type": "tool_use", "id": "toolu_x", "name": chosen, "input": json.loads(blocks[0]["text"])}]
    return message_of(*blocks, stop_reason=reason, usage=usage)


def _block(block: Block, call_id: str) -> dict[str, Any]:
    match block:
        case TextBlock(text=text, extras=extras):
            return {"type": "text", "text": text, **thaw(extras)}
        case ThinkingBlock(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolCall(id=given, name=name, arguments=arguments):
            return {"type": "tool_use", "id": given or call_id, "name": name, "input": thaw(arguments)}
        case RawBlock(data=data):
            wire: dict[str, Any] = thaw(data)
            return wire
    raise AssertionError(f"the API says no {block!r}")


def answering(*answers: Any) -> Callable[[ReceivedRequest], Answer]:
    """What a server says that was started for `LocalServer`, request by request; see `Api`."""
    waiting = list(answers)
    asked: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest) -> Answer:
        asked.append(request)
        turn = waiting.pop(0)
        if callable(turn):
            return Answer(status=0, ending="silent")  # `never`
        if isinstance(turn, ModelError):
            words = "prompt is too long: 9 tokens > 8 maximum" if isinstance(turn, ContextOverflow) else str(turn)
            error = {"type": "error", "error": {"type": "some_error", "message": words}}
            return Answer.of(error, status=turn.status or 500)
        message = _turn_form(turn, len(asked), request.json)
        return stream_of(events_of(message)) if request.json.get("stream") else Answer.of(message)

    return answer


def stream_of(events: Iterable[Mapping[str, Any]]) -> Answer:
    """Events as a server sends them."""
    return Answer.events(*events, done="", named=True)


def model_of(api: Any, name: str = "claude-sonnet-5-5", **settings: Any) -> AnthropicModel:
    """A model that asks a scripted server."""
    model = AnthropicModel(name, AnthropicSettings(**settings))
    model._client = api
    return model
