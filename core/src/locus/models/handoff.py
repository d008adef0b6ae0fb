"""A conversation that several models took part in, in the form in which one of them can read it.

A provider refuses what another one signed: reasoning with its signature, raw blocks, ids in extras. The turns of a
run's own model are not marked; a turn of another model carries that one's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import evolve

from locus.core.messages import Block, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall

_WRITER = "locus.model"

#: What the wire forms that tell a refusal from a text mark it with.
_REFUSAL = "refusal"


def mark_writer(message: Message, model: str) -> Message:
    """An assistant turn, marked with the model that wrote it.

    Args:
        message: the turn.
        model: the model, ``"provider:model"``.
    """
    return evolve(message, extras={**message.extras, _WRITER: model})


def get_writer(message: Message) -> str | None:
    """The model that wrote a turn in another one's place, or None: the run's own."""
    name = message.extras.get(_WRITER)
    return name if isinstance(name, str) else None


def make_portable(messages: Iterable[Message], model: str, *, own: str) -> tuple[Message, ...]:
    """The messages that can be sent to a model: without what only the provider of another one understands.

    Text, tool calls, tool results and media stay. A turn that holds nothing else is left out. What is the same
    provider's stays as it came, marks included, and each turn is worked out once.

    Args:
        messages: the conversation.
        model: the one that they are sent to, ``"provider:model"``.
        own: the model that wrote the turns that are not marked.
    """
    provider, unmarked = _provider(model), _provider(own)
    kept: list[Message] = []
    for message in messages:
        if message.role is not Role.ASSISTANT:
            kept.append(message)
            continue
        name = get_writer(message)
        if (unmarked if name is None else _provider(name)) == provider:
            kept.append(message)
            continue
        plain = message.wire("locus.portable", make_plain)
        if plain is not None:
            kept.append(plain)
    return tuple(kept)


def make_plain(message: Message) -> Message | None:
    """An assistant turn as any model can read it: its text, calls and media. None if it holds nothing else."""
    blocks: list[Block] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock | RawBlock):
            continue
        blocks.append(evolve(block, extras={}) if isinstance(block, TextBlock | ToolCall) and block.extras else block)
    if tuple(blocks) == message.content and not message.extras:
        return message
    return evolve(message, content=tuple(blocks), extras={}) if blocks else None


def describe_left_out(before: Iterable[Message], after: Iterable[Message]) -> tuple[str, ...]:
    """What one conversation lacks of another, in words for `ModelResponse.notes`.

    Args:
        before: the turns as they were said.
        after: as they are sent, see `make_portable` and `make_plain`.
    """
    lost = Counter(name for message in before for name in message.wire("locus.unreadable", _names))
    lost.subtract(name for message in after for name in message.wire("locus.unreadable", _names))
    said = {name: f"{name} ({n} blocks)" if n > 1 else name for name, n in lost.items() if n > 0}
    marks = said.pop(_REFUSAL, None)
    notes = [f"not sent, as only the model that wrote it can read it: {', '.join(said.values())}"] if said else []
    return (*notes, f"sent as plain text: {marks}") if marks else tuple(notes)


def _names(message: Message) -> tuple[str, ...]:
    return tuple(name for block in message.content if (name := _name(block)))


def _name(block: Block) -> str:
    if isinstance(block, ThinkingBlock):
        return "reasoning"
    if isinstance(block, RawBlock):
        kind = block.data.get("type")
        return kind if isinstance(kind, str) and kind else "a block of its provider"
    refused = isinstance(block, TextBlock) and any(_REFUSAL in (v, _part(v)) for v in block.extras.values())
    return _REFUSAL if refused else ""


def _part(value: object) -> object:
    part = value.get("part") if isinstance(value, Mapping) else None
    return part.get("type") if isinstance(part, Mapping) else None


def _provider(model: str) -> str:
    return model.partition(":")[0]
