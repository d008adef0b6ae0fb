"""Between the blocks of the Messages API and the kernel's.

What the API sent is what it gets back: fields that have no place in a block of the kernel travel in its ``extras``,
and a block of another type, or of an unexpected form, as a `RawBlock`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from locus.core.errors import InputError
from locus.core.messages import Block, MediaBlock, RawBlock, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.schema import clean_text

__all__ = ["NAME", "Wire", "block_of", "drop_surrogates", "foreign_block", "own_block", "user_block"]

#: The provider, the scheme of its models, and the key of what it keeps in ``Message.extras``.
NAME = "anthropic"

Wire = dict[str, Any]

#: How the API's guide wraps arguments that were no JSON object: a ``tool_use`` must have an object.
_INVALID = "INVALID_JSON"

#: The media that may be sent as bytes; text documents are sent as text.
_TAKEN = {
    "image": ("image/jpeg", "image/png", "image/gif", "image/webp"),
    "document": ("application/pdf",),
}


def drop_surrogates(value: Any) -> Any:
    """Plain data without lone surrogates: they are not characters, and a journal cannot store them."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(key): drop_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [drop_surrogates(inner) for inner in value]
    return value


def block_of(data: Mapping[str, Any], *, cut: bool = False, raw: str | None = None) -> Block:
    """A block of an answer.

    Args:
        data: as the API has it.
        cut: the answer was cut off in it, so its arguments are not what the model meant.
        raw: the text of arguments that are not a JSON object, or None.
    """
    match data:
        case {"type": "text", "text": str(text), **rest}:
            return TextBlock(text, extras=rest)
        case {"type": "thinking", "thinking": str(text), **rest}:
            signature = rest.pop("signature", None)
            if signature is None or isinstance(signature, str):
                return ThinkingBlock(text, signature, extras=rest)
        case {"type": "tool_use", "name": str(name), **rest}:
            given, arguments = rest.pop("id", ""), rest.pop("input", {})
            call_id = given if isinstance(given, str) else ""
            if raw is not None or cut or not isinstance(arguments, Mapping):
                told = json.dumps(arguments, ensure_ascii=False) if raw is None else raw
                return ToolCall(call_id, name, malformed=told, extras=rest)
            return ToolCall(call_id, name, arguments, extras=rest)
    return RawBlock(NAME, data)


def own_block(block: Block) -> Wire | None:
    """A block of an assistant turn that the API itself wrote, as it wrote it; None if nothing is to be sent."""
    match block:
        case TextBlock(text=text, extras=extras):
            return {"type": "text", "text": text, **extras} if text.strip() else None
        case ThinkingBlock(text=text, signature=signature, extras=extras):
            signed = {} if signature is None else {"signature": signature}
            return {"type": "thinking", "thinking": text, **signed, **extras}
        case ToolCall():
            return _tool_use(block) | block.extras
        case RawBlock(provider=provider, data=data):
            return dict(data) if provider == NAME else None
    return _mention(block)


def foreign_block(block: Block) -> Wire | None:
    """A block of an assistant turn that another provider wrote, without its signatures."""
    match block:
        case TextBlock() | ToolCall():
            return own_block(evolve(block, extras={}))
        case ThinkingBlock():
            return None
    return own_block(block)


def user_block(block: Block) -> Wire | None:
    """A block of a user's turn or of a tool's result; None if nothing is to be sent.

    Raises:
        InputError: the API takes no such media.
    """
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case MediaBlock():
            return _media(block)
        case RawBlock(provider=provider, data=data):
            return dict(data) if provider == NAME else None
        case ToolResult():
            return _result(block)
    return None


def _result(result: ToolResult) -> Wire:
    """The answer to a call."""
    wire: Wire = {"type": "tool_result", "tool_use_id": result.call_id}
    content: Any
    if isinstance(result.content, str):
        content = result.content if result.content.strip() else ""
    else:
        content = [wired for block in result.content if (wired := user_block(block)) is not None]
    if result.is_error:
        # An error without content is refused.
        wire |= {"content": content or "Error", "is_error": True}
    elif content:
        wire["content"] = content
    return wire


def _tool_use(call: ToolCall) -> Wire:
    given: Any = call.arguments if call.malformed is None else {_INVALID: call.malformed}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _mention(block: Block) -> Wire | None:
    """What an assistant turn may not hold, in words."""
    if isinstance(block, MediaBlock):
        return {"type": "text", "text": f"[{block.kind}: {block.name or block.media_type or 'no name'}]"}
    return None


def _media(block: MediaBlock) -> Wire:
    if block.kind == "audio":
        raise InputError("the Messages API does not accept audio; send its transcript as text")
    wire: Wire = {"type": block.kind, "source": _source(block)}
    if block.kind == "document" and block.name:
        wire["title"] = block.name
    return wire


def _source(block: MediaBlock) -> Wire:
    if block.data is None:
        url = block.url or ""
        head, comma, data = url.partition(",")
        if comma and head.startswith("data:") and head.endswith(";base64"):
            return {"type": "base64", "media_type": head[len("data:") : -len(";base64")], "data": data}
        return {"type": "url", "url": url}
    if block.kind == "document" and block.media_type.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": block.data.decode("utf-8", "replace")}
    if block.media_type not in _TAKEN[block.kind]:
        taken = ", ".join(_TAKEN[block.kind])
        raise InputError(f"the Messages API does not accept {block.kind} of type {block.media_type!r}, only {taken}")
    return {"type": "base64", "media_type": block.media_type, "data": base64.b64encode(block.data).decode("ascii")}
