"""Servers of both forms that give the answers of a script, in the shapes of OpenAI's API reference."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from locus.core.errors import ContextOverflow, ModelError
from locus.core.frozen import thaw
from locus.core.messages import Block, RawBlock, TextBlock, ThinkingBlock, ToolCall
from locus.models.protocol import ModelResponse
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_testkit.scripted_model import Turn, blocks_of, never

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
_SIZE = 5


def pieces(text: str) -> list[str]:
    return [text[at : at + _SIZE] for at in range(0, len(text), _SIZE)] or [""]


def failed(error: BaseException) -> Answer:
    assert isinstance(error, ModelError)
    code = "context_length_exceeded" if isinstance(error, ContextOverflow) else None
    body = {"error": {"message": str(error), "type": "some_error", "code": code, "param": None}}
    return Answer.of(body, status=error.status or 500, headers={"x-request-id": "req-1"})


class Emulator:
    """A server and its script.

    Args:
        form: ``"chat"`` or ``"responses"``.
        turns: what it answers, in order.
    """

    def __init__(self, form: str, *turns: Turn) -> None:
        self.form = form
        self.turns = deque(turns)
        self.server = LocalServer(self._answer)
        self._numbers = iter(range(1, 10_000))
        self._lock = threading.Lock()

    def _answer(self, request: ReceivedRequest) -> Answer:
        with self._lock:
            turn: Any = self.turns.popleft()
            number = next(self._numbers)
        if turn is never:
            return Answer(status=0, ending="silent")
        if isinstance(turn, BaseException):
            return failed(turn)
        asked = request.json
        blocks = blocks_of(turn)
        cut = isinstance(turn, ModelResponse) and turn.stop_reason == "length"
        if self.form == "chat":
            return chat(blocks, number, asked, cut=cut)
        return responses(blocks, number, asked, cut=cut)


def arguments_of(block: ToolCall) -> str:
    # As OpenAI writes them.
    return json.dumps(thaw(block.arguments), separators=(",", ":"), ensure_ascii=False)


# -- Chat Completions -----------------------------------------------------------------------------


def chat(blocks: Sequence[Block], number: int, asked: Any, *, cut: bool = False) -> Answer:
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    calls = [
        {
            "id": block.id or f"call_{number}_{at}",
            "type": "function",
            "function": {"name": block.name, "arguments": arguments_of(block)},
        }
        for at, block in enumerate(b for b in blocks if isinstance(b, ToolCall))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    if calls:
        message["tool_calls"] = calls
    finish = "length" if cut else "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return Answer.of({**head, "object": "chat.completion", "choices": [choice], "usage": USAGE})
    events = [*chat_deltas(message, text, calls), {}]
    chunks = [
        {
            **head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else finish}],
        }
        for delta in events
    ]
    assert asked["stream_options"] == {"include_usage": True}
    chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    return Answer.events(*chunks)


def chat_deltas(message: dict[str, Any], text: str, calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if calls and not text else "", "refusal": None}
    for piece in pieces(text) if text else ():
        yield {"content": piece}
    for index, call in enumerate(calls):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


# -- Responses ------------------------------------------------------------------------------------


def items_of(blocks: Sequence[Block], number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for at, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            part = {"type": "output_text", "text": block.text, "annotations": [], "logprobs": []}
            items.append({"type": "message", "role": "assistant", "content": [part]})
        elif isinstance(block, ThinkingBlock):
            summary = [{"type": "summary_text", "text": block.text}]
            items.append({"type": "reasoning", "summary": summary, "encrypted_content": block.signature})
        elif isinstance(block, RawBlock):
            items.append(thaw(block.data))
        else:
            assert isinstance(block, ToolCall)
            call_id = block.id or f"call_{number}_{at}"
            call = {"type": "function_call", "call_id": call_id, "name": block.name, "arguments": arguments_of(block)}
            items.append(call)
    known = ("message", "reasoning", "function_call")
    about = [{"id": f"item_{number}_{at}", "status": "completed"} for at in range(len(items))]
    return [{**(more if item["type"] in known else {}), **item} for more, item in zip(about, items, strict=True)]


def responses(blocks: Sequence[Block], number: int, asked: Any, *, cut: bool = False) -> Answer:
    items = items_of(blocks, number)
    whole = {
        "id": f"resp_{number}",
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": asked["model"],
        "output": items,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    }
    if not asked.get("stream"):
        return Answer.of(whole)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {"type": item["type"]}})
        events += [{"output_index": index, "item_id": item.get("id"), **delta} for delta in response_deltas(item)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.incomplete" if cut else "response.completed", "response": whole})
    return Answer.events(*events, done="", named=True)


def response_deltas(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match item["type"]:
        case "message":
            for part_at, part in enumerate(item["content"]):
                for piece in pieces(part["text"]):
                    yield {"type": "response.output_text.delta", "content_index": part_at, "delta": piece}
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
        case "reasoning":
            for part_at, part in enumerate(item["summary"]):
                for piece in pieces(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", "summary_index": part_at, "delta": piece}
