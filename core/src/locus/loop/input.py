"""What ``agent.run`` accepts as a prompt, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from locus.core.errors import ConfigError, InputError
from locus.core.messages import Block, MediaBlock, Message, Role, TextBlock
from locus.core.state import AgentState
from locus.journal.effects import InProcess
from locus.loop.thread import Segment

#: Text; blocks and texts of one user turn; messages; or a state to start from. One kind of sequence although texts and
#: messages do not go together: of two, a type checker would choose neither for a list that is written in its place.
Prompt = str | Block | Message | AgentState | Sequence[str | Block | Message]


def new_turn(prompt: Prompt, **options: Any) -> Segment:
    """The segment that takes the next turn.

    Args:
        prompt: the user's turn, or a state that ends with it.
        options: further fields of the segment.

    Raises:
        InputError: the prompt is empty, or cannot be sent to any provider; the message says what to do.
    """
    if isinstance(prompt, AgentState):
        if not prompt.messages:
            raise InputError("the state has no messages; add the user's turn with state.with_message(...)")
        return Segment(seed=prompt, **options)
    if isinstance(prompt, str):
        return Segment(prompt=Message(Role.USER, _text(prompt)), **options)
    if isinstance(prompt, Message):
        return Segment(prompt=_check(prompt), **options)
    if isinstance(prompt, Block):
        return Segment(prompt=_check(Message(Role.USER, prompt)), **options)
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise InputError(f"a prompt is text, content blocks, messages or an AgentState, not {type(prompt).__name__}")
    items = tuple(prompt)
    messages = tuple(m for m in items if isinstance(m, Message))
    if messages and len(messages) == len(items):
        return Segment(before=tuple(map(_check, messages[:-1])), prompt=_check(messages[-1]), **options)
    blocks = tuple(TextBlock(_text(b)) if isinstance(b, str) else b for b in items)
    for block in blocks:
        if not isinstance(block, Block):
            raise InputError(f"the prompt holds {block!r}; use text, content blocks or messages")
    return Segment(prompt=_check(Message(Role.USER, tuple(b for b in blocks if isinstance(b, Block)))), **options)


def thread_name(thread_id: object, new_id: Callable[[], str] = InProcess.new_id) -> str:
    """The thread's name, made up where none was given.

    Raises:
        InputError: it is not a name.
    """
    if thread_id is None:
        return f"thread-{new_id()}"
    if not isinstance(thread_id, str) or not thread_id:
        raise InputError(f"thread_id must be a str that names the conversation, got {thread_id!r}")
    return _encodable(thread_id, "thread_id")


def system_message(text: str | None) -> Message | None:
    """The system prompt as a message; None for none.

    Raises:
        ConfigError: no provider could be sent it.
    """
    if not text:
        return None
    try:
        return Message(Role.SYSTEM, _encodable(text))
    except InputError as e:
        raise ConfigError(f"system_prompt: {e}") from e


def _text(text: str) -> str:
    if not text.strip():
        raise InputError("the prompt is empty; say what the agent is to do")
    return _encodable(text)


def _encodable(text: str, what: str = "the prompt") -> str:
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise InputError(
            f"{what} has a lone surrogate ({text[e.start]!r}) at position {e.start}: it is not valid text and cannot "
            "be sent or stored; decode its source with the right encoding, or with errors='replace'"
        ) from None
    return text


def _check(message: Message) -> Message:
    for block in message.content:
        if isinstance(block, TextBlock):
            alone = message.role is Role.USER and len(message.content) == 1
            (_text if alone else _encodable)(block.text)
        elif isinstance(block, MediaBlock) and block.data == b"":
            raise InputError(f"the {block.kind} block is empty; give its bytes or a url")
    if not message.content:
        raise InputError(f"a {message.role.value} message is empty; say what the agent is to do")
    return message
