"""The family COHERE: the Command models, which have a form of their own.

Sources: CohereChatRequest and CohereChatResponse of the Inference API, and Cohere's documentation of tool use in
several steps: the newest results have a field of their own, older ones in the history. Calls have no ids here; they
are made up, and results find their calls by them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core import thaw
from locus.core.errors import InputError
from locus.core.messages import Block, MediaBlock, Message, Role, TextBlock, ToolCall, ToolResult
from locus.models import Chunk, ModelRequest, ModelResponse, StopReason
from locus.tools import ToolSpec
from locus_plugin_oci.native import usage_of
from locus_wire.bodies import hosted_tools, join_fields, json_bytes
from locus_wire.calls import tool_call, unique_ids
from locus_wire.media import unsupported_media
from locus_wire.streams import ErrorInAnswer, Malformed

__all__ = ["Cohere", "CoherePieces"]

#: Where a message keeps the service's citations.
KEY = "oci.cohere"

_STOPS: dict[str, StopReason] = {"COMPLETE": "stop", "MAX_TOKENS": "length", "ERROR_TOXIC": "filter"}

#: The service wants the names that Python has for types.
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "List",
    "object": "Dict",
}
_SAID_ELSEWHERE = frozenset({"type", "description", "title"})


class Cohere:
    """Requests and answers of this family."""

    def request(self, request: ModelRequest, model: str, *, stream: bool) -> bytes:
        """The JSON of the chat request.

        Raises:
            InputError: it holds what these models cannot be sent.
        """
        settings, messages = request.settings, list(request.messages)
        fields: dict[str, Any] = {"apiFormat": "COHERE", "isStream": stream}
        if stream:
            fields["streamOptions"] = {"isIncludeUsage": True}
        preamble: list[str] = []
        while messages and messages[0].role is Role.SYSTEM:
            preamble.append(_text(messages.pop(0).content))
        if preamble:
            fields["preambleOverride"] = "\n\n".join(preamble)
        history, results, said = _turns(messages)
        fields["message"] = said
        choice = settings.tool_choice
        if choice not in (None, "auto", "none"):
            raise InputError(
                f"tool_choice must not be {choice!r}: cohere's models cannot be made to call a tool; use 'auto'"
            )
        tools = [spec.wire(KEY, _tool) for spec in request.tools] + hosted_tools(settings.extras)
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            fields["maxTokens"] = settings.max_tokens
        if settings.seed is not None:
            fields["seed"] = settings.seed
        if settings.stop:
            fields["stopSequences"] = list(settings.stop)
        if request.output is not None:
            fields["responseFormat"] = {"type": "JSON_OBJECT", "schema": thaw(request.output.schema)}
        lists = {"tools": tools if choice != "none" else [], "chatHistory": history, "toolResults": results}
        return join_fields({**fields, **settings.extras}, lists)

    def response(self, data: Mapping[str, Any]) -> ModelResponse:
        """The response that an answer is.

        Raises:
            Malformed: it says neither why the model stopped nor anything else.
            Told: it says that the model failed.
        """
        finish = data.get("finishReason")
        if finish in ("ERROR", "ERROR_LIMIT", "USER_CANCEL"):
            code = "context_length_exceeded" if finish == "ERROR_LIMIT" else finish
            raise ErrorInAnswer(
                {"code": code, "message": data.get("errorMessage") or f"the model stopped with {finish}"}
            )
        text = data.get("text")
        if finish is None and text is None:
            raise Malformed("the answer has neither a text nor a reason to stop")
        if not isinstance(text, str | None):
            raise Malformed(f"the text of the answer must be a str, got {type(text).__name__}")
        blocks: list[Block] = [TextBlock(text)] if text else []
        calls = unique_ids(
            tool_call("", str(each.get("name") or ""), each.get("parameters")) for each in data.get("toolCalls") or ()
        )
        stop = _STOPS.get(finish or "COMPLETE", "other")
        sources = {name: data[name] for name in ("citations", "documents", "searchQueries") if data.get(name)}
        return ModelResponse(
            message=Message(Role.ASSISTANT, (*blocks, *calls), extras={KEY: sources} if sources else {}),
            usage=usage_of(data.get("usage")),
            stop_reason="tool_calls" if calls and stop in ("stop", "other") else stop,
        )

    def gathering(self) -> CoherePieces:
        """For one stream."""
        return CoherePieces()


def _tool(spec: ToolSpec) -> bytes:
    """A tool: its parameters one by one, of which only type and description can be said; the rest becomes text."""
    schema = thaw(spec.parameters)
    needed = schema.get("required") or ()
    definitions = {}
    for name, each in (schema.get("properties") or {}).items():
        kind = each.get("type")
        more = {key: value for key, value in each.items() if key not in _SAID_ELSEWHERE}
        told = [each["description"]] if each.get("description") else []
        if more:
            told.append(f"JSON Schema: {json.dumps(more, ensure_ascii=False)}")
        definitions[name] = {
            "description": ". ".join(told) or name,
            "type": _TYPES.get(kind, "any") if isinstance(kind, str) else "any",
            "isRequired": name in needed,
        }
    made: dict[str, Any] = {"name": spec.name, "description": spec.description}
    if schema.get("$defs"):
        made["description"] += f"\nDefinitions: {json.dumps(schema['$defs'], ensure_ascii=False)}"
    return json_bytes({**made, "parameterDefinitions": definitions})


# -- the conversation -----------------------------------------------------------------------------


def _turns(messages: Sequence[Message]) -> tuple[list[bytes], list[bytes], str]:
    """The history, the results that the model has not seen yet, and what the user says now."""
    newest = len(messages)
    while newest and messages[newest - 1].role is Role.TOOL:
        newest -= 1
    history: list[bytes] = []
    results: list[bytes] = []
    waiting: list[ToolCall] = []
    said = ""
    for at, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            waiting = list(message.tool_calls)
            history.append(message.wire(KEY, _chatbot))
        elif message.role is Role.TOOL:
            given = [json_bytes(_result(result, waiting)) for result in message.tool_results]
            if at >= newest:
                results += given
            else:
                history.append(b'{"role":"TOOL","toolResults":[' + b",".join(given) + b"]}")
        elif at == len(messages) - 1:
            said = _text(message.content)
        else:
            history.append(message.wire(KEY, _plain))
    return history, results, said


def _plain(message: Message) -> bytes:
    return json_bytes({"role": message.role.name, "message": _text(message.content)})


def _chatbot(message: Message) -> bytes:
    made: dict[str, Any] = {"role": "CHATBOT", "message": message.text}
    if message.tool_calls:
        made["toolCalls"] = [_call(call) for call in message.tool_calls]
    return json_bytes(made)


def _call(call: ToolCall) -> dict[str, Any]:
    parameters = thaw(call.arguments) if call.malformed is None else {"malformed": call.malformed}
    return {"name": call.name, "parameters": parameters}


def _result(result: ToolResult, waiting: list[ToolCall]) -> dict[str, Any]:
    # Ids may repeat, so the first call that still waits under this id is meant.
    at = next((i for i, call in enumerate(waiting) if call.id == result.call_id), 0)
    call = waiting.pop(at) if waiting else ToolCall(result.call_id, result.name)
    content = result.content
    text = content if isinstance(content, str) else _text(content)
    return {"call": _call(call), "outputs": [{"output": text}]}


def _text(blocks: Sequence[Block]) -> str:
    for block in blocks:
        if isinstance(block, MediaBlock):
            raise unsupported_media("oci", block, "cohere's models read text only")
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


# -- streams --------------------------------------------------------------------------------------


class CoherePieces:
    """The pieces of an answer; the last one holds it whole."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._last: dict[str, Any] = {}
        self._calls: list[Any] = []

    @property
    def is_finished(self) -> bool:
        """Whether the piece was there that says why the model stopped."""
        return bool(self._last.get("finishReason"))

    @property
    def has_usage(self) -> bool:
        """Whether the piece was there that says what it cost."""
        return bool(self._last.get("usage"))

    def take(self, piece: Mapping[str, Any]) -> list[Chunk]:
        """Add a piece; returns the new chunks."""
        last = bool(piece.get("finishReason"))
        calls = piece.get("toolCalls") or ()
        heard = [Chunk(json.dumps(each["parameters"], ensure_ascii=False), "tool_call") for each in calls]
        if calls:
            self._calls = list(calls)
        text = piece.get("text")
        if last or piece.get("usage"):
            self._last |= {name: value for name, value in piece.items() if value is not None and name != "text"}
        if last and isinstance(text, str):
            # The last piece repeats everything; what is new in it is shown now.
            told = "".join(self._texts)
            text = text[len(told) :] if text.startswith(told) else ""
        if isinstance(text, str) and text:
            self._texts.append(text)
            heard.append(Chunk(text))
        return heard

    def whole(self) -> Mapping[str, Any]:
        """The answer as if it had come in one piece."""
        return {**self._last, "text": "".join(self._texts), "toolCalls": self._calls}
