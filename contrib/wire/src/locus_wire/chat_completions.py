"""Chat Completions, OpenAI's first form, which most servers speak: requests, answers, streams.

Sources: OpenAI's API reference, and what llama.cpp, vLLM, LM Studio, OpenRouter, DeepSeek and Azure add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from locus.core import thaw
from locus.core.messages import ThinkingBlock, Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk, StopReason
from locus.tools import ToolSpec
from locus_wire.bodies import hosted_tools, join_fields, json_bytes
from locus_wire.chat_history import REASONING, REFUSAL, conversation, key_of, read_message
from locus_wire.client import Client
from locus_wire.exchange import exchange
from locus_wire.openai_schemas import openai_strict_schema, output_form, output_text
from locus_wire.options import Options
from locus_wire.streams import Event, Malformed, check_shape, json_of
from locus_wire.thinking import THINK_TAGS, ThinkSplitter, chunks_of, split_thinking
from locus_wire.usage import count, usage

__all__ = ["ask", "body_of", "response_of", "usage_of"]

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filter",
}


async def ask(
    client: Client, path: str, request: ModelRequest, options: Options, on_chunk: OnChunk | None = None
) -> ModelResponse:
    """One model call.

    Args:
        client: of the server.
        path: ``"/chat/completions"``.
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
    """The bytes of a request."""
    settings = request.settings
    messages = conversation(request.messages, options)
    fields: dict[str, Any] = {"model": options.model}
    if stream:
        fields["stream"] = True
        if options.stream_usage:
            fields["stream_options"] = {"include_usage": True}
    hosted = hosted_tools(settings.extras)
    if request.tools or hosted:
        if settings.tool_choice is not None:
            fields["tool_choice"] = _choice(settings.tool_choice)
        if options.parallel is not None:
            fields["parallel_tool_calls"] = options.parallel
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        fields[options.max_tokens] = settings.max_tokens
    if settings.seed is not None:
        fields["seed"] = settings.seed
    if settings.stop:
        fields["stop"] = list(settings.stop)
    if request.output is not None and not options.structured:
        messages.append(json_bytes({"role": "system", "content": output_text(request.output)}))
    elif request.output is not None:
        form = output_form(request.output, strict=options.strict)
        fields["response_format"] = {"type": "json_schema", "json_schema": form}
    form_of_tools = f"locus_wire.chat.{options.strict}"
    tools = [spec.wire(form_of_tools, lambda s: _tool(s, options)) for spec in request.tools] + hosted
    return join_fields({**options.fields, **fields, **settings.extras}, {"tools": tools, "messages": messages})


def _tool(spec: ToolSpec, options: Options) -> bytes:
    strict = openai_strict_schema(spec.parameters) if options.strict else None
    function: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": strict or thaw(spec.parameters),
    }
    if strict is not None:
        function["strict"] = True
    return json_bytes({"type": "function", "function": function})


def _choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


# -- answers --------------------------------------------------------------------------------------


def response_of(data: Mapping[str, Any], options: Options) -> ModelResponse:
    """The response that a whole answer is.

    Raises:
        Malformed: it has no choice.
    """
    if not data["choices"]:
        raise Malformed("the answer has no choice")
    choice = data["choices"][0]
    said = choice["message"]
    thought, content = "", said.get("content")
    if isinstance(content, str):
        thought, text = split_thinking(content, options.think_tags)
        said = said if text == content else {**said, "content": text}
    message = read_message(said, options.provider)
    if thought:
        block = ThinkingBlock(thought, extras={key_of(options.provider): THINK_TAGS})
        message = evolve(message, content=(block, *message.content))
    finish = choice.get("finish_reason")
    stop = _STOPS.get(finish, "other") if finish else "stop"
    if message.tool_calls and stop in ("stop", "other"):
        stop = "tool_calls"  # some servers say "stop" nevertheless
    elif said.get(REFUSAL) and stop == "stop":
        stop = "refusal"
    return ModelResponse(
        message=message,
        usage=usage_of(data.get("usage") or {}),
        stop_reason=stop,
        model=str(data.get("model") or options.model),
        id=str(data.get("id") or ""),
    )


def usage_of(said: Mapping[str, Any]) -> Usage:
    """The tokens that a server counted, and the dollars where it says them (OpenRouter)."""
    cost = said.get("cost")
    return usage(
        count(said, "prompt_tokens"),
        count(said, "completion_tokens"),
        cached=count(said, "prompt_tokens_details", "cached_tokens") or count(said, "prompt_cache_hit_tokens"),
        written=count(said, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=count(said, "completion_tokens_details", "reasoning_tokens"),
        cost=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None,
    )


# -- streams --------------------------------------------------------------------------------------


class _StreamedAnswer:
    """The pieces of an answer, put together into the whole that it would have been."""

    def __init__(self, options: Options, on_chunk: OnChunk) -> None:
        self._options, self._on_chunk = options, on_chunk
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._at: dict[Any, dict[str, Any]] = {}
        self._head: dict[str, Any] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._begun = False
        self._splitter = ThinkSplitter(options.think_tags)
        self._response: ModelResponse | None = None

    def response(self) -> ModelResponse:
        """The whole."""
        assert self._response is not None
        return self._response

    def is_complete(self) -> bool:
        """Whether the answer is complete without a last event: some servers just close."""
        if self._finish is not None:
            self._finish_answer()
        return self._response is not None

    async def take(self, event: Event) -> bool:
        """Take one event."""
        if event.data.strip() == "[DONE]":
            self._finish_answer()
            for chunk in chunks_of(self._splitter.finish()):
                await self._on_chunk(chunk)
            return True
        heard: list[Chunk] = []
        with check_shape():
            data = json_of(event.data)
            self._head = self._head or data
            self._usage = data.get("usage") or self._usage
            for choice in data.get("choices") or ():
                if choice.get("index", 0) == 0:
                    self._begun = True
                    self._finish = choice.get("finish_reason") or self._finish
                    self._add(choice.get("delta") or {}, heard)
                    if self._finish is not None:
                        heard += chunks_of(self._splitter.finish())
        for chunk in heard:
            await self._on_chunk(chunk)
        return False

    def _finish_answer(self) -> None:
        if not self._begun:
            raise Malformed("the answer has no choice")
        said = {"role": "assistant", "content": None, **self._message}
        if self._calls:
            said["tool_calls"] = self._calls
        choice = {"message": said, "finish_reason": self._finish}
        with check_shape():
            self._response = response_of({**self._head, "choices": [choice], "usage": self._usage}, self._options)

    def _add(self, delta: Mapping[str, Any], heard: list[Chunk]) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                for piece in value or ():
                    self._call(piece, heard)
            elif name == "role" or value is None:
                self._message.setdefault(name, value)
            else:
                self._message[name] = _grow(self._message.get(name), value)
                if isinstance(value, str) and value:
                    if name == "content":
                        heard += chunks_of(self._splitter.feed(value))
                    elif name == REFUSAL:
                        heard.append(Chunk(value))
                    elif name in REASONING and not any(
                        self._message.get(n) for n in REASONING[: REASONING.index(name)]
                    ):
                        heard.append(Chunk(value, "reasoning"))

    def _call(self, piece: Mapping[str, Any], heard: list[Chunk]) -> None:
        """Put a piece to the call that it belongs to.

        That is the one with its index; but some servers give each call the index 0, or none, and tell them apart by
        their ids.
        """
        index, call_id = piece.get("index"), piece.get("id")
        call = self._at.get(index)
        if call is not None and call_id and call.get("id") and call_id != call["id"]:
            call = None
        function = piece.get("function") or {}
        if call is None:
            call = self._at[index] = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
        for name, value in piece.items():
            if name == "function":
                continue
            if name != "index" and value is not None:
                call[name] = value
        known = call["function"]
        for name, value in function.items():
            if name == "name":
                known[name] = known[name] if value in (None, known[name]) else known[name] + value
            elif value is not None:
                known[name] = _grow(known.get(name), value)
        if function.get("arguments"):
            heard.append(Chunk(function["arguments"], "tool_call"))


def _grow(before: Any, piece: Any) -> Any:
    """The new value of a field: text and lists grow, other values are replaced."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, list) and isinstance(piece, list):
        return _merge(before, piece)
    return piece


def _merge(before: list[Any], pieces: list[Any]) -> list[Any]:
    """A list of objects that have an index and stream like everything else, or of anything."""
    made = list(before)
    for piece in pieces:
        last = made[-1] if made else None
        if (
            isinstance(piece, dict)
            and isinstance(last, dict)
            and "index" in piece
            and last.get("index") == piece["index"]
            and last.get("type") == piece.get("type")
        ):
            made[-1] = {**last, **{k: _grow(last.get(k), v) if k in _GROWING else v for k, v in piece.items()}}
        else:
            made.append(piece)
    return made


#: The fields of OpenRouter's ``reasoning_details`` that come in pieces.
_GROWING = frozenset({"text", "summary", "data"})
