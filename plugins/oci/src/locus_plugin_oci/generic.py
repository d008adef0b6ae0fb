"""The family GENERIC: the models of OpenAI, xAI, Meta, Google and others, in the service's own words.

Sources: GenericChatRequest and GenericChatResponse of the Inference API. The events of a stream are not in it; their
form is the one that Oracle's own LangChain package reads: the fields of a choice, in pieces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from locus.core import thaw
from locus.core.messages import Block, MediaBlock, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall
from locus.models import Chunk, ModelRequest, ModelResponse, OutputSpec, StopReason
from locus.tools import ToolSpec
from locus_plugin_oci.native import usage_of
from locus_wire import NotStrict, strict_schema
from locus_wire.bodies import hosted_tools, join_fields, json_bytes
from locus_wire.calls import arguments_of, tool_call, unique_ids
from locus_wire.media import unsupported_media, url_of
from locus_wire.streams import Malformed

__all__ = ["Generic", "GenericPieces"]

#: Where messages and blocks keep what is this form's.
KEY = "oci.generic"

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
    "safety": "filter",
}

#: What the service calls a medium.
_MEDIA = {"image": ("IMAGE", "imageUrl"), "audio": ("AUDIO", "audioUrl"), "document": ("DOCUMENT", "documentUrl")}


class Generic:
    """Requests and answers of this family."""

    def request(self, request: ModelRequest, model: str, *, stream: bool) -> bytes:
        """The JSON of the chat request."""
        settings = request.settings
        fields: dict[str, Any] = {"apiFormat": "GENERIC", "isStream": stream}
        if stream:
            fields["streamOptions"] = {"isIncludeUsage": True}
        hosted = hosted_tools(settings.extras)
        if (request.tools or hosted) and settings.tool_choice is not None:
            fields["toolChoice"] = _choice(settings.tool_choice)
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            # OpenAI's models refuse the older name.
            fields["maxCompletionTokens" if model.startswith("openai.") else "maxTokens"] = settings.max_tokens
        if settings.seed is not None:
            fields["seed"] = settings.seed
        if settings.stop:
            fields["stop"] = list(settings.stop)
        if request.output is not None:
            fields["responseFormat"] = _format(request.output)
        tools = [spec.wire(KEY, _tool) for spec in request.tools] + hosted
        return join_fields({**fields, **settings.extras}, {"tools": tools, "messages": _conversation(request.messages)})

    def response(self, data: Mapping[str, Any]) -> ModelResponse:
        """The response that an answer is.

        Raises:
            Malformed: it has no choice.
        """
        if not data["choices"]:
            raise Malformed("the answer has no choice")
        choice = data["choices"][0]
        said = choice.get("message") or {}
        message = _read_message(said)
        finish = choice.get("finishReason")
        stop = _STOPS.get(str(finish).lower(), "other") if finish else "stop"
        if message.tool_calls and stop in ("stop", "other"):
            stop = "tool_calls"
        elif said.get("refusal") and stop == "stop":
            stop = "refusal"
        return ModelResponse(
            message=message, usage=usage_of(data.get("usage") or choice.get("usage")), stop_reason=stop
        )

    def gathering(self) -> GenericPieces:
        """For one stream."""
        return GenericPieces()


def _choice(choice: str) -> dict[str, str]:
    if choice in ("auto", "none", "required"):
        return {"type": choice.upper()}
    return {"type": "FUNCTION", "name": choice}


def _format(output: OutputSpec) -> dict[str, Any]:
    schema, strict = thaw(output.schema), False
    if output.strict:
        with contextlib.suppress(NotStrict):
            schema, strict = strict_schema(output.schema), True
    return {"type": "JSON_SCHEMA", "jsonSchema": {"name": output.name, "schema": schema, "isStrict": strict}}


def _tool(spec: ToolSpec) -> bytes:
    function = {"type": "FUNCTION", "name": spec.name, "description": spec.description}
    return json_bytes({**function, "parameters": thaw(spec.parameters)})


# -- what the service said ------------------------------------------------------------------------


def _blocks(said: Mapping[str, Any]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if isinstance(text := said.get("reasoningContent"), str) and text:
        blocks.append(ThinkingBlock(text, extras={KEY: True}))
    for part in said.get("content") or ():
        if part.get("type") != "TEXT":
            blocks.append(RawBlock("oci", part))
        elif part.get("text"):
            blocks.append(TextBlock(part["text"]))
    if isinstance(text := said.get("refusal"), str) and text:
        blocks.append(TextBlock(text, extras={KEY: "refusal"}))
    calls = said.get("toolCalls") or ()
    blocks += unique_ids(
        tool_call(str(each.get("id") or ""), str(each.get("name") or ""), each.get("arguments")) for each in calls
    )
    return tuple(blocks)


def _read_message(said: Mapping[str, Any]) -> Message:
    """The message of what the service sent, with what its blocks do not say; a null field counts as missing."""
    said = {name: value for name, value in said.items() if value is not None}
    message = Message(Role.ASSISTANT, _blocks(said))
    if message.tool_calls:
        # Ids that were generated or made unique are kept: the results will refer to them.
        pairs = zip(said["toolCalls"], message.tool_calls, strict=True)
        said = {**said, "toolCalls": [{**each, "id": call.id} for each, call in pairs]}
    written = _assistant(message)
    rest = {name: value for name, value in said.items() if name not in written or written[name] != value}
    missing = [name for name in written if name not in said]
    if missing:
        rest[""] = missing
    return evolve(message, extras={KEY: rest}) if rest else message


# -- what it is sent ------------------------------------------------------------------------------


def _conversation(messages: Sequence[Message]) -> list[bytes]:
    out: list[bytes] = []
    waiting: list[bytes] = []
    for message in messages:
        if message.role is not Role.TOOL and waiting:
            out, waiting = out + waiting, []
        parts, media = message.wire(KEY, _encode_message)
        out += parts
        waiting += media
    return out + waiting


def _encode_message(message: Message) -> tuple[list[bytes], list[bytes]]:
    """One message, and the media of its results, which must wait until all results are given."""
    if message.role is Role.ASSISTANT:
        return [json_bytes(_verbatim(message))], []
    if message.role is not Role.TOOL:
        made: dict[str, Any] = {"role": message.role.name, "content": _content(message.content)}
        if message.name:
            made["name"] = message.name
        return [json_bytes(made)], []
    results, media = list[bytes](), list[bytes]()
    for result in message.tool_results:
        given = (TextBlock(result.content),) if isinstance(result.content, str) else result.content
        shown = [block for block in given if isinstance(block, MediaBlock)]
        text = "".join(block.text for block in given if isinstance(block, TextBlock))
        if shown:
            named = result.name or "the tool"
            text = f"{text}\n(what {named} shows follows)".lstrip()
            content = _content([TextBlock(f"What {named} shows:"), *shown])
            media.append(json_bytes({"role": "USER", "content": content}))
        content = [{"type": "TEXT", "text": text}]
        results.append(json_bytes({"role": "TOOL", "toolCallId": result.call_id, "content": content}))
    return results, media


def _content(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"type": "TEXT", "text": block.text})
        elif isinstance(block, MediaBlock):
            if block.kind not in _MEDIA:
                raise unsupported_media("oci", block, "give an image, an audio clip or a document")
            kind, field = _MEDIA[block.kind]
            parts.append({"type": kind, field: {"url": url_of(block)}})
    return parts or [{"type": "TEXT", "text": ""}]


def _verbatim(message: Message) -> dict[str, Any]:
    written = _assistant(message)
    rest = message.extras.get(KEY)
    if isinstance(rest, Mapping):
        rest = thaw(rest)
        missing = rest.pop("", ())
        said = {**{name: value for name, value in written.items() if name not in missing}, **rest}
        # The kept form replaces the blocks only while they still say the same.
        same = [b for b in message.content if isinstance(b, TextBlock | ToolCall)]
        unchanged = [b for b in _blocks(said) if isinstance(b, TextBlock | ToolCall)] == same
        written = said if unchanged else {**said, **written}
    if written.get("toolCalls") and not written.get("content"):
        # The service itself sends calls without a text, and fails on what it has sent.
        written["content"] = [{"type": "TEXT", "text": "."}]
    return written


def _assistant(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": "ASSISTANT"}
    parts: list[Any] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock) and KEY in block.extras:
            made["reasoningContent"] = made.get("reasoningContent", "") + block.text
        elif isinstance(block, TextBlock) and block.extras.get(KEY) == "refusal":
            made["refusal"] = block.text
        elif isinstance(block, TextBlock):
            parts.append({"type": "TEXT", "text": block.text})
        elif isinstance(block, RawBlock) and block.provider == "oci":
            parts.append(thaw(block.data))
    calls = message.tool_calls
    if parts or not calls:
        made["content"] = parts or [{"type": "TEXT", "text": ""}]
    if calls:
        made["toolCalls"] = [_encode_call(call) for call in calls]
    return made


def _encode_call(call: ToolCall) -> dict[str, str]:
    arguments = json_bytes(thaw(call.arguments)).decode() if call.malformed is None else call.malformed
    return {"id": call.id, "type": "FUNCTION", "name": call.name, "arguments": arguments}


# -- streams --------------------------------------------------------------------------------------


class GenericPieces:
    """The pieces of an answer."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        #: The parts of the content, and the pieces of the text of each.
        self._parts: list[tuple[dict[str, Any], list[str]]] = []
        self._calls: list[dict[str, Any]] = []
        self._at: dict[Any, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage: Any = None

    @property
    def is_finished(self) -> bool:
        """Whether the piece was there that says why the model stopped."""
        return self._finish is not None

    @property
    def has_usage(self) -> bool:
        """Whether the piece was there that says what it cost."""
        return self._usage is not None

    def take(self, piece: Mapping[str, Any]) -> list[Chunk]:
        """Add a piece; returns the new chunks."""
        heard: list[Chunk] = []
        if piece.get("index", 0) == 0:
            for name, value in (piece.get("message") or {}).items():
                self._add(name, value, heard)
            self._finish = piece.get("finishReason") or self._finish
        self._usage = piece.get("usage") or self._usage
        return heard

    def whole(self) -> Mapping[str, Any]:
        """The answer as if it had come in one piece."""
        said = {"role": "ASSISTANT", **self._message}
        if self._parts:
            parts = [(part, "".join(texts)) for part, texts in self._parts]
            said["content"] = [part if part.get("type") != "TEXT" else {**part, "text": text} for part, text in parts]
        if self._calls:
            said["toolCalls"] = self._calls
        return {"choices": [{"message": said, "finishReason": self._finish}], "usage": self._usage}

    def _add(self, name: str, value: Any, heard: list[Chunk]) -> None:
        if name == "toolCalls":
            for each in value or ():
                self._call(each, heard)
        elif name == "content":
            for part in value or ():
                self._part(part, heard)
        elif name in ("reasoningContent", "refusal") and isinstance(value, str):
            self._message[name] = self._message.get(name, "") + value
            if value:
                heard.append(Chunk(value, "reasoning" if name == "reasoningContent" else "text"))
        elif value is not None:
            self._message[name] = value

    def _part(self, part: Mapping[str, Any], heard: list[Chunk]) -> None:
        text = part.get("text")
        if part.get("type") != "TEXT" or not isinstance(text, str):
            self._parts.append((dict(part), []))
            return
        if not self._parts or self._parts[-1][0].get("type") != "TEXT":
            self._parts.append(({}, []))
        last, texts = self._parts[-1]
        last |= part
        texts.append(text)
        if text:
            heard.append(Chunk(text))

    def _call(self, piece: Mapping[str, Any], heard: list[Chunk]) -> None:
        """Put a piece to the call that it belongs to.

        That is the one with its index, unless it has another id; without an index a piece with a name may begin a call.
        """
        index, call_id = piece.get("index"), piece.get("id")
        call = self._at.get(index)
        if call is not None and (
            (call_id and call["id"] and call_id != call["id"]) or (index is None and _begins(piece, call["arguments"]))
        ):
            call = None
        if call is None:
            call = self._at[index] = {"id": "", "type": "FUNCTION", "name": "", "arguments": ""}
            self._calls.append(call)
        for field, value in piece.items():
            if field == "arguments":
                call[field] += value or ""
            elif field != "index" and value:
                call[field] = value
        if piece.get("arguments"):
            heard.append(Chunk(piece["arguments"], "tool_call"))


def _begins(piece: Mapping[str, Any], before: str) -> bool:
    """Whether a piece with a name begins a call: it has no arguments yet, or those of the one before are whole."""
    if not piece.get("name") or not before:
        return False
    return not piece.get("arguments") or arguments_of(before) is not None
