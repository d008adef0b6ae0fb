"""A conversation as the Messages API wants it: a system prompt apart, user and assistant in turn, results before texts.

Each message is encoded once. Every decision here depends only on what comes before, so a longer conversation
begins with the very bytes of the shorter one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from attrs import frozen

from locus.core.messages import Message, Role, TextBlock
from locus_plugin_anthropic.blocks import NAME, Wire, foreign_block, own_block, user_block

__all__ = ["Conversation", "conversation"]

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_ID = re.compile(r"[^A-Za-z0-9_-]+")

#: What comes before a conversation whose beginning was cut away: the API wants a user's turn first.
_BEGIN = "(The beginning of the conversation is left out.)"


@frozen
class Conversation:
    """The parts of a request that grow.

    Args:
        system: the blocks of the system prompt.
        messages: turns, each ``{"role": ..., "content": [block, ...]}``. Their blocks are shared: copy to change one.
    """

    system: list[Wire]
    messages: list[Wire]


def conversation(messages: Sequence[Message]) -> Conversation:
    """The conversation of a request.

    Raises:
        InputError: it holds media that the API does not take.
    """
    leading = 0
    while leading < len(messages) and messages[leading].role is Role.SYSTEM:
        leading += 1
    system = [block for message in messages[:leading] for block in message.wire(f"{NAME}.system", _system)]
    turns: list[Wire] = []
    for message in messages[leading:]:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = message.wire(NAME, _encode)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": list(blocks)})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _BEGIN}]})
    for turn in turns:
        if turn["role"] == "user":
            turn["content"] = _results_first(turn["content"])
    _Ids().fix(turns)
    return Conversation(system, turns)


def _system(message: Message) -> tuple[Wire, ...]:
    return ({"type": "text", "text": message.text},) if message.text.strip() else ()


def _encode(message: Message) -> tuple[Wire, ...]:
    if message.role is Role.ASSISTANT:
        encode = own_block if NAME in message.extras else foreign_block
        return _present(encode(block) for block in message.content)
    if message.role is Role.SYSTEM:
        # Only some models take a system turn in the middle of a conversation; all of them read this.
        return _present([user_block(TextBlock(f"<system>\n{message.text}\n</system>"))] if message.text.strip() else [])
    return _present(user_block(block) for block in message.content)


def _present(blocks: Iterable[Wire | None]) -> tuple[Wire, ...]:
    return tuple(block for block in blocks if block is not None)


def _results_first(blocks: list[Wire]) -> list[Wire]:
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if not results or blocks[: len(results)] == results:
        return blocks
    return results + [block for block in blocks if block.get("type") != "tool_result"]


class _Ids:
    """Makes ids of calls unique and acceptable: models that number the calls of each turn from 0 repeat them."""

    def __init__(self) -> None:
        self._seen = set[str]()
        #: By the id of a call that was renamed: what its results, in order, are to name in its place.
        self._renamed: dict[str, deque[str]] = {}

    def fix(self, turns: list[Wire]) -> None:
        for turn in turns:
            key = "id" if turn["role"] == "assistant" else "tool_use_id"
            kind, new_id = ("tool_use", self._of_call) if key == "id" else ("tool_result", self._of_result)
            content = turn["content"]
            if key == "id":
                self._renamed = {}
            for at, block in enumerate(content):
                if block.get("type") == kind and (fixed := new_id(block[key])) != block[key]:
                    content[at] = {**block, key: fixed}

    def _of_call(self, given: str) -> str:
        fixed = given
        if not _ID.fullmatch(given) or given in self._seen:
            stem, number = _NOT_ID.sub("_", given) or "call", 1
            while (fixed := f"{stem}_{number}") in self._seen:
                number += 1
        self._seen.add(fixed)
        self._renamed.setdefault(given, deque()).append(fixed)
        return fixed

    def _of_result(self, given: str) -> str:
        waiting = self._renamed.get(given)
        return waiting.popleft() if waiting else given
