"""How many tokens a conversation takes, without counting a message twice.

An exact count needs the provider's tokenizer. An estimate is enough to act in time, and the share of the window
that a manager leaves free absorbs its error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from locus.core.messages import Block, MediaBlock, Message, RawBlock, ToolCall, ToolResult

__all__ = ["Count", "Totals", "counter", "estimate_tokens"]

#: From a message to its tokens.
Count = Callable[[Message], int]

#: UTF-8 bytes a token, the rule of thumb for English; bytes also come out right for scripts of one token a letter.
BYTES_A_TOKEN = 4

#: What providers wrap around each message: its role and its delimiters.
TOKENS_A_MESSAGE = 4

#: An image of about a megapixel; what a clip or a document costs is of that order and cannot be known here.
TOKENS_A_MEDIUM = 1_500

_forms = itertools.count(1)


def estimate_tokens(message: Message) -> int:
    """About how many tokens a message takes: four bytes of text a token, and a flat sum for media."""
    return TOKENS_A_MESSAGE + sum(map(_block_tokens, message.content))


def _block_tokens(block: Block) -> int:
    if isinstance(block, MediaBlock):
        return TOKENS_A_MEDIUM
    if isinstance(block, ToolResult):
        content = block.content
        return _text_tokens(content) if isinstance(content, str) else sum(map(_block_tokens, content))
    if isinstance(block, ToolCall):
        return _text_tokens(block.name) + _text_tokens(block.malformed or repr(block.arguments))
    if isinstance(block, RawBlock):
        return _text_tokens(repr(block.data))
    return _text_tokens(block.text)


def _text_tokens(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_A_TOKEN)


def counter(count: Count) -> Count:
    """The same count, remembered beside each message for as long as the message lives."""
    form = "locus.tokens" if count is estimate_tokens else f"locus.tokens:{next(_forms)}"

    def count_once(message: Message) -> int:
        return message.wire(form, count)

    return count_once


class Totals:
    """Running totals of a conversation that grows at its end: each message is added once."""

    __slots__ = ("_messages", "_sums", "count")

    def __init__(self, count: Count) -> None:
        self.count = count
        self._messages: tuple[Message, ...] = ()
        self._sums = [0]

    def follow(self, messages: tuple[Message, ...]) -> None:
        """Take in what was added; a conversation that does not continue the last one is counted afresh."""
        known, sums = self._messages, self._sums
        common = min(len(known), len(messages))
        if common and known[common - 1] is not messages[common - 1]:
            common = 0
        del sums[common + 1 :]
        for message in messages[common:]:
            sums.append(sums[-1] + self.count(message))
        self._messages = messages

    def between(self, start: int, stop: int) -> int:
        """Tokens of ``messages[start:stop]``."""
        return self._sums[stop] - self._sums[start]

    def of(self, messages: Iterable[Message]) -> int:
        """Tokens of other messages."""
        return sum(map(self.count, messages))
