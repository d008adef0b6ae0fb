"""A conversation that several models took part in, in the form in which one of them can read it.

A provider refuses what another one signed: reasoning with its signature, raw blocks, ids in extras. The turns of a
run's own model are not marked; a turn of another model carries that one's name.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from locus.core.messages import Block, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall

__all__ = ["get_writer", "make_portable", "mark_writer"]

_WRITER = "locus.model"


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
        plain = message.wire("locus.portable", _plain)
        if plain is not None:
            kept.append(plain)
    return tuple(kept)


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _plain(message: Message) -> Message | None:
    blocks: list[Block] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock | RawBlock):
            continue
        blocks.append(evolve(block, extras={}) if isinstance(block, TextBlock | ToolCall) and block.extras else block)
    return Message(message.role, tuple(blocks), name=message.name) if blocks else None
