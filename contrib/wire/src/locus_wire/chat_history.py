"""The conversation in the form of Chat Completions; what the server said goes back as it came.

A turn of the assistant is written from its blocks. What these do not say, unknown fields and odd spacing included, is
kept with the message (`read_message`) and written again, unless a hook has changed what the message says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from locus.core import thaw
from locus.core.messages import (
    Block,
    MediaBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
)
from locus_wire.bodies import json_bytes
from locus_wire.calls import tool_call, unique_ids
from locus_wire.media import base64_of, data_url, unsupported_media, url_of
from locus_wire.options import Options

__all__ = ["REASONING", "REFUSAL", "blocks_of", "conversation", "key_of", "read_message"]

#: The fields that servers put reasoning into, in the order of preference.
REASONING = ("reasoning_content", "reasoning")
REFUSAL = "refusal"


def key_of(provider: str) -> str:
    """Where messages and blocks keep what is this form's and this provider's."""
    return f"{provider}.chat"


# -- what the server said -------------------------------------------------------------------------


def blocks_of(said: Mapping[str, Any], provider: str) -> tuple[Block, ...]:
    """The blocks of an assistant message as a server sent it."""
    key, blocks = key_of(provider), list[Block]()
    for field in REASONING:
        text = said.get(field)
        if isinstance(text, str) and text:
            blocks.append(ThinkingBlock(text, extras={key: field}))
            break
    text = _text(said.get("content"))
    if text:
        blocks.append(TextBlock(text))
    refused = said.get(REFUSAL)
    if isinstance(refused, str) and refused:
        blocks.append(TextBlock(refused, extras={key: REFUSAL}))
    blocks += unique_ids(_call(each) for each in said.get("tool_calls") or ())
    return tuple(blocks)


def read_message(said: Mapping[str, Any], provider: str) -> Message:
    """The message of what a server sent, with what its blocks do not say."""
    message = Message(Role.ASSISTANT, blocks_of(said, provider))
    if message.tool_calls:
        # Ids that were generated or made unique are kept: the results will refer to them.
        pairs = zip(said["tool_calls"], message.tool_calls, strict=True)
        said = {**said, "tool_calls": [{**each, "id": call.id} for each, call in pairs]}
    written = _assistant(message, provider, reasoning=True)
    rest = {name: value for name, value in said.items() if name not in written or written[name] != value}
    missing = [name for name in written if name not in said]
    if missing:
        rest[""] = missing
    return evolve(message, extras={key_of(provider): rest}) if rest else message


def _call(said: Mapping[str, Any]) -> ToolCall:
    function = said.get("function") or {}
    return tool_call(str(said.get("id") or ""), str(function.get("name") or ""), function.get("arguments"))


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    # Some servers answer in parts.
    return "".join(str(part.get("text") or "") for part in content if part.get("type", "text") == "text")


# -- what it is sent ------------------------------------------------------------------------------


@frozen
class _Encoding:
    """One message: its JSON, and the media of its results, which must wait until all results are given."""

    parts: tuple[bytes, ...]
    media: tuple[bytes, ...] = ()


def conversation(messages: Sequence[Message], options: Options) -> list[bytes]:
    """The messages, each as JSON: the same bytes for the same message.

    Raises:
        InputError: a message holds what the form has no place for.
    """
    provider = options.provider
    form = f"{key_of(provider)}{'' if options.reasoning else '-'}"
    out: list[bytes] = []
    waiting: list[bytes] = []

    def encode(message: Message) -> _Encoding:
        return _encode_message(message, provider, reasoning=options.reasoning)

    for message in messages:
        if waiting and message.role is not Role.TOOL:
            out += waiting
            waiting = []
        encoded = message.wire(form, encode)
        out += encoded.parts
        waiting += encoded.media
    return out + waiting


def _encode_message(message: Message, provider: str, *, reasoning: bool) -> _Encoding:
    if message.role is Role.ASSISTANT:
        return _Encoding((json_bytes(_verbatim(message, provider, reasoning=reasoning)),))
    if message.role is Role.TOOL:
        given = [_result(result, provider) for result in message.tool_results]
        return _Encoding(
            tuple(json_bytes(r) for r, _ in given), tuple(json_bytes(m) for _, m in given if m is not None)
        )
    made: dict[str, Any] = {"role": message.role.value, "content": _content(message.content, provider)}
    if message.name:
        made["name"] = message.name
    return _Encoding((json_bytes(made),))


def _verbatim(message: Message, provider: str, *, reasoning: bool) -> dict[str, Any]:
    written = _assistant(message, provider, reasoning=reasoning)
    rest = message.extras.get(key_of(provider))
    if not isinstance(rest, Mapping):
        return written
    rest = thaw(rest)
    for name in rest.pop("", ()):
        written.pop(name, None)
    if not reasoning:
        rest = {name: value for name, value in rest.items() if name not in (*REASONING, "reasoning_details")}
    said = {**written, **rest}
    # The kept form replaces the blocks only while they still say the same.
    same = [b for b in message.content if isinstance(b, TextBlock | ToolCall)]
    if [b for b in blocks_of(said, provider) if isinstance(b, TextBlock | ToolCall)] == same:
        return said
    return {**said, **_assistant(message, provider, reasoning=reasoning)}


def _assistant(message: Message, provider: str, *, reasoning: bool) -> dict[str, Any]:
    key, texts, refused = key_of(provider), list[str](), list[str]()
    made: dict[str, Any] = {"role": "assistant", "content": None}
    for block in message.content:
        if isinstance(block, TextBlock):
            (refused if block.extras.get(key) == REFUSAL else texts).append(block.text)
        elif isinstance(block, ThinkingBlock) and reasoning and (field := block.extras.get(key)) in REASONING:
            made[field] = made.get(field, "") + block.text
    calls = message.tool_calls
    if texts or not (calls or refused):
        made["content"] = "".join(texts)
    if refused:
        made[REFUSAL] = "".join(refused)
    if calls:
        made["tool_calls"] = [_encode_call(call) for call in calls]
    return made


def _encode_call(call: ToolCall) -> dict[str, Any]:
    raw = call.malformed
    arguments = json_bytes(call.arguments).decode() if raw is None else raw
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _result(result: ToolResult, provider: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A result, which is text, and what else it holds, which the user has to show."""
    content = result.content
    if isinstance(content, str):
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}, None
    text = "".join(block.text for block in content if isinstance(block, TextBlock))
    media = [block for block in content if isinstance(block, MediaBlock)]
    made = {"role": "tool", "tool_call_id": result.call_id, "content": text}
    if not media:
        return made, None
    named = result.name or "the tool"
    made["content"] = f"{text}\n(what {named} shows follows)".lstrip()
    shown: list[Block] = [TextBlock(f"What {named} shows:"), *media]
    return made, {"role": "user", "content": _content(shown, provider)}


def _content(blocks: Sequence[Block], provider: str) -> str | list[dict[str, Any]]:
    if all(isinstance(block, TextBlock) for block in blocks):
        return "".join(block.text for block in blocks if isinstance(block, TextBlock))
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, MediaBlock):
            parts.append(_medium(block, provider))
    return parts


def _medium(block: MediaBlock, provider: str) -> dict[str, Any]:
    if block.kind == "image":
        return {"type": "image_url", "image_url": {"url": url_of(block)}}
    if block.data is None:
        raise unsupported_media(provider, block, "fetch it and give its bytes")
    if block.kind == "audio":
        kind = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}.get(block.media_type)
        if kind is None:
            raise unsupported_media(provider, block, "give it as wav or mp3")
        return {"type": "input_audio", "input_audio": {"data": base64_of(block), "format": kind}}
    return {"type": "file", "file": {"filename": block.name or "document", "file_data": data_url(block)}}
