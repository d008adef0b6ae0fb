"""Responses, OpenAI's second form: requests, answers, streams.

Nothing is left with the server unless it is asked to keep it: the whole conversation is sent each time, with the
model's reasoning, encrypted, in its place. Source: OpenAI's API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core import thaw
from locus.core.messages import Message, Role, Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk, StopReason
from locus.tools import ToolSpec
from locus_wire.bodies import hosted_tools, join_fields, json_bytes
from locus_wire.client import Client
from locus_wire.exchange import exchange
from locus_wire.openai_schemas import openai_strict_schema, output_form, output_text
from locus_wire.options import Options
from locus_wire.response_items import between, blocks_of, conversation
from locus_wire.streams import ErrorInAnswer, Event, Malformed, check_shape, json_of
from locus_wire.thinking import ThinkSplitter, chunks_of
from locus_wire.usage import count, usage

__all__ = ["ask", "body_of", "response_of"]

_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.function_call_arguments.delta": "tool_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


async def ask(
    client: Client, path: str, request: ModelRequest, options: Options, on_chunk: OnChunk | None = None
) -> ModelResponse:
    """One model call.

    Args:
        client: of the server.
        path: ``"/responses"``.
        request: what to ask.
        options: how the server wants it.
        on_chunk: see `locus.models.Model.complete`.

    Raises:
        ModelError: see `locus_wire.errors`.
        InputError: the request holds what the form has no place for.
    """
    body = body_of(request, options, stream=on_chunk is not None)
    streamed = None if on_chunk is None else _StreamedAnswer(options, on_chunk)
    return await exchange(client, path, body, request, read=lambda data: response_of(data, options), streamed=streamed)


# -- requests -------------------------------------------------------------------------------------


def body_of(request: ModelRequest, options: Options, *, stream: bool) -> bytes:
    """The bytes of a request. The form has no place for ``seed`` and ``stop``."""
    settings = request.settings
    items = conversation(request.messages, options)
    fields: dict[str, Any] = {"model": options.model, "store": options.store}
    if options.reasoning and not options.store:
        fields["include"] = ["reasoning.encrypted_content"]
    if stream:
        fields["stream"] = True
    hosted = hosted_tools(settings.extras)
    if request.tools or hosted:
        if settings.tool_choice is not None:
            fields["tool_choice"] = _choice(settings.tool_choice)
        if options.parallel is not None:
            fields["parallel_tool_calls"] = options.parallel
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        fields["max_output_tokens"] = settings.max_tokens
    if request.output is not None and not options.structured:
        items.append(json_bytes({"type": "message", "role": "system", "content": output_text(request.output)}))
    elif request.output is not None:
        fields["text"] = {"format": {"type": "json_schema", **output_form(request.output, strict=options.strict)}}
    form_of_tools = f"locus_wire.responses.{options.strict}"
    tools = [spec.wire(form_of_tools, lambda s: _tool(s, options)) for spec in request.tools] + hosted
    return join_fields({**options.fields, **fields, **settings.extras}, {"tools": tools, "input": items})


def _tool(spec: ToolSpec, options: Options) -> bytes:
    strict = openai_strict_schema(spec.parameters) if options.strict else None
    return json_bytes(
        {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": strict or thaw(spec.parameters),
            "strict": strict is not None,  # without it the server makes a strict one of its own
        }
    )


def _choice(choice: str) -> Any:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


# -- answers --------------------------------------------------------------------------------------


def response_of(data: Mapping[str, Any], options: Options) -> ModelResponse:
    """The response that a whole answer is.

    Raises:
        Malformed: it has no output.
        Told: it is a failure.
    """
    status = data.get("status") or "completed"
    if status in ("failed", "cancelled"):
        raise ErrorInAnswer(data.get("error") or f"the answer has the status {status}")
    items = data["output"]
    if not items and status == "completed":
        raise Malformed("the answer has no output")
    message = Message(Role.ASSISTANT, blocks_of(items, options.provider, options.think_tags))
    return ModelResponse(
        message=message,
        usage=_usage(data.get("usage") or {}),
        stop_reason=_stop(data, message, items),
        model=str(data.get("model") or options.model),
        id=str(data.get("id") or ""),
    )


def _stop(data: Mapping[str, Any], message: Message, items: Any) -> StopReason:
    if data.get("status") == "incomplete":
        reason = (data.get("incomplete_details") or {}).get("reason")
        return "length" if reason == "max_output_tokens" else "filter" if reason == "content_filter" else "other"
    if message.tool_calls:
        return "tool_calls"
    parts = [part for item in items if item["type"] == "message" for part in item.get("content") or ()]
    refused = bool(parts) and all(isinstance(part, Mapping) and part.get("type") == "refusal" for part in parts)
    return "refusal" if refused else "stop"


def _usage(said: Mapping[str, Any]) -> Usage:
    return usage(
        count(said, "input_tokens"),
        count(said, "output_tokens"),
        cached=count(said, "input_tokens_details", "cached_tokens"),
        written=count(said, "input_tokens_details", "cache_write_tokens"),
        reasoning=count(said, "output_tokens_details", "reasoning_tokens"),
    )


# -- streams --------------------------------------------------------------------------------------


class _StreamedAnswer:
    """Shows the pieces of an answer; the whole comes with the last event."""

    def __init__(self, options: Options, on_chunk: OnChunk) -> None:
        self._options, self._on_chunk = options, on_chunk
        self._items: list[Mapping[str, Any]] = []
        self._reasoned: Any = None
        self._splitter = ThinkSplitter(options.think_tags)
        #: The part that the answer's text begins with, the only one that may begin with thoughts.
        self._first: Any = None
        self._response: ModelResponse | None = None

    def response(self) -> ModelResponse:
        """The whole."""
        assert self._response is not None
        return self._response

    def is_complete(self) -> bool:
        """Whether the last event has come."""
        return self._response is not None

    async def take(self, event: Event) -> bool:
        """Take one event."""
        if event.data.strip() == "[DONE]":
            return self.is_complete()
        with check_shape():
            data = json_of(event.data)
            kind = data.get("type") or event.event
            heard = self._pieces(kind, data)
        for piece in heard:
            await self._on_chunk(piece)
        return kind in ("response.completed", "response.incomplete")

    def _pieces(self, kind: str, data: Mapping[str, Any]) -> list[Chunk]:
        if kind in _DELTAS:
            text = data["delta"]
            if not isinstance(text, str):
                raise Malformed(f"a piece of the answer must hold text, got {type(text).__name__}")
            if _DELTAS[kind] == "reasoning":
                # The parts of a reasoning are separate in the answer, so they are in the chunks.
                at = (data.get("output_index"), data.get("summary_index", data.get("content_index")))
                if self._reasoned is not None and self._reasoned[0] == at[0] and self._reasoned != at:
                    text = between + text
                self._reasoned = at
            if kind == "response.output_text.delta":
                return self._split(text, (data.get("output_index"), data.get("content_index")))
            return [Chunk(text, _DELTAS[kind])] if text else []
        if kind == "response.output_item.done":
            self._items.append(data["item"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            whole = data["response"]
            # Some servers leave out of the last event what they have sent before.
            self._response = response_of({**whole, "output": whole.get("output") or self._items}, self._options)
            return chunks_of(self._splitter.finish())
        elif kind == "error":
            raise ErrorInAnswer(data)
        return []

    def _split(self, text: str, part: Any) -> list[Chunk]:
        if self._first in (None, part):
            self._first = part
            return chunks_of(self._splitter.feed(text))
        # What the first part has held back, as the beginning of a tag, comes before.
        return [*chunks_of(self._splitter.finish()), *([Chunk(text)] if text else ())]
