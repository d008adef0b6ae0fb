"""What of a conversation another model said in a form that only it can read: counted, because it is not sent."""

from __future__ import annotations

from collections.abc import Sequence

from locus.core.messages import Message, RawBlock, Role, ThinkingBlock

__all__ = ["describe_foreign"]


def describe_foreign(messages: Sequence[Message], key: str, writer: str) -> tuple[str, ...]:
    """What is left out of a request, in words for `locus.models.ModelResponse.notes`.

    Args:
        messages: the conversation.
        key: where blocks keep what the model that is asked can read.
        writer: the provider of its raw blocks.
    """

    def count(message: Message) -> int:
        return sum(
            (isinstance(block, ThinkingBlock) and key not in block.extras)
            or (isinstance(block, RawBlock) and block.provider != writer)
            for block in message.content
        )

    found = sum(m.wire(f"{key}.foreign", count) for m in messages if m.role is Role.ASSISTANT)
    if not found:
        return ()
    what = "1 block" if found == 1 else f"{found} blocks"
    return (f"{what} of another model's reasoning, or of another provider's own, not sent: this model cannot read it",)
