"""Messages in the form of ``/api/chat``, each encoded once.

What the server wrote goes back as it came, unknown fields included; they are kept in the ``extras`` of the
turn and of its calls. The server matches results with calls by their order and by ``tool_name``; newer ones give calls
ids, and only those ids are sent back to them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from locus.core import encode_data, thaw
from locus.core.messages import Block, MediaBlock, Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus_plugin_ollama.errors import PROVIDER, CannotSend
from locus_wire import arguments_of, json_bytes

__all__ = ["encode_messages", "turn_of"]


def encode_messages(messages: Iterable[Message]) -> list[bytes]:
    """The messages as JSON, oldest first. A message of several results becomes one message a result.

    Raises:
        CannotSend: a message holds what the protocol cannot say.
    """
    found: list[bytes] = []
    waiting: list[ToolCall] = []
    for message in messages:
        if message.role is Role.TOOL:
            found += _results(message, waiting)
        elif message.role is Role.ASSISTANT:
            waiting = list(message.tool_calls)
            found.append(message.wire(PROVIDER, _turn))
        else:
            found.append(message.wire(PROVIDER, _encode_assistant))
    return found


def _encode_assistant(message: Message) -> bytes:
    text, images = _content(message.content, message.role.value)
    return json_bytes({"role": message.role.value, "content": text, **({"images": images} if images else {})})


def _turn(message: Message) -> bytes:
    return json_bytes(turn_of(message))


def turn_of(message: Message) -> dict[str, Any]:
    """An assistant turn, as the server wrote it if it did."""
    kept = thaw(_own_extras(message.extras).get("message", {}))
    wire = {"role": "assistant", "content": message.text, **kept}
    # What is signed, another provider wrote; here it means nothing.
    thinking = "".join(b.text for b in message.content if isinstance(b, ThinkingBlock) and b.signature is None)
    if thinking:
        wire["thinking"] = thinking
    if message.tool_calls:
        wire["tool_calls"] = [_call(call) for call in message.tool_calls]
    return wire


def _call(call: ToolCall) -> dict[str, Any]:
    kept = thaw(_own_extras(call.extras))
    function = kept.pop("function", {})
    return {**kept, "function": {**function, "name": call.name, "arguments": _arguments(call, function)}}


def _arguments(call: ToolCall, function: Mapping[str, Any]) -> Any:
    if "arguments" in function:
        # Arguments that were not an object are kept as they came, and sent so while they still say the same.
        raw = function["arguments"]
        if (arguments_of(raw) or {}) == thaw(call.arguments):
            return raw
    return encode_data(call.arguments)


def _results(message: Message, waiting: list[ToolCall]) -> list[bytes]:
    # Ids may repeat, so results that share one take the calls with it in turn.
    wires: list[bytes] = []
    for result in message.tool_results:
        at = next((i for i, each in enumerate(waiting) if each.id == result.call_id), None)
        call = None if at is None else waiting.pop(at)
        name = result.name or (call.name if call is not None else "")
        given = None if call is None else _own_extras(call.extras).get("id")
        wires.append(_result(message, result, name, given if isinstance(given, str) and given else None))
    return wires


def _result(message: Message, result: ToolResult, name: str, call_id: str | None) -> bytes:
    def encode(_: Message) -> bytes:
        content = (TextBlock(result.content),) if isinstance(result.content, str) else result.content
        text, images = _content(content, "tool")
        wire: dict[str, Any] = {"role": "tool", "content": text}
        if images:
            wire["images"] = images
        if name:
            wire["tool_name"] = name
        if call_id is not None:
            wire["tool_call_id"] = call_id
        return json_bytes(wire)

    if len(message.content) > 1:
        return encode(message)
    return message.wire(f"{PROVIDER}:{name}:{call_id}", encode)


def _content(blocks: Iterable[Block], role: str) -> tuple[str, list[str]]:
    texts: list[str] = []
    images: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, MediaBlock):
            images.append(_image(block, role))
    return "".join(texts), images


def _image(block: MediaBlock, role: str) -> str:
    if block.kind != "image":
        raise CannotSend(f"a {role} message holds {block.kind} content, and the protocol knows text and images only")
    if block.data is not None:
        return base64.b64encode(block.data).decode()
    head, comma, data = (block.url or "").partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return data
    raise CannotSend(
        f"a {role} message holds an image by its address, which the server does not fetch; give its bytes: data="
    )


def _own_extras(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    found = extras.get(PROVIDER)
    return found if isinstance(found, Mapping) else {}
