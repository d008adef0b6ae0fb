"""How many tokens a conversation takes, without counting a message twice.

An exact count needs the provider's tokenizer. An estimate is enough to act in time, and the share of the window
that a manager leaves free absorbs its error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from locus.core.messages import Message
from locus.models import estimate_tokens

__all__ = ["Count", "Totals", "counter", "estimate_tokens"]

#: From a message to its tokens.
Count = Callable[[Message], int]

_forms = itertools.count(1)


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
