"""An emulator of Generative AI inference that gives the answers of a script, built from the models of its API.

It refuses what the service refuses: a request without a good signature, without a compartment, or with a field that its
form does not have. The names of the fields are those of the SDK's models, version 2.189.0, whose client was run against
it once, and read its answers and streams.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from locus.core.errors import ContextOverflow, ModelError
from locus.core.frozen import thaw
from locus.core.messages import Block, RawBlock, TextBlock, ToolCall
from locus.models.protocol import ModelResponse
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_testkit.scripted_model import Turn, blocks_of, never

from .verification import Keys, unsigned_because

__all__ = ["COMPARTMENT", "USAGE", "Service", "cohere", "generic", "openai"]

COMPARTMENT = "ocid1.compartment.oc1..aaaaaaaacompartment"
USAGE = {
    "completionTokens": 5,
    "promptTokens": 10,
    "totalTokens": 15,
    "promptTokensDetails": {"cachedTokens": 4},
    "completionTokensDetails": {"reasoningTokens": 2},
}
_SIZE = 5

#: The fields that a request may have.
_GENERIC = frozenset(
    """
    apiFormat messages reasoningEffort verbosity metadata isStream streamOptions numGenerations seed isEcho topK topP
    temperature frequencyPenalty presencePenalty stop logProbs maxTokens maxCompletionTokens logitBias prediction
    responseFormat toolChoice isParallelToolCalls tools webSearchOptions serviceTier
    """.split()  # noqa: SIM905  # a list of one a line is no easier to compare
)
_COHERE = frozenset(
    """
    apiFormat message chatHistory documents responseFormat isSearchQueriesOnly preambleOverride isStream streamOptions
    maxTokens maxInputTokens temperature topK topP promptTruncation frequencyPenalty presencePenalty seed isEcho tools
    toolResults isForceSingleStep stopSequences isRawPrompting citationQuality safetyMode
    """.split()  # noqa: SIM905  # the same
)


def pieces(text: str) -> list[str]:
    """A text in pieces."""
    return [text[at : at + _SIZE] for at in range(0, len(text), _SIZE)]


def failed(error: BaseException) -> Answer:
    """A failure, as the service tells it."""
    assert isinstance(error, ModelError)
    told = "the prompt is too long: maximum context length" if isinstance(error, ContextOverflow) else str(error)
    body = {"code": "SomeError", "message": told}
    return Answer.of(body, status=error.status or 500, headers={"opc-request-id": "req-1"})


class Service:
    """A server and its script.

    Args:
        keys: who may sign.
        turns: what it answers, in order.
    """

    def __init__(self, keys: Keys, *turns: Turn) -> None:
        self.keys = keys
        self.turns = deque(turns)
        self.refused: list[str] = []
        self.server = LocalServer(self._answer)
        self._numbers = iter(range(1, 10_000))
        self._lock = threading.Lock()

    def _answer(self, request: ReceivedRequest) -> Answer:
        why = unsigned_because(self.keys, request.method, request.path, request.headers, request.body) or self._misses(
            request
        )
        if why:
            self.refused.append(why)
            return Answer.of({"code": "NotAuthenticated", "message": why}, status=401)
        with self._lock:
            turn: Any = self.turns.popleft()
            number = next(self._numbers)
        if turn is never:
            return Answer(status=0, ending="silent")
        if isinstance(turn, BaseException):
            return failed(turn)
        cut = isinstance(turn, ModelResponse) and turn.stop_reason == "length"
        if request.path.startswith("/openai/v1/"):
            return openai(blocks_of(turn), number, request.json, cut=cut)
        chat = request.json["chatRequest"]
        answer = generic if chat["apiFormat"] == "GENERIC" else cohere
        return answer(blocks_of(turn), number, chat, cut=cut)

    def _misses(self, request: ReceivedRequest) -> str:
        if request.path.startswith("/openai/v1/"):
            return "" if request.headers.get("opc-compartment-id") == COMPARTMENT else "no compartment"
        if request.path != "/20231130/actions/chat":
            return f"no operation {request.path}"
        body = request.json
        if set(body) != {"compartmentId", "servingMode", "chatRequest"} or body["compartmentId"] != COMPARTMENT:
            return f"not ChatDetails: {sorted(body)}"
        chat = body["chatRequest"]
        unknown = set(chat) - (_GENERIC if chat["apiFormat"] == "GENERIC" else _COHERE)
        if unknown:
            return f"unknown fields {unknown}"
        if chat["apiFormat"] == "COHERE" and chat.get("toolResults") and chat["message"]:
            return "a message beside tool results"
        return ""


def arguments_of(block: ToolCall) -> str:
    """Arguments as the models of OpenAI write them."""
    return json.dumps(thaw(block.arguments), separators=(",", ":"), ensure_ascii=False)


def _stream(events: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> Answer:
    # Each piece is padded, so that its length does not tell what is in it; and nothing says that it was the last.
    return Answer.events(*({**event, "pad": "aaa"} for event in events), done="")


# -- GENERIC --------------------------------------------------------------------------------------


def generic(blocks: Sequence[Block], number: int, chat: Any, *, cut: bool = False) -> Answer:
    """An answer of the family GENERIC."""
    parts = [
        thaw(block.data) if isinstance(block, RawBlock) else {"type": "TEXT", "text": block.text}
        for block in blocks
        if isinstance(block, RawBlock | TextBlock)
    ]
    calls = [
        {
            "type": "FUNCTION",
            "id": block.id or f"call_{number}_{at}",
            "name": block.name,
            "arguments": arguments_of(block),
        }
        for at, block in enumerate(b for b in blocks if isinstance(b, ToolCall))
    ]
    message: dict[str, Any] = {"role": "ASSISTANT", "content": parts or None, "toolCalls": calls or None}
    finish = "length" if cut else "tool_calls" if calls else "stop"
    if not chat["isStream"]:
        choice = {"index": 0, "message": message, "finishReason": finish}
        answer = {"apiFormat": "GENERIC", "timeCreated": "2026-01-01T00:00:00Z", "choices": [choice], "usage": USAGE}
        return Answer.of({"modelId": "the-model", "modelVersion": "1.0", "chatResponse": answer})
    assert chat["streamOptions"] == {"isIncludeUsage": True}
    return _stream([*_deltas(parts, calls), {"finishReason": finish}, {"usage": USAGE}])


def _deltas(parts: list[dict[str, Any]], calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        for piece in pieces(part["text"]) if part["type"] == "TEXT" else [None]:
            content = [part if piece is None else {"type": "TEXT", "text": piece}]
            yield {"index": 0, "message": {"role": "ASSISTANT", "content": content}}
    for call in calls:
        yield {"index": 0, "message": {"role": "ASSISTANT", "toolCalls": [{**call, "arguments": ""}]}}
        for piece in pieces(call["arguments"]):
            yield {"index": 0, "message": {"toolCalls": [{"type": "FUNCTION", "arguments": piece}]}}


# -- COHERE ---------------------------------------------------------------------------------------


def cohere(blocks: Sequence[Block], number: int, chat: Any, *, cut: bool = False) -> Answer:
    """An answer of the family COHERE."""
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    calls = [
        {"name": block.name, "parameters": thaw(block.arguments)} for block in blocks if isinstance(block, ToolCall)
    ]
    whole: dict[str, Any] = {
        "apiFormat": "COHERE",
        "text": text,
        "chatHistory": [*chat.get("chatHistory", []), {"role": "CHATBOT", "message": text}],
        "finishReason": "MAX_TOKENS" if cut else "COMPLETE",
        "usage": USAGE,
    }
    if calls:
        whole["toolCalls"] = calls
    if not chat["isStream"]:
        return Answer.of({"modelId": "the-model", "modelVersion": "1.0", "chatResponse": whole})
    return _stream([*({"apiFormat": "COHERE", "text": piece} for piece in pieces(text)), whole])


# -- the OpenAI-compatible address ----------------------------------------------------------------


def openai(blocks: Sequence[Block], number: int, asked: Any, *, cut: bool = False) -> Answer:
    """An answer of Chat Completions."""
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    calls = [
        {
            "id": block.id or f"call_{number}_{at}",
            "type": "function",
            "function": {"name": block.name, "arguments": arguments_of(block)},
        }
        for at, block in enumerate(b for b in blocks if isinstance(b, ToolCall))
    ]
    finish = "length" if cut else "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": asked["model"]}
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = calls
    if not asked.get("stream"):
        return Answer.of(
            {**head, "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
        )
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(text)]
    deltas += [{"tool_calls": [{**call, "index": at}]} for at, call in enumerate(calls)]
    chunks: list[dict[str, Any]] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({**head, "choices": [], "usage": usage})
    return Answer.events(*chunks)
