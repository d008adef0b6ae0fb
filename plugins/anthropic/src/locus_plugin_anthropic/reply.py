"""From a message of the API to the response of the kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core.messages import Block, Message, Role, ToolCall, Usage
from locus.models import ModelResponse, StopReason
from locus_plugin_anthropic.blocks import NAME, Wire, block_of, drop_surrogates
from locus_wire import Malformed, unique_ids
from locus_wire.failures import bad_answer

__all__ = ["check_message", "response_of", "usage_of"]

_REASONS: dict[str | None, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}

#: What of an answer is kept elsewhere, or says nothing.
_ELSEWHERE = frozenset({"content", "role", "type", "usage"})


def check_message(data: Any) -> Wire:
    """The message that an answer is.

    Raises:
        Malformed: it is not a message.
    """
    if not isinstance(data, dict) or not isinstance(data.get("content"), list):
        raise Malformed("the answer is not a message of the Messages API; compare base_url with its documentation")
    if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in data["content"]):
        raise Malformed("the content of the answer must be a list of blocks")
    if not isinstance(data.get("stop_reason"), str | None):
        raise Malformed(f"the answer's stop_reason must be text or null, got {data['stop_reason']!r:.40}")
    return data


def response_of(data: Wire, raw: Mapping[int, str], usage: Usage, *, name: str) -> ModelResponse:
    """The response that a message is.

    Args:
        data: the message, see `check_message`.
        raw: the text of arguments that are not a JSON object, by the place of their block.
        usage: of all requests that it took.
        name: the model's name, where the message does not name it.

    Raises:
        BadAnswer: no run could keep it.
    """
    try:
        data = _storable(data)
        reason = data.get("stop_reason")
        ends = _REASONS.get(reason)
        blocks = _blocks(data["content"], raw, cut=ends == "length", refused=ends == "refusal")
        message = Message(Role.ASSISTANT, tuple(_with_ids(blocks)), extras={NAME: _about(data)})
    except (ValueError, RecursionError) as e:
        what = f"the answer cannot be kept ({type(e).__name__}: {e!s:.80})"
        raise bad_answer(NAME, what, status=200, retryable=True) from e
    return ModelResponse(
        message=message,
        usage=usage,
        stop_reason=_reason(reason, message.tool_calls),
        model=data["model"] if isinstance(data.get("model"), str) else name,
        id=data["id"] if isinstance(data.get("id"), str) else "",
    )


def usage_of(data: Mapping[str, Any]) -> Usage:
    """The tokens of a message, or of as much of it as has arrived.

    The API counts three disjoint parts of the prompt: read from a cache, written to one, and the rest.
    """
    told = data.get("usage")
    usage: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    details = usage.get("output_tokens_details")
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    answered = _count(usage, "output_tokens")
    thought = _count(details, "thinking_tokens") if isinstance(details, Mapping) else 0
    return Usage(
        prompt_tokens=_count(usage, "input_tokens") + read + written,
        completion_tokens=answered,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=min(thought, answered),
    )


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _reason(reason: str | None, calls: Sequence[ToolCall]) -> StopReason:
    found = _REASONS.get(reason)
    if found is None:
        return "tool_calls" if calls else "other"
    if found in ("stop", "tool_calls"):
        return "tool_calls" if calls else "stop"
    return found


def _about(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in _ELSEWHERE and value is not None}


def _blocks(content: list[Any], raw: Mapping[int, str], *, cut: bool, refused: bool) -> list[Block]:
    last = len(content) - 1
    blocks = [
        block_of(block, cut=cut and at == last, raw=drop_surrogates(raw.get(at))) for at, block in enumerate(content)
    ]
    # What the model was stopped in the middle of asking for is not to be done.
    return [block for block in blocks if not isinstance(block, ToolCall)] if refused else blocks


def _storable(data: Wire) -> Wire:
    """The message without what no journal could hold: lone surrogates.

    Raises:
        ValueError: it holds an invalid number.
    """
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        repaired: Wire = drop_surrogates(data)
        return repaired
    return data


def _with_ids(blocks: Sequence[Block]) -> list[Block]:
    """Calls with an id each, and no two with the same."""
    calls = iter(unique_ids(block for block in blocks if isinstance(block, ToolCall)))
    return [next(calls) if isinstance(block, ToolCall) else block for block in blocks]
