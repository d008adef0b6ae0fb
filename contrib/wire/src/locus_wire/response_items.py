"""The conversation as items of the Responses form; what the server said goes back as it came.

An item of the model becomes blocks, and its own fields (ids, states, annotations, whatever is new) stay with them in
``extras``: reasoning with its encrypted content, calls with their ids. Any other item is a raw block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from locus.core import thaw
from locus.core.messages import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
)
from locus_wire.bodies import json_bytes
from locus_wire.calls import arguments_of, tool_call, unique_ids
from locus_wire.media import data_url, unsupported_media, url_of
from locus_wire.options import Options
from locus_wire.thinking import THINK_TAGS, ThinkTags, split_thinking

__all__ = ["between", "blocks_of", "conversation", "key_of"]

#: The separator between the parts of a reasoning.
between = "\n\n"

#: The parts of a message that are text, with the field that holds it.
_TEXTS = {"output_text": "text", "refusal": "refusal"}


def key_of(provider: str) -> str:
    """Where blocks keep what is this form's and this provider's."""
    return f"{provider}.responses"


# -- what the server said -------------------------------------------------------------------------


def blocks_of(items: Sequence[Mapping[str, Any]], provider: str, think_tags: ThinkTags = "off") -> tuple[Block, ...]:
    """The blocks of the output items of one answer.

    Args:
        items: as the server sent them.
        provider: the scheme of the provider.
        think_tags: how the model marks thoughts in its text; they are not sent back.
    """
    blocks: list[Block] = []
    for item in items:
        kind = item["type"]
        if kind == "message":
            blocks += _texts(item, provider)
        elif kind == "function_call":
            blocks.append(_call(item, provider))
        elif kind == "reasoning":
            blocks.append(_reasoning(item, provider))
        else:
            blocks.append(RawBlock(provider, item))
    calls = iter(unique_ids(block for block in blocks if isinstance(block, ToolCall)))
    blocks = [next(calls) if isinstance(block, ToolCall) else block for block in blocks]
    first = next((at for at, block in enumerate(blocks) if isinstance(block, TextBlock)), None)
    if first is not None:
        blocks[first : first + 1] = _split_first(blocks[first], provider, think_tags)
    return tuple(blocks)


def _split_first(block: Block, provider: str, think_tags: ThinkTags) -> Iterator[Block]:
    assert isinstance(block, TextBlock)
    key = key_of(provider)
    thought, text = split_thinking(block.text, think_tags)
    if "part" not in block.extras[key] or block.extras[key]["part"].get("type") == "refusal" or not thought:
        yield block
        return
    yield ThinkingBlock(thought, extras={key: THINK_TAGS})
    if text:
        yield evolve(block, text=text)


def _texts(item: Mapping[str, Any], provider: str) -> Iterator[Block]:
    key = key_of(provider)
    head = {name: value for name, value in item.items() if name != "content"}
    parts = item.get("content") or ()
    if isinstance(parts, str):
        parts = ({"type": "output_text", "text": parts},)
    if not all(part.get("type") in _TEXTS and isinstance(part.get(_TEXTS[part["type"]]), str) for part in parts):
        # An unknown part: the item is kept whole, and its readable text is read.
        text = "".join(str(part.get("text") or "") for part in parts)
        if text:
            yield TextBlock(text, extras={key: {"shown": True}})
        yield RawBlock(provider, item)
        return
    for number, part in enumerate(parts):
        field = _TEXTS[part["type"]]
        about = {"part": {name: value for name, value in part.items() if name != field}}
        yield TextBlock(part[field], extras={key: about if number else {"item": head, **about}})


def _call(item: Mapping[str, Any], provider: str) -> ToolCall:
    rest = {name: value for name, value in item.items() if name not in ("type", "name", "call_id")}
    call = tool_call(str(item.get("call_id") or ""), str(item["name"]), item.get("arguments"))
    if rest.get("arguments") == _arguments(call):
        del rest["arguments"]
    return evolve(call, extras={key_of(provider): rest})


def _reasoning(item: Mapping[str, Any], provider: str) -> ThinkingBlock:
    parts = item.get("summary") or item.get("content") or ()
    text = between.join(str(part.get("text") or "") for part in parts)
    rest = {name: value for name, value in item.items() if name not in ("type", "encrypted_content")}
    signature = item.get("encrypted_content")
    if not isinstance(signature, str) and "encrypted_content" in item:
        rest["encrypted_content"] = signature
    return ThinkingBlock(text, signature if isinstance(signature, str) else None, extras={key_of(provider): rest})


# -- what it is sent ------------------------------------------------------------------------------


def conversation(messages: Sequence[Message], options: Options) -> list[bytes]:
    """The messages as items, each as JSON: the same bytes for the same message.

    Raises:
        InputError: a message holds what the form has no place for.
    """
    provider = options.provider
    form = f"{key_of(provider)}{'' if options.reasoning else '-'}"
    out: list[bytes] = []

    def encode(message: Message) -> tuple[bytes, ...]:
        return tuple(json_bytes(item) for item in _items(message, provider, reasoning=options.reasoning))

    for message in messages:
        out += message.wire(form, encode)
    return out


def _items(message: Message, provider: str, *, reasoning: bool) -> Iterator[dict[str, Any]]:
    if message.role is Role.ASSISTANT:
        yield from _encode_assistant(message, provider, reasoning=reasoning)
    elif message.role is Role.TOOL:
        for result in message.tool_results:
            yield {"type": "function_call_output", "call_id": result.call_id, "output": _output(result, provider)}
    else:
        content = [part for block in message.content if (part := _part(block, provider)) is not None]
        yield {"type": "message", "role": message.role.value, "content": content}


def _encode_assistant(message: Message, provider: str, *, reasoning: bool) -> Iterator[dict[str, Any]]:
    key = key_of(provider)
    texts: dict[str, Any] | None = None
    for block in message.content:
        if isinstance(block, TextBlock):
            about = thaw(block.extras.get(key))
            about = about if isinstance(about, dict) else {}
            if about.get("shown"):
                continue
            if "part" not in about:
                # From another provider: without an id of its own it is a plain message.
                if texts is not None:
                    yield texts
                    texts = None
                yield {"type": "message", "role": "assistant", "content": block.text}
                continue
            part = about["part"]
            part[_TEXTS.get(str(part.get("type")), "text")] = block.text
            if texts is None or "item" in about:
                if texts is not None:
                    yield texts
                texts = {**(about.get("item") or {"type": "message", "role": "assistant"}), "content": []}
            texts["content"].append(part)
            continue
        if texts is not None:
            yield texts
            texts = None
        item = _other(block, provider, reasoning=reasoning)
        if item is not None:
            yield item
    if texts is not None:
        yield texts


def _other(block: Block, provider: str, *, reasoning: bool) -> dict[str, Any] | None:
    rest = thaw(block.extras.get(key_of(provider))) if isinstance(block, ToolCall | ThinkingBlock) else None
    if isinstance(block, ToolCall):
        about = rest if isinstance(rest, dict) else {}
        arguments = about.pop("arguments", None)
        if arguments_of(arguments) != arguments_of(_arguments(block)) or arguments is None:
            arguments = _arguments(block)  # it is another call than the one that was kept
        return {
            "type": "function_call",
            "call_id": block.id,
            "name": block.name,
            "arguments": arguments,
            **about,
        }
    if isinstance(block, ThinkingBlock):
        if not reasoning or not isinstance(rest, dict):
            return None  # from another provider
        signed = {} if block.signature is None else {"encrypted_content": block.signature}
        return {"type": "reasoning", **rest, **signed}
    if isinstance(block, RawBlock) and block.provider == provider:
        made: dict[str, Any] = thaw(block.data)
        return made
    return None


def _arguments(call: ToolCall) -> str:
    return json_bytes(call.arguments).decode() if call.malformed is None else call.malformed


def _output(result: ToolResult, provider: str) -> str | list[dict[str, Any]]:
    content = result.content
    if isinstance(content, str):
        return content
    if all(isinstance(block, TextBlock) for block in content):
        return "".join(block.text for block in content if isinstance(block, TextBlock))
    return [part for block in content if (part := _part(block, provider)) is not None]


def _part(block: Block, provider: str) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "input_text", "text": block.text}
    if not isinstance(block, MediaBlock):
        return None
    if block.kind == "image":
        return {"type": "input_image", "image_url": url_of(block), "detail": "auto"}
    if block.kind == "audio":
        raise unsupported_media(provider, block, 'use the setting api = "chat" for models that hear')
    if block.url is not None:
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_file", "filename": block.name or "document", "file_data": data_url(block)}
